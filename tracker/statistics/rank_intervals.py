"""Rank intervals of models, and groups of models that are not distinguishable.

Source: Mogstad, Romano, Shaikh and Wilhelm 2024, "Inference for ranks with applications to mobility across
neighbourhoods and academic achievement across countries", section 3. Tests of all pairs with a controlled family-wise
error rate give intervals that hold all ranks simultaneously. Missing scores enter by their worst cases, see
`compare_worst_cases`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.intervals.means import NO_BOUNDS, united_intervals
from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.pairwise_differences import (
    PairwiseDifferences,
    compare_all_pairs,
    compare_worst_cases,
    smallest_pvalues,
)
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.ranking import TIE_TOLERANCE, mean_ranks, scale_exponent
from tracker.statistics.rng_streams import RESAMPLED_RANKS, generator

BLOCK = 64
"""Number of resamples drawn from one stream."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankIntervals:
    """Rank intervals of models, in the order of the columns.

    Attributes:
        mean: ``(k,)`` mean of the scores that are not missing.
        low, high: ``(k,)`` interval of the mean, as on the leaderboard; NaN without one. United over the worst and the
            best values of what is missing.
        rank: ``(k,)`` 1 is best; ties share the mean rank.
        rank_low, rank_high: ``(k,)`` 1 + models significantly better, k − models significantly worse; all k intervals
            hold simultaneously with probability ``level``.
        bootstrap_low, bootstrap_high: ``(k,)`` percentiles of each model's rank in resamples, for each model alone; NaN
            without resamples.
        pairs: all pairs of columns; with all that is missing set against the row's model.
        pvalues: ``(k, k)`` of the pairs, clustered if there are clusters; NaN without a test.
        holm: ``(k, k)`` the same adjusted for all pairs.
        better: ``(k, k)`` whether the row is significantly better than the column, whatever is missing.
        groups: columns that are not distinguishable: maximal runs, in the order of the ranks, in which no two differ
            significantly; of two models or more. Runs may overlap.
        is_clustered: whether p-values and resamples are by cluster or stratum.
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
    level: float

    @property
    def n_pairs(self) -> int:
        """Number of pairs of models."""
        return len(self.mean) * (len(self.mean) - 1) // 2

    @property
    def first_holm(self) -> float:
        """Return the largest adjusted p-value of the first model against another; 1 if several share the first rank.

        If it is at most 1 − ``level``, no other model may be first.
        """
        first = np.flatnonzero(self.rank == self.rank.min())
        if len(first) > 1:
            return 1.0
        sign = 1 if self.mean[first[0]] == self.mean.max() else -1
        is_tested = (sign * self.pairs.difference[first[0]] > 0) & ~np.isnan(self.holm[first[0]])
        return float(np.delete(np.where(is_tested, self.holm[first[0]], 1.0), first).max(initial=0.0))

    @property
    def n_separable_pairs(self) -> int:
        """Number of pairs of which one is significantly better."""
        return int(self.better.sum())


def rank_intervals(
    Q: NDArray[np.float64],
    groups: Grouping,
    *,
    bounds: tuple[float, float] | None = None,
    higher_is_better: bool = True,
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
    with_means: bool = True,
) -> RankIntervals:
    """Compute rank intervals from tests of all pairs, adjusted by Holm.

    Args:
        Q: ``(n, k)`` finite scores of k models, at least one, on n prompts; NaN = missing, which needs ``bounds``.
        groups: clusters and strata of the prompts; without strata, and with fewer than two clusters or no names,
            prompts are treated as independent.
        bounds: worst and best possible score; None without bounds, when no score may be missing.
        higher_is_better: whether large scores are good.
        level: of all intervals, in (0, 1).
        n_resamples: number of bootstrap resamples; 0 for none.
        seed: seed of the resamples; the same seed gives the same bytes, for any number of workers.
        with_means: whether to compute the intervals of the means; NaN if not.
    """
    k = Q.shape[1]
    tests = _test_pairs(Q, groups, bounds, higher_is_better=higher_is_better, level=level)
    worst, best = fill_bounds(Q, bounds)
    independent = group_rows(np.full(len(Q), ""))
    ordered = NO_BOUNDS if bounds is None else (min(bounds), max(bounds))
    by = None if groups.problem else groups
    exponent = scale_exponent(Q)
    mean = np.ldexp(np.nanmean(np.ldexp(Q, -exponent), axis=0), exponent)
    low = high = np.full(k, np.nan)
    if with_means:
        low, high = united_intervals(Q, by or independent, bounds=ordered, level=level)
    rank = mean_ranks(mean, higher_is_better=higher_is_better)
    sign = 1 if higher_is_better else -1
    drawn_low, drawn_high = _bootstrap(sign * worst, sign * best, by, level, n_resamples, seed)
    return RankIntervals(
        mean=mean,
        low=low,
        high=high,
        rank=rank,
        rank_low=1 + tests.better.sum(axis=0),
        rank_high=k - tests.better.sum(axis=1),
        bootstrap_low=drawn_low,
        bootstrap_high=drawn_high,
        pairs=tests.pairs,
        pvalues=tests.pvalues,
        holm=tests.holm,
        better=tests.better,
        groups=tie_groups(rank, tests.better),
        is_clustered=by is not None,
        level=level,
    )


def rank_spans(
    Q: NDArray[np.float64],
    groups: Grouping,
    *,
    bounds: tuple[float, float] | None = None,
    higher_is_better: bool = True,
    level: float = 0.95,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ``rank_low`` and ``rank_high`` of `rank_intervals` alone.

    Args:
        Q, groups, bounds, higher_is_better, level: as for `rank_intervals`.
    """
    better = _test_pairs(Q, groups, bounds, higher_is_better=higher_is_better, level=level).better
    return 1 + better.sum(axis=0), Q.shape[1] - better.sum(axis=1)


@dataclass(frozen=True, slots=True)
class _PairTests:
    """Tests of all pairs; see `RankIntervals`."""

    pairs: PairwiseDifferences
    pvalues: NDArray[np.float64]
    holm: NDArray[np.float64]
    better: NDArray[np.bool_]


def _test_pairs(
    Q: NDArray[np.float64],
    groups: Grouping,
    bounds: tuple[float, float] | None,
    *,
    higher_is_better: bool,
    level: float,
) -> _PairTests:
    """Test all pairs, with all that is missing set against the row's model."""
    by = None if groups.problem else groups
    if bounds is None or not np.isnan(Q).any():
        pairs = compare_all_pairs(Q, by, "CR2")
    else:
        pairs = compare_worst_cases(Q, by, "CR2", worst=bounds[0], best=bounds[1])
    ahead = np.asarray(pairs.difference > 0 if higher_is_better else pairs.difference < 0)
    pvalues = pairs.pvalues if by is None else pairs.pvalues_clustered
    if by is None or by.n_groups == len(Q):
        worst, best = fill_bounds(Q, bounds)
        pvalues = np.maximum(pvalues, smallest_pvalues(worst, best, pairs, pvalues))
    pvalues = _directed_pvalues(pvalues, ahead, np.asarray(np.isnan(Q).any(axis=0)))
    holm = _adjust_pairs(pvalues)
    better = np.asarray((np.nan_to_num(holm, nan=1.0) <= 1 - level) & ahead)
    return _PairTests(pairs=pairs, pvalues=pvalues, holm=holm, better=better)


def fill_bounds(
    Q: NDArray[np.float64], bounds: tuple[float, float] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the table with the worst, and with the best value in place of each missing score.

    Args:
        Q: ``(n, k)`` scores; NaN = missing.
        bounds: worst and best value; None if no score is missing.
    """
    missing = np.isnan(Q)
    if bounds is None or not missing.any():
        return Q, Q
    return np.where(missing, bounds[0], Q), np.where(missing, bounds[1], Q)


def _directed_pvalues(
    pvalues: NDArray[np.float64], ahead: NDArray[np.bool_], incomplete: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return one p-value for each pair: the larger one of both extremes, 1 if missing scores can turn the difference.

    The worst case alone keeps the level. The opposite extreme has a larger difference, but may have a larger error.

    Args:
        pvalues: ``(k, k)`` of the worst case of the row.
        ahead: ``(k, k)`` whether the row has the better mean in its worst case.
        incomplete: ``(k,)`` columns with missing scores; p-values of other pairs are symmetric.
    """
    is_open = (incomplete[:, None] | incomplete) & ~ahead & ~ahead.T & ~np.isnan(pvalues)
    return np.where(is_open, 1.0, np.fmax(pvalues, pvalues.T))


def _adjust_pairs(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the p-values of all pairs adjusted by Holm; NaN on the diagonal."""
    i, j = np.triu_indices(len(pvalues), 1)
    holm = np.full(pvalues.shape, np.nan)
    holm[i, j] = holm[j, i] = holm_values(pvalues[i, j])
    return holm


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


def _bootstrap(
    worst: NDArray[np.float64],
    best: NDArray[np.float64],
    groups: Grouping | None,
    level: float,
    n_resamples: int,
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return percentiles of each model's rank when prompts, or whole clusters, are drawn with replacement.

    With strata, they are drawn within each stratum.

    Args:
        worst, best: ``(n, k)`` tables completed with either bound, large is good; equal if no score is missing.
        groups: clusters; None draws prompts.
        level, n_resamples, seed: as for `rank_intervals`.
    """
    k, is_complete = worst.shape[1], worst is best or bool((worst == best).all())
    if n_resamples == 0:
        return np.full(k, np.nan), np.full(k, np.nan)
    tables = worst if is_complete else np.hstack([worst, best])
    tables = np.ldexp(tables, -scale_exponent(tables))
    sums, sizes = tables, np.ones(len(tables))
    if groups is not None:
        sums, sizes = np.zeros((groups.n_groups, tables.shape[1])), groups.sizes.astype(np.float64)
        np.add.at(sums, groups.codes, tables)
    blocks, units = split_blocks(n_resamples, BLOCK), len(sums)
    slack = TIE_TOLERANCE * float(np.abs(tables).max(initial=0.0))

    order, first, number = _strata_of_draws(groups, units)

    def draw_units(rows: int, block: int) -> NDArray[np.int32]:
        rng = generator(seed, RESAMPLED_RANKS, block)
        if number is None:
            return rng.integers(0, units, (rows, units), dtype=np.int32)
        return order[first + (rng.random((rows, units), dtype=np.float32) * number).astype(np.int32)]

    def drawn(block: int) -> NDArray[np.float64]:
        rows = len(blocks[block])
        draws = draw_units(rows, block)
        draws += (np.arange(rows, dtype=np.int32) * units)[:, None]
        counts = np.bincount(draws.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)
        means = (counts @ sums) / (counts @ sizes)[:, None]
        if is_complete:
            return rank_rows(means, slack)
        low, high = means[:, :k], means[:, k:]
        return np.hstack([_rank_among(high, low, slack), _rank_among(low, high, slack)])

    ranks = np.concatenate(map_blocks(drawn, len(blocks)))
    ends = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    return ends[0][:k], ends[1][-k:]


def _strata_of_draws(
    groups: Grouping | None, units: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32] | None]:
    """Return the units by stratum; and for each, where its stratum starts among them, and how many units it has.

    The number of units is None without strata.
    """
    if groups is None or groups.n_strata == 1:
        return np.arange(units, dtype=np.int32), np.zeros(units, dtype=np.int32), None
    strata = groups.strata_of_groups
    order = np.argsort(strata, kind="stable").astype(np.int32)
    counts = np.bincount(strata)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return order, starts[strata[order]].astype(np.int32), counts[strata[order]].astype(np.float32)


def _rank_among(scores: NDArray[np.float64], rivals: NDArray[np.float64], slack: float) -> NDArray[np.float64]:
    """Return the rank of each score of ``scores`` in its row among the scores of the other columns in ``rivals``."""
    ranks = np.empty(scores.shape)
    for row, (values, row_rivals) in enumerate(zip(scores, rivals, strict=True)):
        ordered = np.sort(row_rivals)
        not_above = np.searchsorted(ordered, values + slack, "right")
        n_tied = not_above - np.searchsorted(ordered, values - slack, "left") - (np.abs(values - row_rivals) <= slack)
        ranks[row] = 1 + len(ordered) - not_above - (row_rivals > values + slack) + n_tied / 2
    return ranks


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
