"""How the cosines of a table's rows are distributed: bins, and statistics of the pairs themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import shuffle_scores
from analyses.numerics.similarity.cosine_pairs import BINS, CollectedCosines, CosineBins, CosineRows, bin_cosines
from analyses.numerics.similarity.distributions import PERCENTILES, STATISTICS
from analyses.numerics.similarity.dot_products import make_tiles
from analyses.numerics.similarity.score_table import PackedScores, ScoreTable, unpack_bits
from analyses.numerics.similarity.weighted_distributions import LAST_DIGIT, REACHED
from tracker.statistics.jit import jit

MIN_WIDTH = 1e-12
"""The bins cover at least this much."""
MARGIN = 4
"""Bins on both sides of the percentiles of earlier draws whose cosines are collected while pairs are binned."""
MAX_EXPONENT = 1000
"""Powers of two below this are numbers, and so are their inverses."""
MIN_ROOM = 1024
"""Least room for collected cosines."""
Counts = NDArray[Any]
"""int64, or float64 where rows have weights."""


@dataclass(frozen=True, slots=True)
class CosineLayout:
    """What a table and its draws have in common: measured cells, weights, and the range of cosines.

    Attributes:
        packed: where the measured cells are.
        sorted_scores: the measured scores, column after column, each in ascending order.
        names: "cosine", and "cosine_nonzero" if the table or a draw can have a row of zeros.
        patterns: ``(n_patterns, k)`` float64.
        lowest: lower edge of the first bin.
        n_pairs: pairs that share a measured cell.
        weights: ``(n,)`` float64, positive, of the packed rows; ``(0,)`` where all count the same.
    """

    packed: PackedScores
    sorted_scores: NDArray[np.float64]
    names: tuple[str, ...]
    patterns: NDArray[np.float64]
    lowest: float
    n_pairs: int
    weights: NDArray[np.float64]

    @classmethod
    def create(cls, table: ScoreTable) -> CosineLayout:
        """The layout of a table."""
        packed, weights = table.packed, table.packed_weights
        patterns = unpack_bits(packed.patterns, table.n_columns).astype(np.float64)
        sizes = np.diff(packed.starts)
        shared = (patterns @ patterns.T > 0) * np.outer(sizes, sizes)
        return cls(
            packed=packed,
            sorted_scores=table.sort_columns(),
            names=("cosine", "cosine_nonzero") if can_have_zero_rows(table) else ("cosine",),
            patterns=patterns,
            lowest=min_cosine(table),
            n_pairs=(int(shared.sum()) - table.n_rows) // 2,
            weights=np.empty(0) if weights is None else weights,
        )

    @property
    def is_weighted(self) -> bool:
        """Whether rows do not all count the same."""
        return self.weights.size > 0

    @property
    def width(self) -> float:
        """Of a bin."""
        return (1.0 - self.lowest) / BINS

    @property
    def zero_bin(self) -> int:
        """The bin that holds a cosine of 0."""
        return int(max(0.0, -self.lowest) * BINS / (1.0 - self.lowest))

    def shuffle(self, key: NDArray[np.uint64], permutation: int) -> NDArray[np.float64]:
        """The scores of one draw: ``(n, k)`` float64, each column shuffled among its measured cells, 0 elsewhere."""
        packed = self.packed
        return shuffle_scores(
            self.sorted_scores, packed.cells, packed.cell_starts, packed.bits.shape[0], key, permutation
        )

    def zero_pairs(self, scores: NDArray[np.float64]) -> int:
        """Pairs that share a cell and have a row whose scores are all zero."""
        is_zero = ~scores.any(axis=1)
        if not is_zero.any():
            return 0
        sizes = np.diff(self.packed.starts)
        zeros = np.add.reduceat(is_zero.astype(np.int64), self.packed.starts[:-1])
        share = self.patterns @ self.patterns.T > 0

        def pairs(members: NDArray[np.int64]) -> int:
            return int(((share * np.outer(members, members)).sum() - members.sum()) // 2)

        return pairs(sizes) - pairs(sizes - zeros)

    def zero_mass(self, is_zero: NDArray[np.bool_]) -> float:
        """Weight of the pairs that share a cell and have a row whose scores are all zero."""
        zeros = np.add.reduceat(np.where(is_zero, self.weights, 0.0), self.packed.starts[:-1])
        nonzero = np.add.reduceat(np.where(is_zero, 0.0, self.weights), self.packed.starts[:-1])
        itself = (self.weights[is_zero] ** 2).sum()
        share = self.patterns @ self.patterns.T > 0
        both = (share * np.outer(zeros, zeros)).sum() - itself
        return float(max(0.0, both) / 2 + (share * np.outer(zeros, nonzero)).sum())

    def bin(
        self,
        scores: NDArray[np.float64],
        weights: NDArray[np.float64],
        *,
        by_row: bool = False,
        collected: CollectedCosines | None = None,
    ) -> CosineBins:
        """All cosines of a table in bins.

        Args:
            scores: ``(n, k)`` float64, 0 where not measured, rows in the order of the layout.
            weights: ``(n,)`` of the rows, or ``(0,)``.
            by_row: whether to sum up the cosines of each row.
            collected: filled with the cosines in some bins.
        """
        n_rows = scores.shape[0] if by_row else 0
        n_masses = BINS if weights.size else 0
        bins = CosineBins(np.zeros(BINS, np.int64), np.zeros(2), np.zeros(n_masses), np.zeros(n_rows), np.zeros(n_rows))
        bin_cosines(self._rows(scores, weights), bins, collected or make_room(np.zeros(BINS, np.bool_), 0))
        return bins

    def collect(
        self, scores: NDArray[np.float64], weights: NDArray[np.float64], is_selected: NDArray[np.bool_], n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ``n`` cosines of a table in selected bins, and the weights of their pairs."""
        collected = make_room(is_selected, n)
        if n:
            nothing = np.zeros(0)
            bins = CosineBins(np.zeros(0, np.int64), nothing, nothing, nothing, nothing)
            bin_cosines(self._rows(scores, weights), bins, collected)
        return collected.cosines, collected.masses

    def mean_to_others(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(n,)``, the mean cosine of each row to those it shares a cell with; in the order before packing."""
        bins = self.bin(scores, self.weights, by_row=True)
        means = np.full(scores.shape[0], np.nan)
        has_partners = bins.partners > 0
        means[self.packed.order[has_partners]] = bins.sums[has_partners] / bins.partners[has_partners]
        return means

    def _rows(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> CosineRows:
        scores = scale_rows(np.ascontiguousarray(scores))
        return CosineRows(scores, make_tiles(scores), self.patterns, self.packed.starts, self.lowest, weights)


def make_room(is_selected: NDArray[np.bool_], n: int) -> CollectedCosines:
    """Room for ``n`` cosines in selected bins."""
    return CollectedCosines(is_selected, np.empty(n), np.empty(n), np.zeros(1, np.int64))


class ExpectedBins:
    """The bins that are expected to hold the percentiles of a draw: those of earlier draws, and some around.

    The cosines in these bins are collected in the pass that bins all pairs. A second pass is only needed for draws
    whose percentiles lie elsewhere. Which of the two happens changes no result.

    Args:
        seen: ``(BINS,)`` bool, the bins that held percentiles; shared by all threads, and changed.
    """

    def __init__(self, seen: NDArray[np.bool_]) -> None:
        self._seen = seen
        self._room = make_room(np.zeros(BINS, np.bool_), 0)

    def prepare(self) -> CollectedCosines:
        """Return room for the cosines in the expected bins."""
        self._room.n[0] = 0
        return self._room

    def select(
        self, is_selected: NDArray[np.bool_], lowest: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the collected cosines in some bins, and the weights of their pairs; None if some are not there."""
        room, n = self._room, int(self._room.n[0])
        if n > room.cosines.size or (is_selected & ~room.is_selected).any():
            return None
        cosines = room.cosines[:n]
        scale = BINS / (1.0 - lowest)
        chosen = is_selected[np.minimum(BINS - 1, ((cosines - lowest) * scale).astype(np.int64))]
        return cosines[chosen], room.masses[:n][chosen]

    def expect(self, is_selected: NDArray[np.bool_], counts: NDArray[np.int64]) -> None:
        """Expect the next percentiles near these bins too.

        Args:
            is_selected: the bins of this draw's percentiles.
            counts: ``(BINS,)`` pairs in each bin.
        """
        self._seen |= is_selected
        near = self._seen.copy()
        for place in np.flatnonzero(self._seen).tolist():
            near[max(0, place - MARGIN) : place + MARGIN + 1] = True
        n = int(counts[near].sum())
        self._room = make_room(near, max(MIN_ROOM, n + n // 2))


def scale_rows(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply each row by the power of two that brings its largest magnitude to [0.5, 1), so that squares are normal.

    Cosines do not change, not even in the last digit.
    """
    scaled = np.empty_like(scores)
    _fill_scaled(scores, scaled)
    return scaled


@jit
def _fill_scaled(scores: Any, scaled: Any) -> None:
    for i in range(scores.shape[0]):
        largest = 0.0
        for column in range(scores.shape[1]):
            largest = max(largest, abs(scores[i, column]))
        exponent = math.frexp(largest)[1]
        if abs(exponent) < MAX_EXPONENT:
            factor = math.ldexp(1.0, -exponent)
            for column in range(scores.shape[1]):
                scaled[i, column] = scores[i, column] * factor
        else:  # the factor itself may be too large for a number
            for column in range(scores.shape[1]):
                scaled[i, column] = math.ldexp(scores[i, column], -exponent)


def min_cosine(table: ScoreTable) -> float:
    """What no cosine of two rows falls below, whatever the order of each column's scores.

    Where every column keeps its sign and its scores differ by a factor of ``r`` at most, the cosine is at
    least ``2 / (r + 1 / r)``; without a common sign at least -1, and with zeros at least 0.

    Source: Polya & Szego's inequality, the converse of Cauchy's.
    """
    low, high = table.column_ranges
    if (np.sign(low) * np.sign(high) < 0).any():
        return -1.0
    small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    if not small.all():
        return 0.0
    with np.errstate(over="ignore"):
        factor = float((large / small).max())
    return max(0.0, min(2 / (factor + 1 / factor) - LAST_DIGIT, 1 - MIN_WIDTH))


def can_have_zero_rows(table: ScoreTable) -> bool:
    """Whether a table with these columns and missing cells, shuffled or not, can have a row of zeros."""
    has_zero = (table.Q == 0).any(axis=0)
    return bool((has_zero | table.missing).all(axis=1).any())


@dataclass(frozen=True, slots=True)
class CosineDistribution:
    """One table's distribution.

    Attributes:
        nonzero: ``(BINS,)`` pairs of rows that are not all zero, or their weight.
        zero_pairs: pairs with a row of zeros, or their weight.
        zero_bin: the bin of their cosine, 0.
        statistics: ``(n_names, 4)``.
    """

    nonzero: Counts
    zero_pairs: float
    zero_bin: int
    statistics: NDArray[np.float64]

    def counts(self, name: str) -> Counts:
        """Counts of "cosine" or of "cosine_nonzero"."""
        if name == "cosine_nonzero":
            return self.nonzero
        counts = self.nonzero.copy()
        counts[self.zero_bin] += self.zero_pairs
        return counts


def describe_cosines(
    scores: NDArray[np.float64], layout: CosineLayout, scratch: NDArray[np.int64], expected: ExpectedBins
) -> CosineDistribution:
    """One table's distribution.

    Args:
        scores: ``(n, k)`` float64, 0 where not measured, rows in the order of the layout.
        layout: of the observed table.
        scratch: ``(BINS,)``; spares a fresh page of memory for each draw.
        expected: of the draws before; extended by those of this draw.
    """
    if layout.is_weighted:
        return _describe_weighted(scores, layout, expected)
    return _describe(scores, layout, scratch, expected)


def _collect(
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    layout: CosineLayout,
    is_selected: NDArray[np.bool_],
    counts: NDArray[np.int64],
    expected: ExpectedBins,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The cosines of a table in selected bins, and the weights of their pairs, after its pairs have been binned."""
    present = expected.select(is_selected, layout.lowest)
    if present is not None:
        return present
    expected.expect(is_selected, counts)
    return layout.collect(scores, weights, is_selected, int(counts[is_selected].sum()))


def _describe(
    scores: NDArray[np.float64], layout: CosineLayout, scratch: NDArray[np.int64], expected: ExpectedBins
) -> CosineDistribution:
    """One table's distribution where pairs count the same."""
    binned = layout.bin(scores, layout.weights, collected=expected.prepare())
    counts = binned.counts
    zero_pairs = layout.zero_pairs(scores)
    nonzero = counts.copy()
    nonzero[layout.zero_bin] -= zero_pairs
    statistics = np.full((len(layout.names), len(STATISTICS)), np.nan)
    counts_of = {"cosine": counts, "cosine_nonzero": nonzero}
    places: dict[tuple[str, int], tuple[NDArray[np.int64], NDArray[np.int64], float]] = {}
    is_selected = np.zeros(BINS, np.bool_)
    for name in layout.names:
        passed = np.cumsum(counts_of[name], out=scratch)
        total = int(passed[-1])
        for p, (numerator, denominator) in enumerate(PERCENTILES if total else ()):
            low, part = divmod((total - 1) * numerator, denominator)
            ranks = np.array([low, min(low + 1, total - 1)])
            bins = np.searchsorted(passed, ranks, side="right")
            places[name, p] = (bins, ranks - passed[bins] + counts_of[name][bins], part / denominator)
            is_selected[bins] = True
    selected = np.flatnonzero(is_selected)
    cosines, _ = _collect(scores, layout.weights, layout, is_selected, counts, expected)
    cosines.sort()
    for i, name in enumerate(layout.names):
        total = int(counts_of[name].sum())
        if not total:
            continue
        # Pairs with a row of zeros are 1 from 1.
        n_zero_pairs = int(counts.sum()) - total
        gap, square = (binned.moments - n_zero_pairs) / total
        statistics[i, 0], statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        of_pairs = _drop_zeros(cosines, zero_pairs) if name == "cosine_nonzero" else cosines
        starts = np.concatenate([[0], np.cumsum(counts_of[name][selected])])
        for p in range(len(PERCENTILES)):
            bins, ranks, weight = places[name, p]
            a, b = of_pairs[starts[np.searchsorted(selected, bins)] + ranks]
            statistics[i, 1 + p] = a + (b - a) * weight
    return CosineDistribution(nonzero, zero_pairs, layout.zero_bin, statistics)


def _drop_zeros(cosines: NDArray[np.float64], n_zeros: int) -> NDArray[np.float64]:
    """Sorted similarities without ``n_zeros`` of the zeros, if their bin is among them."""
    at = int(np.searchsorted(cosines, 0.0))
    n_present = int(np.searchsorted(cosines, 0.0, side="right")) - at
    return np.delete(cosines, slice(at, at + min(n_zeros, n_present)))


def _describe_weighted(scores: NDArray[np.float64], layout: CosineLayout, expected: ExpectedBins) -> CosineDistribution:
    """The distribution of weighted pairs. Rows of zeros weigh nothing in the passes and are added where they count."""
    is_zero = np.asarray(~scores.any(axis=1))
    weights = np.where(is_zero, 0.0, layout.weights)
    binned = layout.bin(scores, weights, collected=expected.prepare())
    counts, masses = binned.counts, binned.masses
    statistics = np.full((len(layout.names), len(STATISTICS)), np.nan)
    distribution = CosineDistribution(masses, layout.zero_mass(is_zero), layout.zero_bin, statistics)
    places: dict[tuple[int, int], tuple[int, float]] = {}
    is_selected = np.zeros(BINS, np.bool_)
    for i, name in enumerate(layout.names):
        passed = np.cumsum(distribution.counts(name))
        for p, (numerator, denominator) in enumerate(PERCENTILES if passed[-1] else ()):
            share = (numerator / denominator - REACHED) * passed[-1]
            place = int(np.searchsorted(passed, share))
            places[i, p] = (place, share - (passed[place - 1] if place else 0.0))
            is_selected[place] = True
    selected = np.flatnonzero(is_selected)
    cosines, cosine_masses = _collect(scores, weights, layout, is_selected, counts, expected)
    order = np.argsort(cosines, kind="stable")
    cosines, cosine_masses = cosines[order], cosine_masses[order]
    starts = dict(zip(selected.tolist(), np.cumsum([0, *counts[selected]])[:-1].tolist(), strict=True))
    for i, name in enumerate(layout.names):
        zero_mass = distribution.zero_pairs if name == "cosine" else 0.0
        total = masses.sum() + zero_mass
        if not total:
            continue
        gap, square = (binned.moments + zero_mass) / total
        statistics[i, 0], statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        for p in range(len(PERCENTILES)):
            place, share = places[i, p]
            place_range = slice(starts[place], starts[place] + int(counts[place]))
            values, heavy = cosines[place_range], cosine_masses[place_range]
            if place == layout.zero_bin and zero_mass:
                at = int(np.searchsorted(values, 0.0))
                values, heavy = np.insert(values, at, 0.0), np.insert(heavy, at, zero_mass)
            values, heavy = values[heavy > 0], heavy[heavy > 0]
            last = values.size - 1
            statistics[i, 1 + p] = values[min(last, int(np.searchsorted(np.cumsum(heavy), share)))]
    return distribution
