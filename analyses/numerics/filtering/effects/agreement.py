"""How often models give the same answer, on all prompts and on random subsets of them.

The share of equal answers falls as soon as prompts with the same answer from all models are removed. Cohen's kappa
compares it with the share expected from how often each model gives each answer. Random subsets of the same size show
how far both move because there are fewer prompts.

Source: Gupta et al. 2024, figure 4; Cohen 1960, "A coefficient of agreement for nominal scales".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.rng_streams import RANDOM_SUBSETS, generator

Floats = NDArray[np.float64]

BLOCK = 8
"""Random subsets that one worker draws at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelAgreement:
    """How often every two models give the same answer; symmetric.

    Attributes:
        share: ``(n_models, n_models)`` share of prompts with the same answer among those that both answered, in
            [0, 1]; NaN where there are none.
        kappa: ``(n_models, n_models)`` Cohen's kappa over the same prompts, at most 1; NaN where there are none, and
            where both models give one and the same answer to all of them, so that chance alone would have them agree.
        mean_share, mean_kappa: over the pairs of different models that have one; NaN if none has.
    """

    share: Floats
    kappa: Floats
    mean_share: float
    mean_kappa: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomAgreement:
    """Mean agreement over pairs of models in random subsets of the prompts, of one size.

    Attributes:
        share, kappa: ``(n_draws,)`` the means as of `ModelAgreement`.
    """

    share: Floats
    kappa: Floats


def measure_agreement(answers: NDArray[np.int32]) -> ModelAgreement:
    """How often every two models give the same answer.

    Kappa takes an answer's number to mean the same for every prompt, as the letter of an option does or a score of 0
    or 1. Where answers are free texts numbered anew for each prompt, only the share means something.

    Args:
        answers: ``(n_prompts, n_models)`` small numbers of answers, from 0 up; -1 = none.
    """
    share, kappa = _of_counts(*_counts(_columns(answers), _n_answers(answers)))
    return ModelAgreement(share=share, kappa=kappa, mean_share=_mean(share), mean_kappa=_mean(kappa))


def measure_random_agreement(
    answers: NDArray[np.int32], size: int, *, n_draws: int = 200, seed: int
) -> RandomAgreement:
    """Mean agreement in random subsets of the prompts.

    Args:
        answers: as of `measure_agreement`.
        size: prompts of each subset, at most all; with none of them everything is NaN.
        n_draws: subsets, each drawn without replacement.
        seed: the same seed gives the same subsets, for any number of workers.
    """
    columns, n_answers = _columns(answers), _n_answers(answers)
    blocks = split_blocks(n_draws, BLOCK)

    def drawn(block: int) -> list[tuple[float, float]]:
        means = []
        for draw in blocks[block]:
            chosen = generator(seed, RANDOM_SUBSETS, draw).choice(columns.shape[1], size, replace=False)
            some = np.ascontiguousarray(columns[:, np.sort(chosen)])
            share, kappa = _of_counts(*_counts(some, n_answers))
            means.append((_mean(share), _mean(kappa)))
        return means

    means = np.array([pair for some in map_blocks(drawn, len(blocks)) for pair in some]).reshape(n_draws, 2)
    return RandomAgreement(share=means[:, 0].copy(), kappa=means[:, 1].copy())


def _columns(answers: NDArray[np.int32]) -> NDArray[np.int32]:
    """``(n_models, n_prompts)``, each model's answers side by side."""
    return np.ascontiguousarray(answers.T, dtype=np.int32)


def _n_answers(answers: NDArray[np.int32]) -> int:
    return int(answers.max(initial=-1)) + 1


def _of_counts(same: NDArray[np.int64], both: NDArray[np.int64], chance: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Share and kappa of every pair; the counts are whole numbers, so that kappa's limits are met exactly."""
    nowhere = np.full(both.shape, np.nan)
    share = np.divide(same, both, out=nowhere.copy(), where=both > 0)
    possible = both * both - chance
    return share, np.divide(same * both - chance, possible, out=nowhere, where=possible > 0)


def _mean(values: Floats) -> float:
    """Mean over the pairs of different models, those without a value left out."""
    over = values[np.triu_indices(len(values), 1)]
    over = over[~np.isnan(over)]
    return float(over.mean()) if over.size else float("nan")


def _counts(
    columns: NDArray[np.int32], n_answers: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For every two models: prompts with the same answer, prompts that both answered, and their chance product."""
    m = len(columns)
    same, both, chance = (np.zeros((m, m), np.int64) for _ in range(3))
    _count(columns, n_answers, same, both, chance)
    return same, both, chance


@jit
def _count(columns: Any, n_answers: int, same: Any, both: Any, chance: Any) -> None:
    """Fill ``same``, ``both`` and ``chance``, the last with the sum over answers of the product of how often each of
    the two models gives it where both answered.

    That product is taken over all prompts first, and then corrected at those that one of the two did not answer: they
    are few, and all else is comparison of whole columns.
    """
    m, n = columns.shape
    times = np.zeros((m, n_answers), np.int64)
    missing = np.empty((m, n), np.int32)
    n_missing = np.zeros(m, np.int64)
    for a in range(m):
        for p in range(n):
            if columns[a, p] < 0:
                missing[a, n_missing[a]] = p
                n_missing[a] += 1
            else:
                times[a, columns[a, p]] += 1
    lost = np.zeros(n_answers, np.int64)
    for a in range(m):
        for b in range(a, m):
            x, y = columns[a], columns[b]
            n_same: Any = INT(0)
            for p in range(n):
                n_same += x[p] == y[p]
            n_neither: Any = INT(0)
            total: Any = INT(0)
            for c in range(n_answers):
                total += times[a, c] * times[b, c]
            for i in range(n_missing[b]):
                c = x[missing[b, i]]
                if c < 0:
                    n_neither += 1
                else:
                    total -= times[b, c]
                    lost[c] += 1
            for i in range(n_missing[a]):
                c = y[missing[a, i]]
                if c >= 0:
                    total += lost[c] - times[a, c]
            for i in range(n_missing[b]):
                c = x[missing[b, i]]
                if c >= 0:
                    lost[c] = 0
            same[a, b] = same[b, a] = n_same - n_neither
            both[a, b] = both[b, a] = n - n_missing[a] - n_missing[b] + n_neither
            chance[a, b] = chance[b, a] = total
