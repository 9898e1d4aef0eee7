"""Change of a ranking of models on a selection of prompts, and on random selections of the same size.

Any selection of prompts loses information because it is smaller. Its position among random selections of its size
shows what it loses, or gains, beyond that.

Source: Gupta et al. 2024, section 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.correlation_change import MIN_MODELS
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.ranking import TIE_TOLERANCE, kendall_tau_b, mean_ranks
from tracker.statistics.rng_streams import RANDOM_SUBSETS, generator

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

BLOCK = 32
"""Random subsets that one worker draws at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubsetStatistics:
    """The ranking of the models on each of several selections of prompts.

    Attributes:
        means: ``(n_subsets, n_models)`` over each model's measured scores in the selection; NaN if it has none there.
        tau: ``(n_subsets,)`` Kendall's tau-b of the ranking by these means with that on all prompts, over the models
            that have both; NaN where either ranking ties them all.
        tau_without_excluded: ``(n_subsets,)`` the same without the excluded models.
        pearson, spearman: ``(n_subsets,)`` with the models' scores elsewhere; NaN with fewer than `MIN_MODELS` that
            have both, and where either ties them all.
    """

    means: Floats
    tau: Floats
    tau_without_excluded: Floats
    pearson: Floats
    spearman: Floats


def draw_random_subsets(n_prompts: int, size: int, subsets: range, seed: int) -> Mask:
    """Some of the random selections of a seed; each is the same whoever draws it and with which others.

    Args:
        n_prompts: to choose from.
        size: prompts in each, at most all; every set of this size is as likely as any other.
        subsets: their numbers.
        seed: any non-negative integer.

    Returns:
        ``(len(subsets), n_prompts)``, True for the chosen.
    """
    chosen = np.zeros((len(subsets), n_prompts), bool)
    for row, number in zip(chosen, subsets, strict=True):
        row[generator(seed, RANDOM_SUBSETS, number).choice(n_prompts, size, replace=False)] = True
    return chosen


def subset_statistics(
    Q: Floats, selections: Mask, *, excluded: Mask | None = None, external_scores: Floats | None = None
) -> SubsetStatistics:
    """Statistics of given selections.

    Means within `TIE_TOLERANCE` of each other are tied. A model without any score is in no ranking.

    Args:
        Q: ``(n_prompts, n_models)``, NaN = not measured.
        selections: ``(n_subsets, n_prompts)``.
        excluded: ``(n_models,)``, True for those that `SubsetStatistics.tau_without_excluded` leaves out; none by
            default.
        external_scores: ``(n_models,)`` scores of the same models in another place, NaN = not known; by default of all.
    """
    n_models = Q.shape[1]
    included = np.ones(n_models, bool) if excluded is None else ~excluded
    scores = np.full(n_models, np.nan) if external_scores is None else external_scores
    full, means = _means(Q, np.ones((1, len(Q)), bool))[0], _means(Q, selections)
    tau, correlations = np.full((len(means), 2), np.nan), np.full((len(means), 2), np.nan)
    for row, some in enumerate(means):
        both = ~np.isnan(full) & ~np.isnan(some)
        first, second = mean_ranks(full[both]), mean_ranks(some[both])
        tau[row] = kendall_tau_b(first, second), kendall_tau_b(first[included[both]], second[included[both]])
        known = ~np.isnan(some) & ~np.isnan(scores)
        correlations[row] = _correlations(some[known], scores[known])
    return SubsetStatistics(
        means=means,
        tau=tau[:, 0],
        tau_without_excluded=tau[:, 1],
        pearson=correlations[:, 0],
        spearman=correlations[:, 1],
    )


def random_subset_statistics(
    Q: Floats,
    size: int,
    *,
    n_subsets: int = 1000,
    seed: int,
    excluded: Mask | None = None,
    external_scores: Floats | None = None,
) -> SubsetStatistics:
    """Statistics of random selections of one size.

    Args:
        Q, excluded, external_scores: as for `subset_statistics`.
        size, seed: as for `draw_random_subsets`; the numbers are ``0 .. n_subsets - 1``.
        n_subsets: how many.
    """
    blocks = split_blocks(n_subsets, BLOCK)

    def drawn(block: int) -> SubsetStatistics:
        chosen = draw_random_subsets(len(Q), size, blocks[block], seed)
        return subset_statistics(Q, chosen, excluded=excluded, external_scores=external_scores)

    parts = [subset_statistics(Q, np.zeros((0, len(Q)), bool)), *map_blocks(drawn, len(blocks))]
    return SubsetStatistics(
        means=np.concatenate([part.means for part in parts]),
        tau=np.concatenate([part.tau for part in parts]),
        tau_without_excluded=np.concatenate([part.tau_without_excluded for part in parts]),
        pearson=np.concatenate([part.pearson for part in parts]),
        spearman=np.concatenate([part.spearman for part in parts]),
    )


def find_position(value: float, among: Floats) -> float:
    """Share of the values that are smaller, and half of those that are equal, in [0, 1].

    It is a position and no p-value: no hypothesis has the value drawn like the others.

    Args:
        value: of one selection; NaN has no position.
        among: ``(n,)`` of others; NaN are left out, and without any there is no position.

    Returns:
        NaN where there is none.
    """
    among = among[~np.isnan(among)]
    if np.isnan(value) or not among.size:
        return float("nan")
    slack = TIE_TOLERANCE * max(1.0, abs(value))
    below, level = among < value - slack, np.abs(among - value) <= slack
    return float((below.sum() + level.sum() / 2) / among.size)


def _means(Q: Floats, selections: Mask) -> Floats:
    """``(n_subsets, n_models)``; scores of 0 and 1 are summed without rounding."""
    chosen, missing = selections.astype(np.float64), np.isnan(Q)
    sums = chosen @ (np.where(missing, 0.0, Q) if missing.any() else Q)
    n = np.broadcast_to(chosen.sum(axis=1)[:, None], sums.shape)
    if missing.any():
        n = n - chosen @ missing.astype(np.float64)
    return np.asarray(np.divide(sums, n, out=np.full(sums.shape, np.nan), where=n > 0))


def _correlations(a: Floats, b: Floats) -> tuple[float, float]:
    """Pearson's and Spearman's; NaN with fewer than `MIN_MODELS`, and where either ties all models."""
    ranks = [mean_ranks(scores) for scores in (a, b)]
    if len(a) < MIN_MODELS or any(np.ptp(rank) == 0 for rank in ranks):
        return float("nan"), float("nan")
    return _pearson(a, b), _pearson(*ranks)


def _pearson(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))
