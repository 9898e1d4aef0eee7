"""What a table of any scores and its draws have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import shuffle_scores
from analyses.numerics.similarity.cosines.cosine_pairs import BINS
from analyses.numerics.similarity.cosines.rounded_rows import round_rows
from analyses.numerics.similarity.cosines.scaled_rows import needs_scaling, scale_rows
from analyses.numerics.similarity.cosines.single_precision import MAX_ERROR, CollectedPairs, bin_rounded
from analyses.numerics.similarity.score_table import PackedScores, ScoreTable, unpack_bits
from analyses.numerics.similarity.weighted_distributions import LAST_DIGIT

MIN_WIDTH = 1e-12
"""The bins cover at least this much."""
MAX_COMPUTED = 1 / 8
"""Share of the cosines that may be computed again in double precision."""
SAMPLE_ROWS = 1000
"""Rows at most whose cosines show that share."""
COLUMN_SHARE = 2
"""Times as many rows as columns, at least, for single precision."""
MAX_COLUMNS = 2_000
"""Columns at most for single precision: sums of their products take 64 MB for each thread."""


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
        in_single_precision: whether single precision decides the bins of most cosines.
        needs_scaling: whether scores are so small or large that their squares are not numbers.
        weights: ``(n,)`` float64, positive, of the packed rows; ``(0,)`` where all count the same.
    """

    packed: PackedScores
    sorted_scores: NDArray[np.float64]
    names: tuple[str, ...]
    patterns: NDArray[np.float64]
    lowest: float
    n_pairs: int
    in_single_precision: bool
    needs_scaling: bool
    weights: NDArray[np.float64]

    @classmethod
    def create(cls, table: ScoreTable) -> CosineLayout:
        """The layout of a table."""
        packed, weights = table.packed, table.packed_weights
        patterns = unpack_bits(packed.patterns, table.n_columns).astype(np.float64)
        sizes = np.diff(packed.starts)
        shared = (patterns @ patterns.T > 0) * np.outer(sizes, sizes)
        lowest = min_cosine(table)
        return cls(
            packed=packed,
            sorted_scores=table.sort_columns(),
            names=("cosine", "cosine_nonzero") if can_have_zero_rows(table) else ("cosine",),
            patterns=patterns,
            lowest=lowest,
            n_pairs=(int(shared.sum()) - table.n_rows) // 2,
            in_single_precision=_suits_single(table, lowest),
            needs_scaling=bool(needs_scaling(table.packed_scores.ravel())),
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


def _suits_single(table: ScoreTable, lowest: float) -> bool:
    """Whether single precision is faster: whether it decides the bins of most cosines of some of the observed rows.

    It does not where rows are so similar that bins are narrow, or where many cosines lie at edges of bins. With as many
    columns as rows, the products of columns take longer than those of rows.
    """
    if not table.packed.is_complete or table.weights is not None:
        return False
    if table.n_columns > min(MAX_COLUMNS, table.n_rows // COLUMN_SHARE):
        return False
    step = -(-table.n_rows // SAMPLE_ROWS)
    rows = round_rows(scale_rows(np.ascontiguousarray(table.packed_scores[::step])), lowest)
    if float(rows.errors.max()) > MAX_ERROR:
        return False
    n = int(rows.errors.size)
    nothing = CollectedPairs.with_room(np.zeros(BINS, np.bool_), 0, n)
    return bin_rounded(rows, np.zeros(BINS, np.int64), nothing) <= MAX_COMPUTED * (n * (n - 1) // 2)


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
