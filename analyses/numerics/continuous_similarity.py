"""Cosine similarity of the rows of a continuous table, against tables with shuffled columns.

Every pair is computed, none is stored: one pass sums and bins, a second keeps only the pairs in the
bins that hold the wanted percentiles, so that these are exact. Sums run in a fixed order, so results
are the same bytes for any number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.bit_tables import BitTable, unpacked
from analyses.numerics.cosine_pairs import BINS, count_cosines
from analyses.numerics.distributions import ATOMIC, PERCENTILES, STATISTICS, compare_distances
from analyses.numerics.null_tables import shuffled_scores
from analyses.numerics.resampling import Comparison, blocks_of, compared, map_blocks
from analyses.numerics.similarity import SimilarityTest, SimilarityTests
from analyses.numerics.streams import stream_key

TIE = 1e-10
"""Statistics closer than this are ties, as a share of what they are made of: the mean of 1 - cosine for means
and percentiles, its square for variances. Rounding then never makes a p-value smaller, and tables whose cosines
are all near 1 can still be told apart."""
LAST_DIGIT = 1e-15
"""What rounding does to a cosine."""
NARROWEST = 1e-12
"""The bins cover at least this much."""

DRAWS_AT_ONCE = 50
"""Draws whose counts lie side by side in memory."""

ONE_VARYING_COLUMN = "only one model has scores that vary, so shuffling only reorders the prompts"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the measured cells are; the same for the observed table and every draw.

    Attributes:
        bits: the pattern of measured cells, packed.
        patterns: ``(n_patterns, k)`` float64.
        lowest: lower edge of the first bin.
        n_pairs: pairs that share a measured cell.
    """

    bits: BitTable
    patterns: NDArray[np.float64]
    lowest: float
    n_pairs: int

    @classmethod
    def of(cls, table: NDArray[np.float64]) -> Layout:
        """The layout of a ``(n, k)`` table with NaN where not measured."""
        bits = BitTable.of(np.where(np.isnan(table), np.nan, 1.0))
        patterns = unpacked(bits.patterns, table.shape[1]).astype(np.float64)
        sizes = np.diff(bits.starts)
        shared = (patterns @ patterns.T > 0) * np.outer(sizes, sizes)
        n_pairs = (int(shared.sum()) - table.shape[0]) // 2
        return cls(bits, patterns, least_cosine(table), n_pairs)

    @property
    def width(self) -> float:
        """Of a bin."""
        return (1.0 - self.lowest) / BINS

    def zero_pairs(self, scores: NDArray[np.float64]) -> int:
        """Pairs that share a cell and have a row whose scores are all zero."""
        sizes = np.diff(self.bits.starts)
        zeros = np.add.reduceat((~scores.any(axis=1)).astype(np.int64), self.bits.starts[:-1])
        share = self.patterns @ self.patterns.T > 0

        def pairs(members: NDArray[np.int64]) -> int:
            return int(((share * np.outer(members, members)).sum() - members.sum()) // 2)

        return pairs(sizes) - pairs(sizes - zeros)

    def run(
        self, scores: NDArray[np.float64], counts: NDArray[np.int64], moments: NDArray[np.float64],
        wanted: NDArray[np.bool_], found: NDArray[np.float64], sums: NDArray[np.float64],
        partners: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """One pass of `count_cosines`."""
        count_cosines(
            scores, np.ascontiguousarray(scores.T), self.patterns, self.bits.starts, self.lowest, counts, moments,
            wanted, found, sums, partners,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """One table's distribution.

    Attributes:
        counts: ``(BINS,)`` int64.
        zero_pairs: pairs with a row of zeros.
        statistics: ``(n_similarities, 4)``.
    """

    counts: NDArray[np.int64]
    zero_pairs: int
    statistics: NDArray[np.float64]

    def without_zero_rows(self, lowest: float) -> NDArray[np.int64]:
        """Counts without the pairs that have a row of zeros."""
        counts = self.counts.copy()
        counts[int(max(0.0, -lowest) * BINS / (1.0 - lowest))] -= self.zero_pairs
        return counts


def _describe(scores: NDArray[np.float64], layout: Layout, names: tuple[str, ...], scratch: NDArray[np.int64]) -> Drawn:
    """One table's distribution; ``scratch`` is ``(BINS,)`` and spares a fresh page of memory for each draw."""
    counts, moments, none = np.zeros(BINS, np.int64), np.zeros(2), np.empty(0)
    no_one = np.empty(0, np.int64)
    layout.run(scores, counts, moments, np.empty(0, np.bool_), none, none, no_one)
    drawn = Drawn(counts, layout.zero_pairs(scores), np.full((len(names), len(STATISTICS)), np.nan))
    of_name = {"cosine": counts, "cosine_nonzero": drawn.without_zero_rows(layout.lowest)}
    places: dict[tuple[str, int], tuple[NDArray[np.int64], NDArray[np.int64], float]] = {}
    wanted = np.zeros(BINS, np.bool_)
    for name in names:
        passed = np.cumsum(of_name[name], out=scratch)
        total = int(passed[-1])
        for p, (numerator, denominator) in enumerate(PERCENTILES if total else ()):
            low, part = divmod((total - 1) * numerator, denominator)
            ranks = np.array([low, min(low + 1, total - 1)])
            bins = np.searchsorted(passed, ranks, side="right")
            places[name, p] = (bins, ranks - passed[bins] + of_name[name][bins], part / denominator)
            wanted[bins] = True
    chosen = np.flatnonzero(wanted)
    found = np.empty(int(counts[chosen].sum()))
    if found.size:
        layout.run(scores, counts, moments, wanted, found, none, no_one)
    found.sort()
    for i, name in enumerate(names):
        total = int(of_name[name].sum())
        if not total:
            continue
        # Pairs with a row of zeros are 1 from 1.
        left_out = int(counts.sum()) - total
        gap, square = (moments - left_out) / total
        drawn.statistics[i, 0], drawn.statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        mine = _without_zeros(found, drawn.zero_pairs) if name == "cosine_nonzero" else found
        starts = np.concatenate([[0], np.cumsum(of_name[name][chosen])])
        for p in range(len(PERCENTILES)):
            bins, ranks, weight = places[name, p]
            a, b = mine[starts[np.searchsorted(chosen, bins)] + ranks]
            drawn.statistics[i, 1 + p] = a + (b - a) * weight
    return drawn


def _without_zeros(found: NDArray[np.float64], n_zeros: int) -> NDArray[np.float64]:
    """Sorted similarities without ``n_zeros`` of the zeros, if their bin is among them."""
    at = int(np.searchsorted(found, 0.0))
    there = int(np.searchsorted(found, 0.0, side="right")) - at
    return np.delete(found, slice(at, at + min(n_zeros, there)))


def _draw_block(
    block: int, *, runs: list[range], ordered: NDArray[np.float64], layout: Layout, names: tuple[str, ...],
    key: NDArray[np.uint64],
) -> list[Drawn]:  # fmt: skip
    bits, scratch = layout.bits, np.empty(BINS, np.int64)
    return [
        _describe(
            shuffled_scores(ordered, bits.cells, bits.cell_starts, bits.rows.shape[0], key, permutation),
            layout, names, scratch,
        )
        for permutation in runs[block]
    ]  # fmt: skip


def least_cosine(table: NDArray[np.float64]) -> float:
    """What no cosine of two rows falls below, whatever the order of each column's scores.

    Where every column keeps its sign and its scores differ by a factor of ``r`` at most, the cosine is at
    least ``2 / (r + 1 / r)``; without a common sign at least -1, and with zeros at least 0.

    Source: Polya & Szego's inequality, the converse of Cauchy's.
    """
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    if (np.sign(low) * np.sign(high) < 0).any():
        return -1.0
    small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    if not small.all():
        return 0.0
    factor = float((large / small).max())
    return max(0.0, min(2 / (factor + 1 / factor) - LAST_DIGIT, 1 - NARROWEST))


def can_have_zero_rows(table: NDArray[np.float64]) -> bool:
    """Whether a table with these columns and missing cells, shuffled or not, can have a row of zeros."""
    has_zero = (table == 0).any(axis=0)
    return bool((has_zero | np.isnan(table)).all(axis=1).any())


def continuous_similarities(table: NDArray[np.float64], *, n_permutations: int, seed: int) -> SimilarityTests:
    """Compare the cosines of a continuous table's rows with those after shuffling its columns.

    "cosine" gives a row of zeros similarity 0 to all others; "cosine_nonzero" leaves such rows out and
    is computed where the table or a draw can have one.

    Args:
        table: ``(n, k)`` float64, NaN where missing, ``n >= 2``; every row and column has a measured cell.
        n_permutations: draws, at least 1.
        seed: of all draws.
    """
    layout = Layout.of(table)
    bits = layout.bits
    scores = np.ascontiguousarray(np.nan_to_num(table[bits.order]))
    names = ("cosine", "cosine_nonzero") if can_have_zero_rows(table) else ("cosine",)
    columns = np.repeat(np.arange(table.shape[1]), np.diff(bits.cell_starts))
    measured = scores[bits.cells, columns]
    ordered = measured[np.lexsort((measured, columns))]
    runs = blocks_of(n_permutations, max(1, min(20, 20_000_000 // (layout.n_pairs + 1))))
    task = partial(_draw_block, runs=runs, ordered=ordered, layout=layout, names=names, key=stream_key(seed))
    draws = [drawn for block in map_blocks(task, len(runs)) for drawn in block]
    observed = _describe(scores, layout, names, np.empty(BINS, np.int64))
    varying = int((np.nanmax(table, axis=0) > np.nanmin(table, axis=0)).sum())
    reason = ONE_VARYING_COLUMN if varying < 2 and bits.is_complete else ""
    n = table.shape[0]
    return SimilarityTests(
        tests=tuple(_test(name, i, layout, observed, draws, reason) for i, name in enumerate(names)),
        n_pairs=layout.n_pairs,
        n_disjoint=n * (n - 1) // 2 - layout.n_pairs,
        mean_to_others={"cosine": _mean_to_others(scores, layout)},
    )


def _mean_to_others(scores: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    n = scores.shape[0]
    sums, partners, means = np.zeros(n), np.zeros(n, np.int64), np.full(n, np.nan)
    layout.run(scores, np.zeros(BINS, np.int64), np.zeros(2), np.empty(0, np.bool_), np.empty(0), sums, partners)
    some = partners > 0
    means[layout.bits.order[some]] = sums[some] / partners[some]
    return means


def _ties(observed: NDArray[np.float64], null: NDArray[np.float64]) -> NDArray[np.float64]:
    """How close each of `STATISTICS` must be to be a tie; the same whichever table is called the observed one."""
    means = np.append(null[:, 0], observed[0])
    spread = float(1 - means[np.isfinite(means)].min(initial=1.0))
    near = TIE * spread + LAST_DIGIT
    return np.array([near, near, near, near * spread])


def _test(name: str, i: int, layout: Layout, observed: Drawn, draws: list[Drawn], reason: str) -> SimilarityTest:
    def counts_of(drawn: Drawn) -> NDArray[np.int64]:
        return drawn.without_zero_rows(layout.lowest) if name == "cosine_nonzero" else drawn.counts

    mine = counts_of(observed)
    pooled = np.zeros(BINS, np.int64)
    for drawn in draws:
        pooled += counts_of(drawn)
    few = np.empty((min(DRAWS_AT_ONCE, len(draws)), BINS), np.int64)
    distances = []
    for run in blocks_of(len(draws), DRAWS_AT_ONCE):
        for place, b in enumerate(run):
            few[place] = counts_of(draws[b])
        distances.append(compare_distances(mine, few[: len(run)], mine + pooled))
    null = np.stack([drawn.statistics[i] for drawn in draws])
    difference = np.nan_to_num(null - observed.statistics[i])
    signs = np.where(np.abs(difference) < _ties(observed.statistics[i], null), 0, np.sign(difference)).astype(np.int8)
    comparisons: dict[str, Comparison] = {
        statistic: compared(observed.statistics[i, s], null[:, s], signs[:, s], reason, on_an_atom=statistic in ATOMIC)
        for s, statistic in enumerate(STATISTICS)
    }
    comparisons["ks_d"] = compared(
        distances[0][0], np.concatenate([d[1] for d in distances]), np.concatenate([d[2] for d in distances]), reason
    )
    return SimilarityTest(
        name=name,
        values=np.asarray(layout.lowest + layout.width * np.arange(BINS), dtype=np.float64),
        width=layout.width,
        observed=mine,
        pooled=pooled,
        comparisons=comparisons,
    )
