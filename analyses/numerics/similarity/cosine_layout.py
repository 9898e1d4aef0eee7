"""What a table of any scores and its draws have in common, and the passes over their cosines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import shuffle_scores
from analyses.numerics.similarity.cosine_pairs import BINS, CollectedCosines, CosineBins, CosineRows, bin_cosines
from analyses.numerics.similarity.dot_products import make_tiles
from analyses.numerics.similarity.score_table import PackedScores, ScoreTable, unpack_bits
from analyses.numerics.similarity.weighted_distributions import LAST_DIGIT
from tracker.statistics.jit import jit

MIN_WIDTH = 1e-12
"""The bins cover at least this much."""
MAX_EXPONENT = 1000
"""Powers of two below this are numbers, and so are their inverses."""


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
    def count_type(self) -> type[np.integer[Any]]:
        """Of the pairs in a bin: half as much memory is read and written where it can count all pairs."""
        return np.int32 if self.n_pairs <= np.iinfo(np.int32).max else np.int64

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
        if "cosine_nonzero" not in self.names:
            return 0
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
        counts, masses = np.zeros(BINS, self.count_type), np.zeros(n_masses)
        bins = CosineBins(counts, np.zeros(2), masses, np.zeros(n_rows), np.zeros(n_rows))
        bin_cosines(self._rows(scores, weights), bins, collected or make_room(np.zeros(BINS, np.bool_), 0))
        return bins

    def collect(
        self, scores: NDArray[np.float64], weights: NDArray[np.float64], is_selected: NDArray[np.bool_], n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ``n`` cosines of a table in selected bins, and the weights of their pairs."""
        collected = make_room(is_selected, n)
        if n:
            nothing = np.zeros(0)
            bins = CosineBins(np.zeros(0, self.count_type), nothing, nothing, nothing, nothing)
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
