"""Algorithms 1 and 2 of Zhang & Hardt 2024 as printed: lower bounds of sensitivity by gradient descent.

Reversals are not differentiable, so hinges are minimised in their place: Σ max(score of i − score of j, −margin) over
all i that are ahead of j before. Both distances are taken at the one solution that the descent ends with.

The paper prints no step size. A step is taken along the gradient of the mean hinge, of scores in units of their spread,
times the number of weights or of models: so that neither units nor sizes matter. The default converges within
the printed numbers of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.epsilon import round_up_to_float
from analyses.numerics.elections.cardinal.weighted_sums import weighted_sums
from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import ExactScores, decimal_fraction
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange, OrdinalSensitivity
from analyses.numerics.elections.win_rates import WinRateRule, pairwise_wins, rank_codes, win_rates
from tracker.statistics.rng_streams import DESCENT, generator

CARDINAL_STEP, ORDINAL_STEP = 10.0, 30.0
"""Default step sizes; see the module."""


def descend_cardinal_sensitivity(
    scores: ExactScores,
    *,
    epsilon: Fraction,
    standardised: bool,
    n_steps: int = 1000,
    step_size: float = CARDINAL_STEP,
    seed: int,
) -> CardinalSensitivity:
    """Algorithm 1, with equation 12 and margin 0.

    Args:
        scores: complete, at least 2 models and 1 task.
        epsilon: least weight, in (0, 1].
        standardised: whether the columns that are weighed have standard deviation 1; before is the raw mean anyhow.
        n_steps: of gradient descent.
        step_size: see the module.
        seed: of the start.
    """
    sums = weighted_sums(scores, standardised=standardised)
    weighed, scale, before = sums.group >= 0, sums.scale, sums.before
    witness = np.full(scores.n_tasks, np.nan)
    if weighed.any():
        T = scores.T[weighed] / scale[weighed, None]
        T = np.ldexp(T, -np.frexp(np.abs(T).max())[1])  # so that no square overflows or vanishes
        T = (T - T.mean(axis=1, keepdims=True)) / T.std(axis=1).mean()
        witness[weighed] = _weights(T, before, float(epsilon), n_steps, step_size, seed)
        witness = np.maximum(witness, round_up_to_float(epsilon))
    after = average_ranks(_totals(scores, witness, scale))
    tau, mrc = _lower_bounds(before, after, witness)
    return CardinalSensitivity(tau=tau, mrc=mrc, before=before, epsilon=epsilon, scale=scale)


def descend_ordinal_sensitivity(
    scores: ExactScores,
    *,
    leading: NDArray[np.int64],
    rule: WinRateRule,
    n_steps: int = 100,
    margin: float = 0.01,
    step_size: float = ORDINAL_STEP,
    seed: int,
) -> OrdinalSensitivity:
    """Algorithm 2, with equation 13 and straight-through gradients of a Bernoulli draw at each step.

    Args:
        scores: complete or not.
        leading: columns of at least 2 models.
        rule: of win rates.
        n_steps: of gradient descent.
        margin: a reversal by more than this is not rewarded further (lambda).
        step_size: see the module.
        seed: of the start and of all draws.
    """
    addable = np.setdiff1d(np.arange(scores.n_models), leading)
    before = average_ranks(np.array(win_rates(scores, leading, rule=rule), dtype=object))
    smooth = SmoothWinRates.from_scores(scores, np.concatenate([leading, addable]), len(leading), rule)
    theta = generator(seed, DESCENT, 0).standard_normal(len(addable))
    draws = generator(seed, DESCENT, 1)
    for _ in range(n_steps if len(addable) else 0):
        q = _sigmoid(theta)
        rates, gradient = smooth.evaluate(draws.random(len(addable)) < q)
        theta -= (
            step_size
            * scores.n_models
            * q
            * (1 - q)
            * np.einsum("i,ij->j", hinge_gradient(rates, before, margin), gradient)
        )
    added = np.asarray(_sigmoid(theta) > 0.5)
    field = np.concatenate([leading, addable[added]])
    after = average_ranks(np.array(win_rates(scores, field, rule=rule)[: len(leading)], dtype=object))
    tau, mrc = _lower_bounds(before, after, added)
    return OrdinalSensitivity(tau=tau, mrc=mrc, leading=leading, addable=addable, before=before)


def hinge_gradient(scores: NDArray[np.float64], before: NDArray[np.float64], margin: float) -> NDArray[np.float64]:
    """``(m,)`` derivative of the mean over ordered pairs of max(score of i − score of j, −margin), i ahead before.

    Args:
        scores: ``(m,)``.
        before: ``(m,)`` ranks, 1 is best.
        margin: at least 0.
    """
    ahead = before[:, None] < before[None, :]
    counted = ahead & (scores[:, None] - scores[None, :] > -margin)
    slopes = counted.sum(axis=1) - counted.sum(axis=0)
    return np.asarray(slopes / max(1, int(ahead.sum())), dtype=np.float64)


def normalised_weights(theta: NDArray[np.float64], epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights that add up to 1 (lines 5 and 6), and what they sum to before; the least is epsilon times the largest.

    Args:
        theta: ``(n,)``.
        epsilon: in (0, 1).
    """
    raw = _sigmoid(theta) + epsilon / (1 - epsilon)
    return raw / raw.sum(), raw


def weight_gradient(
    T: NDArray[np.float64], theta: NDArray[np.float64], before: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """``(n,)`` derivative of the mean hinge by theta.

    Args:
        T: ``(n, m)``.
        theta: ``(n,)``.
        before: ``(m,)`` ranks.
        epsilon: in (0, 1).
    """
    weights, raw = normalised_weights(theta, epsilon)
    slopes = hinge_gradient(np.einsum("j,ji->i", weights, T), before, 0.0)
    by_weight = np.einsum("ji,i->j", T, slopes)
    by_raw = (by_weight - np.einsum("j,j->", weights, by_weight)) / raw.sum()
    q = _sigmoid(theta)
    return np.asarray(by_raw * q * (1 - q))


def _weights(
    T: NDArray[np.float64], before: NDArray[np.float64], epsilon: float, n_steps: int, step_size: float, seed: int
) -> NDArray[np.float64]:
    if epsilon == 1:
        return np.ones(len(T))
    theta = generator(seed, DESCENT, 0).standard_normal(len(T))
    for _ in range(n_steps):
        theta -= step_size * len(T) * weight_gradient(T, theta, before, epsilon)
    raw = normalised_weights(theta, epsilon)[1]
    return np.asarray(raw / raw.max())


def _totals(scores: ExactScores, weights: NDArray[np.float64], scale: NDArray[np.float64]) -> list[int]:
    """Integers in the order of Σ weight · score / scale, for weights that differ among merged tasks too; NaN is 0."""
    shares = [
        Fraction(0) if np.isnan(weight) else decimal_fraction(weight) / decimal_fraction(unit)
        for weight, unit in zip(weights.tolist(), scale.tolist(), strict=True)
    ]
    whole = lcm(1, *(share.denominator for share in shares))
    counts = [share.numerator * (whole // share.denominator) for share in shares]
    return [sum(map(int.__mul__, counts, column)) for column in scores.numerators.T.tolist()]


def _lower_bounds(
    before: NDArray[np.float64], after: NDArray[np.float64], witness: NDArray[np.float64] | NDArray[np.bool_]
) -> tuple[LargestChange, LargestChange]:
    """Both distances at one solution, with bounds that hold for any change: ties before cannot be reversed."""
    m = len(before)
    n_ordered, n_pairs = int((before[:, None] < before[None, :]).sum()), m * (m - 1) // 2
    farthest = float(np.maximum(before - 1, m - before).max() / (m - 1))
    return (
        LargestChange.between(before, after, "tau", witness=witness, upper_bound=n_ordered / n_pairs),
        LargestChange.between(before, after, "mrc", witness=witness, upper_bound=farthest),
    )


def _sigmoid(theta: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 * (1 + np.tanh(theta / 2)))


@dataclass(frozen=True, kw_only=True)
class SmoothWinRates:
    """Win rates of the leading models as a smooth function of who is added.

    Attributes:
        points: ``(n_groups, k, k + l)`` in [0, 1], of a leading model against each; groups are tasks, or one for all
            of them.
        present: ``(n_groups, k + l)`` 1 where a model takes part in a group, else 0.
        counts_itself: whether a model is counted among its own opponents, with no point.
    """

    points: NDArray[np.float64]
    present: NDArray[np.float64]
    counts_itself: bool

    @classmethod
    def from_scores(cls, scores: ExactScores, columns: NDArray[np.int64], k: int, rule: WinRateRule) -> SmoothWinRates:
        """Of the first ``k`` of these columns against all of them."""
        field = scores.columns(columns)
        if rule == "pairwise":
            pairs = pairwise_wins(field)
            shares = (pairs.wins[:k] / pairs.denominator).astype(np.float64)
            return cls(points=shares[None], present=np.ones((1, len(columns))), counts_itself=True)
        codes = rank_codes(field)
        leading_codes, opponent_codes = codes[:, :k, None], codes[:, None, :]
        points = np.where(
            (leading_codes > 0) & (opponent_codes > 0), 0.5 * (1 + np.sign(leading_codes - opponent_codes)), 0.0
        )
        points[:, np.arange(k), np.arange(k)] = 0.0
        return cls(points=points, present=(codes > 0).astype(np.float64), counts_itself=False)

    def evaluate(self, added: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Win rates of the leading models, and their derivatives by what is added.

        Args:
            added: ``(l,)``.

        Returns:
            ``(k,)`` and ``(k, l)``.
        """
        k = self.points.shape[1]
        participation = np.concatenate([np.ones(k), added])
        n_opponents = np.einsum("tj,j->t", self.present, participation) - (not self.counts_itself)
        has_opponents = n_opponents > 0
        share = self.present[:, :k] * has_opponents[:, None] / np.where(has_opponents, n_opponents, 1.0)[:, None]
        n_groups = np.maximum((self.present[:, :k] * has_opponents[:, None]).sum(axis=0), 1.0)
        totals = np.einsum("tij,j->ti", self.points, participation)
        rates = (totals * share).sum(axis=0) / n_groups
        mean = totals / np.where(has_opponents, n_opponents, 1.0)[:, None]
        slopes = np.einsum("ti,tij->ij", share, self.points[:, :, k:]) - np.einsum(
            "ti,tj->ij", mean * share, self.present[:, k:]
        )
        return rates, slopes / n_groups[:, None]
