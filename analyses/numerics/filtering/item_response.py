"""Difficulty and discrimination of each prompt: the two-parameter logistic model of item response theory.

A model of ability ``t`` knows the answer to a prompt of difficulty ``b`` and discrimination ``a > 0`` with the chance
``p = 1 / (1 + exp(-a (t - b)))``. It is right with the chance ``g + (1 - g) p``: the floor ``g`` is known, 1/k for a
prompt with k options and 0 for an open one. Without the floor, prompts with few options pass for easy ones.

Abilities are draws from the standard normal distribution and are integrated out;
difficulties and discriminations are those of the largest marginal posterior density, found by expectation and
maximisation. It is our own because the packages at hand have not been released since 2021 and give no standard errors
(girth), or sample with a framework for neural networks (py-irt).

**Priors.** Without any, a prompt that all models get right has no finite difficulty, and with a few dozen models a
prompt's discrimination can run away. The logarithm of ``a`` is normal around the benchmark's typical one with standard
deviation `SLOPE_SD`; the log odds ``c = a (b - nu)`` of a wrong answer from a model of ability ``nu``, at which the
prompts are balanced, are normal around 0 with `ODDS_SD`. The typical slope and ``nu`` are found with the rest, so that
the priors pull prompts towards each other and not towards a fixed scale: on any other scale of ability they have the
same effect. A prior on ``b`` itself, however weak, would overrule the scale of a few dozen abilities once there are
many prompts.

Source: Birnbaum 1968 (also guessing); Bock & Aitkin 1981 (integrating abilities out); Mislevy 1986 (priors with
estimated means); Liu, Rubin & Wu 1998 (the scale of ability as a separate step, without which many prompts and few
models take thousands of iterations); Pinheiro & Bates 1995 (nodes around each model's own ability); Louis 1982
(information).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from analyses.numerics.filtering.response_curves import (
    MAX_STEP,
    ability_slopes,
    information,
    log_likelihood,
    step_prompts,
)
from tracker.statistics.parallel.blocks import map_blocks, split_blocks

Floats = NDArray[np.float64]

SLOPE_SD = 0.5
"""Of the logarithm of discrimination: two thirds of all prompts within a factor of 1.6 of the typical one."""
ODDS_SD = 3.0
"""Of a prompt's log odds: two thirds of all prompts between 5 % and 95 %; worth half an answer at even odds."""
CENTRE_SD, MIDDLE_SD = 1.0, 3.0
"""Of the typical logarithm of discrimination and of ``nu``, around 0: they matter where there is next to no data."""
FEW_PROMPTS, MANY_PROMPTS = 200, 2000
"""Abilities are known better the more prompts there are, and fewer nodes will do."""
NODES = (21, 11, 5)
"""Nodes of each model's ability: below `FEW_PROMPTS`, below `MANY_PROMPTS`, from there on."""
BLOCK = 1024
"""Prompts that one worker takes at a time."""
SETTLING = 20
"""Newton steps that abilities get before the first iteration."""
PERCENTILE_TOLERANCE = 1e-9
"""Prompts within this of a percentile are at it: above `TIE_TOLERANCE`, as an iteration gives only so many digits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoParameterFit:
    """Prompts and models on one scale, on which abilities have mean 0 and standard deviation 1.

    Standard errors are from the prompt's own block of the observed information of the marginal likelihood, the priors'
    included. They account for the sampling of models and for unknown abilities. They ignore that the numbers of the
    other prompts, the typical slope and ``nu`` are estimated, and with them the scale: with few models all difficulties
    and discriminations may be off together.

    Attributes:
        difficulty: ``(n_prompts,)``, the ability at which half of the models know the answer; NaN for a prompt without
            a score, as in the next three.
        discrimination: ``(n_prompts,)``, positive: log odds by unit of ability.
        difficulty_stderr, discrimination_stderr: ``(n_prompts,)``; NaN also where the information is not that of a
            maximum.
        ability: ``(n_models,)`` means of the posterior; NaN for a model without a score.
        n_iterations: that were made.
        converged: whether the last of them moved nothing by more than the tolerance.
        log_posterior: marginal, at the solution, up to a constant; NaN without any score.
    """

    difficulty: Floats
    discrimination: Floats
    difficulty_stderr: Floats
    discrimination_stderr: Floats
    ability: Floats
    n_iterations: int
    converged: bool
    log_posterior: float


def fit_two_parameter(
    right: NDArray[np.float64],
    floors: NDArray[np.float64] | None = None,
    *,
    max_iterations: int = 500,
    tolerance: float = 1e-6,
) -> TwoParameterFit:
    """Fit the two-parameter logistic model.

    Prompts with the same answers and floors get the same numbers, to the last digit. The order of prompts does not
    matter. All right, or all wrong, from every model has a finite difficulty, which the prior sets. A prompt that the
    better models get wrong has a small discrimination, never a negative one. Cells that were not measured are left
    out of the likelihood, as if what is missing had nothing to do with what would have been scored there.

    Args:
        right: ``(n_prompts, n_models)`` of 0, 1, NaN = not measured.
        floors: ``(n_prompts,)`` in [0, 1), the chance to guess each answer; None for 0.
        max_iterations: at most so many.
        tolerance: of discrimination's logarithm, of ``c`` and of abilities.
    """
    n_prompts, n_models = right.shape
    is_measured, has_scores = ~np.isnan(right).all(axis=1), ~np.isnan(right).all(axis=0)
    prompt, model = (np.full(n, np.nan) for n in (n_prompts, n_models))
    if not is_measured.any():
        return TwoParameterFit(
            difficulty=prompt, discrimination=prompt, difficulty_stderr=prompt, discrimination_stderr=prompt,
            ability=model, n_iterations=0, converged=True, log_posterior=np.nan,
        )  # fmt: skip
    kept = right[np.ix_(is_measured, has_scores)]
    answers = np.where(np.isnan(kept), -1, kept).astype(np.int8)
    levels, level = np.unique(np.zeros(len(right)) if floors is None else floors, return_inverse=True)
    rows = np.column_stack([answers, level[is_measured].astype(np.int16)])
    patterns, members, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    fit = _Fit(np.ascontiguousarray(patterns[:, :-1], np.int8), levels[patterns[:, -1]], counts.astype(np.float64))
    n_iterations, converged = 0, False
    while n_iterations < max_iterations and not converged:
        n_iterations += 1
        converged = fit.iterate() <= tolerance
    weights, evidence = fit.posterior()
    model[has_scores] = (weights * fit.nodes()).sum(axis=1)
    columns = []
    for values in fit.numbers(weights):
        column = prompt.copy()
        column[is_measured] = values[members.reshape(-1)]
        columns.append(column)
    difficulty, discrimination, difficulty_stderr, discrimination_stderr = columns
    return TwoParameterFit(
        difficulty=difficulty,
        discrimination=discrimination,
        difficulty_stderr=difficulty_stderr,
        discrimination_stderr=discrimination_stderr,
        ability=model,
        n_iterations=n_iterations,
        converged=converged,
        log_posterior=evidence + fit.log_prior(),
    )


class _Fit:
    """Numbers of prompts and models as they stand; prompts with the same answers and floor are one row."""

    def __init__(self, answers: NDArray[np.int8], floors: Floats, counts: Floats) -> None:
        self.answers, self.floors, self.counts = answers, floors, counts
        self.blocks = [slice(block.start, block.stop) for block in split_blocks(len(answers), BLOCK)]
        n_nodes = NODES[int(np.searchsorted((FEW_PROMPTS, MANY_PROMPTS), counts.sum(), side="right"))]
        self.x, self.x_weights = hermegauss(n_nodes)
        right, wrong = answers == 1, answers == 0
        self.slopes = np.zeros(len(answers))
        unknown = wrong.sum(axis=1) / (1 - floors)  # the others guessed
        known = np.maximum(right.sum(axis=1) - floors * unknown, 0.0)
        self.c = np.log((unknown + 0.5) / (known + 0.5))
        self.centre = self.middle = 0.0
        odds = np.log((counts @ right + 0.5) / (counts @ wrong + 0.5))
        self.ability = (odds - odds.mean()) / (odds.std() or 1.0)
        self.spread = np.ones(len(odds))
        for _ in range(SETTLING):
            self._find_abilities()

    def iterate(self) -> float:
        """One round of expectation and maximisation; returns by how much it moved what it moved most."""
        before = self._everything()
        self._find_abilities()
        nodes = self.nodes()
        weights, _ = self.posterior()
        shift, stretch = self._rescale(nodes, weights)
        nodes = (nodes - shift) / np.exp(stretch)

        def stepped(block: int) -> tuple[Floats, Floats]:
            rows = self.blocks[block]
            slopes, c = self.slopes[rows].copy(), self.c[rows].copy()
            scales = (self.centre, SLOPE_SD, ODDS_SD)
            step_prompts(self.answers[rows], self.floors[rows], slopes, c, self.middle, nodes, weights, *scales)
            return slopes, c

        parts = map_blocks(stepped, len(self.blocks))
        self.slopes, self.c = (np.concatenate(numbers) for numbers in zip(*parts, strict=True))
        self._move_priors()
        return float(np.abs(self._everything() - before).max())

    def _everything(self) -> Floats:
        return np.concatenate([self.slopes, self.c, self.ability, [self.centre, self.middle]])

    def nodes(self) -> Floats:
        """``(n_models, n_nodes)`` abilities around each model's own."""
        return np.asarray(self.ability[:, None] + self.spread[:, None] * self.x)

    def posterior(self) -> tuple[Floats, float]:
        """Weights of each model's nodes, which sum to 1, and the marginal log likelihood."""
        nodes = self.nodes()
        logs = (
            np.log(self.spread)[:, None] + np.log(self.x_weights) + self.x**2 / 2 - nodes**2 / 2 - np.log(2 * np.pi) / 2
        )
        logs = logs + self._over_prompts(log_likelihood, nodes, np.zeros_like(nodes))
        largest = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - largest)
        sums = weights.sum(axis=1, keepdims=True)
        return weights / sums, float((largest + np.log(sums)).sum())

    def log_prior(self) -> float:
        """Log density of the priors at the numbers as they stand, up to a constant."""
        of_prompts = ((self.slopes - self.centre) / SLOPE_SD) ** 2 + (self.c / ODDS_SD) ** 2
        of_priors = (self.centre / CENTRE_SD) ** 2 + (self.middle / MIDDLE_SD) ** 2
        return -float(self.counts @ of_prompts + of_priors) / 2

    def numbers(self, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Difficulty, discrimination and the standard errors of both.

        Args:
            weights: as of `posterior`.
        """
        nodes = self.nodes()

        def look(block: int) -> Floats:
            rows = self.blocks[block]
            block_entries = np.empty((len(self.c[rows]), 3))
            numbers = (self.answers[rows], self.floors[rows], self.slopes[rows], self.c[rows])
            information(*numbers, self.middle, nodes, weights, block_entries)
            return block_entries

        entries = np.concatenate(map_blocks(look, len(self.blocks)))
        of_slope, of_both, of_odds = (entries + np.array([SLOPE_SD**-2, 0.0, ODDS_SD**-2])).T
        determinant = of_slope * of_odds - of_both**2
        determinant[(determinant <= 0) | (of_slope <= 0)] = np.nan
        a = np.exp(self.slopes)
        away = self.c / a
        # b = nu + c exp(-slope) moves by -away with the slope and by 1/a with c
        variance = (away**2 * of_odds + 2 * away * of_both / a + of_slope / a**2) / determinant
        return self.middle + away, a, np.sqrt(variance), a * np.sqrt(of_odds / determinant)

    def _over_prompts(self, kernel: Any, at: Floats, zeros: Floats) -> Floats:
        """A kernel's sums over all prompts, block after block."""

        def look(block: int) -> Floats:
            rows, sums = self.blocks[block], zeros.copy()
            numbers = (self.answers[rows], self.floors[rows], self.counts[rows], self.slopes[rows], self.c[rows])
            kernel(*numbers, self.middle, at, sums)
            return sums

        return np.asarray(np.sum(map_blocks(look, len(self.blocks)), axis=0))

    def _find_abilities(self) -> None:
        """A Newton step of each model towards its most probable ability, of which there is one alone."""
        first, second = self._over_prompts(ability_slopes, self.ability, np.zeros((2, len(self.ability))))
        self.spread = 1 / np.sqrt(1 + second)
        step = (first - self.ability) * self.spread**2
        self.ability = self.ability + np.clip(step, -MAX_STEP, MAX_STEP)

    def _rescale(self, nodes: Floats, weights: Floats) -> tuple[float, float]:
        """Move and stretch the scale so that abilities are as a standard normal sample; chances stay what they are.

        Returns:
            By how much it was moved, and the logarithm of how far stretched.
        """
        n_models, means = len(nodes), (weights * nodes).sum(axis=1)
        shift = float((means.sum() + self.middle / MIDDLE_SD**2) / (n_models + MIDDLE_SD**-2))
        squares = float((weights * (nodes - shift) ** 2).sum()) + ((self.middle - shift) / MIDDLE_SD) ** 2
        stretch = 0.0
        for _ in range(SETTLING):
            away = squares * np.exp(-2 * stretch)
            slope = away - n_models - (self.centre + stretch) / CENTRE_SD**2
            stretch += float(slope / (2 * away + CENTRE_SD**-2))
        scale = np.exp(stretch)
        self.slopes, self.centre = self.slopes + stretch, self.centre + stretch
        self.middle = float((self.middle - shift) / scale)
        self.ability, self.spread = (self.ability - shift) / scale, self.spread / scale
        return shift, stretch

    def _move_priors(self) -> None:
        """Find the typical slope and ``nu`` of the largest density, curves staying as they are."""
        n, a = self.counts.sum(), np.exp(self.slopes)
        self.centre = float(self.counts @ self.slopes / SLOPE_SD**2 / (n / SLOPE_SD**2 + CENTRE_SD**-2))
        pull = self.counts @ (a * self.c) / ODDS_SD**2 - self.middle / MIDDLE_SD**2
        move = float(pull / (self.counts @ a**2 / ODDS_SD**2 + MIDDLE_SD**-2))
        self.middle, self.c = self.middle + move, self.c - a * move


def flag_easy_or_undiscriminating(
    fit: TwoParameterFit, *, percentile: float = 25, combine: Literal["either", "both"] = "either"
) -> NDArray[np.bool_]:
    """Prompts that are among the easiest, or among those that tell good models least from bad ones.

    At or below a percentile counts (`PERCENTILE_TOLERANCE`), so that indistinguishable prompts go together:
    where more than a quarter of the prompts has the same lowest difficulty, all of them are easy. Prompts without
    numbers are neither.

    Args:
        fit: as of `fit_two_parameter`.
        percentile: of difficulty and of discrimination, by linear interpolation, in [0, 100].
        combine: whether one of the two is enough, or both must be.

    Returns:
        ``(n_prompts,)``, True for what this filter removes.

    Source: Gupta et al. 2024, section 4.4, after Rodriguez et al. 2021.
    """
    easy, dull = (_lowest(numbers, percentile) for numbers in (fit.difficulty, fit.discrimination))
    return easy | dull if combine == "either" else easy & dull


def _lowest(numbers: Floats, percentile: float) -> NDArray[np.bool_]:
    known = ~np.isnan(numbers)
    lowest = np.zeros(len(numbers), bool)
    if known.any():
        limit = np.percentile(numbers[known], percentile)
        lowest[known] = numbers[known] <= limit + PERCENTILE_TOLERANCE * max(1.0, abs(limit))
    return lowest
