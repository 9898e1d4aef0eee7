"""Rank intervals of models, and groups of models that are not distinguishable.

Source: Mogstad, Romano, Shaikh and Wilhelm 2024, "Inference for ranks with applications to mobility across
neighbourhoods and academic achievement across countries", section 3. Tests of all pairs with a controlled family-wise
error rate give intervals that hold all ranks simultaneously.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping
from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.pairwise_differences import PairwiseDifferences, compare_all_pairs
from tracker.statistics.ranking import TIE_TOLERANCE, mean_ranks
from tracker.statistics.resampling import map_blocks, split_blocks
from tracker.statistics.rng_streams import RESAMPLED_RANKS, generator
from tracker.statistics.standard_errors import Correction, cluster_correction
from tracker.statistics.student_t import t_quantile

BLOCK = 64
"""Number of resamples drawn from one stream."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankIntervals:
    """Rank intervals of models, in the order of the columns.

    Attributes:
        mean: ``(k,)`` mean score.
        low, high: ``(k,)`` interval of the mean, as on the leaderboard: Student's t with G − 1 degrees around the
            clustered error (CR1) of G clusters, else with n − 1 degrees around the plain one; NaN without an error.
        rank: ``(k,)`` 1 is best; ties share the mean rank.
        rank_low, rank_high: ``(k,)`` 1 + models significantly better, k − models significantly worse; all k intervals
            hold simultaneously with probability ``level``.
        bootstrap_low, bootstrap_high: ``(k,)`` percentiles of each model's rank in resamples, for each model alone; NaN
            without resamples.
        pairs: all pairs of columns.
        pvalues: ``(k, k)`` of the pairs, clustered if there are clusters; NaN without a test.
        holm: ``(k, k)`` the same adjusted for all pairs.
        better: ``(k, k)`` whether the row is significantly better than the column.
        groups: columns that are not distinguishable: maximal runs, in the order of the ranks, in which no two differ
            significantly; of two models or more. Runs may overlap.
        is_clustered: whether p-values and resamples are by cluster.
        correction: of clustered errors: CR2 if cluster sizes differ greatly.
        level: the requested level.
    """

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rank: NDArray[np.float64]
    rank_low: NDArray[np.int64]
    rank_high: NDArray[np.int64]
    bootstrap_low: NDArray[np.float64]
    bootstrap_high: NDArray[np.float64]
    pairs: PairwiseDifferences
    pvalues: NDArray[np.float64]
    holm: NDArray[np.float64]
    better: NDArray[np.bool_]
    groups: tuple[tuple[int, ...], ...]
    is_clustered: bool
    correction: Correction
    level: float

    @property
    def n_pairs(self) -> int:
        """Number of pairs of models."""
        return len(self.mean) * (len(self.mean) - 1) // 2

    @property
    def n_separable_pairs(self) -> int:
        """Number of pairs of which one is significantly better."""
        return int(self.better.sum())


def rank_intervals(
    Q: NDArray[np.float64],
    groups: Grouping,
    *,
    higher_is_better: bool = True,
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> RankIntervals:
    """Compute rank intervals from tests of all pairs, adjusted by Holm.

    Args:
        Q: ``(n, k)`` finite scores of k models, at least one, on n prompts.
        groups: clusters of the prompts; with fewer than two clusters, or no names, prompts are treated as independent.
        higher_is_better: whether large scores are good.
        level: of all intervals, in (0, 1).
        n_resamples: number of bootstrap resamples; 0 for none.
        seed: seed of the resamples; the same seed gives the same bytes, for any number of workers.
    """
    k = Q.shape[1]
    clustered = not groups.problem
    correction: Correction = "CR1" if groups.is_even else "CR2"
    pairs = compare_all_pairs(Q, groups if clustered else None, correction)
    pvalues = pairs.pvalues_clustered if clustered else pairs.pvalues
    i, j = np.triu_indices(k, 1)
    adjusted = holm_values(pvalues[i, j])
    holm = np.full((k, k), np.nan)
    holm[i, j] = holm[j, i] = adjusted
    ahead = pairs.difference > 0 if higher_is_better else pairs.difference < 0
    better = np.asarray((np.nan_to_num(holm, nan=1.0) <= 1 - level) & ahead)
    mean = Q.mean(axis=0)
    rank = mean_ranks(mean, higher_is_better=higher_is_better)
    low, high = _means_with_errors(Q, mean, groups, level)
    drawn_low, drawn_high = _bootstrap(
        Q if higher_is_better else -Q, groups if clustered else None, level, n_resamples, seed
    )
    return RankIntervals(
        mean=mean,
        low=low,
        high=high,
        rank=rank,
        rank_low=1 + better.sum(axis=0),
        rank_high=k - better.sum(axis=1),
        bootstrap_low=drawn_low,
        bootstrap_high=drawn_high,
        pairs=pairs,
        pvalues=pvalues,
        holm=holm,
        better=better,
        groups=tie_groups(rank, better),
        is_clustered=clustered,
        correction=correction,
        level=level,
    )


def tie_groups(rank: NDArray[np.float64], better: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Return maximal runs of models, in the order of the ranks, in which no two differ significantly.

    Args:
        rank: ``(k,)``; ties are broken by the order of the columns.
        better: ``(k, k)`` whether the row is significantly better than the column.

    Returns:
        Columns of each run of two or more, the best first.
    """
    order = np.argsort(rank, kind="stable")
    is_separable = (better | better.T)[np.ix_(order, order)]
    groups: list[tuple[int, ...]] = []
    end = 0
    for start in range(len(order)):
        reached = max(end, start + 1)
        while reached < len(order) and not is_separable[start:reached, reached].any():
            reached += 1
        if reached > end and reached - start > 1:
            groups.append(tuple(order[start:reached].tolist()))
        end = max(end, reached)
    return tuple(groups)


def _means_with_errors(
    Q: NDArray[np.float64], mean: NDArray[np.float64], groups: Grouping, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the interval of each mean, as on the leaderboard."""
    n, deviations = len(Q), Q - mean
    units = n if groups.problem else groups.n_groups
    if units < 2:
        return np.full(len(mean), np.nan), np.full(len(mean), np.nan)
    if groups.problem:
        sums = deviations
    else:
        sums = np.zeros((units, Q.shape[1]))
        np.add.at(sums, groups.codes, deviations)
    factor = cluster_correction(None, units, None, "CR1")
    reach = t_quantile(level, units - 1) * np.sqrt(factor * (sums**2).sum(axis=0)) / n
    return mean - reach, mean + reach


def _bootstrap(
    Q: NDArray[np.float64], groups: Grouping | None, level: float, n_resamples: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return percentiles of each model's rank when prompts, or whole clusters, are drawn with replacement."""
    k = Q.shape[1]
    if n_resamples == 0:
        return np.full(k, np.nan), np.full(k, np.nan)
    sums, sizes = Q, np.ones(len(Q))
    if groups is not None:
        sums, sizes = np.zeros((groups.n_groups, k)), groups.sizes.astype(np.float64)
        np.add.at(sums, groups.codes, Q)
    blocks, units = split_blocks(n_resamples, BLOCK), len(sums)
    scale = float(np.abs(Q).max(initial=0.0))

    def drawn(block: int) -> NDArray[np.float64]:
        rows = len(blocks[block])
        draws = generator(seed, RESAMPLED_RANKS, block).integers(0, units, (rows, units), dtype=np.int32)
        draws += (np.arange(rows, dtype=np.int32) * units)[:, None]
        counts = np.bincount(draws.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)
        return rank_rows((counts @ sums) / (counts @ sizes)[:, None], TIE_TOLERANCE * scale)

    ranks = np.concatenate(map_blocks(drawn, len(blocks)))
    ends = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    return ends[0], ends[1]


def rank_rows(scores: NDArray[np.float64], slack: float) -> NDArray[np.float64]:
    """Return the rank of each score in its row: 1 is the largest, ties share the mean of their ranks.

    Args:
        scores: ``(n, k)`` finite, large is good.
        slack: neighbours that differ by no more are tied.
    """
    k = scores.shape[1]
    order = np.argsort(-scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=1)
    place = np.arange(k)
    new = np.ones(scores.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, :-1] - ordered[:, 1:] > slack
    last = np.ones(scores.shape, dtype=np.bool_)
    last[:, :-1] = new[:, 1:]
    first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    final = np.minimum.accumulate(np.where(last, place, k)[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(scores.shape)
    np.put_along_axis(ranks, order, (first + final) / 2 + 1, axis=1)
    return ranks
