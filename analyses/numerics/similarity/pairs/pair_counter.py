"""Counts the pairs of a binary table's rows on the lattices of their similarities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.bit_tables import BitTable
from analyses.numerics.similarity.lattices import Lattice, LatticeCells, join_cells
from analyses.numerics.similarity.pairs.pair_by_pair import RowSums, count_pair_by_pair
from analyses.numerics.similarity.pairs.pair_counts import N_SIDES, PairCounts, RowGroups, count_by_pattern
from analyses.numerics.similarity.pairs.pair_weights import weigh_by_pattern
from analyses.numerics.similarity.similarities import Counts, Similarity

MAX_PATTERNS = 64
"""With more patterns of missing cells than this, pairs are counted one by one."""


@dataclass(frozen=True, slots=True)
class PairCounter:
    """Counts the pairs of one table's rows, whatever their scores.

    Attributes:
        table: whose missing cells are counted.
        lattices: by the choice of the similarity, in the order of the counts.
        cells: of the lattices.
        weights: ``(n,)`` float64, positive, of the table's rows; a pair counts the product of two. None: each counts 1,
            and counts are integers.
    """

    table: BitTable
    lattices: dict[str, Lattice]
    cells: LatticeCells
    weights: NDArray[np.float64] | None = None

    @classmethod
    def create(
        cls, table: BitTable, similarities: tuple[Similarity, ...], weights: NDArray[np.float64] | None = None
    ) -> PairCounter:
        """A counter for tables of this shape with these missing cells.

        Args:
            table: as above.
            similarities: to count.
            weights: of the rows that ``table`` was made from, in their order; or None.
        """
        overlaps = table.overlaps()
        makers = {similarity.choice: similarity.lattice for similarity in similarities}
        lattices = {choice: make(table.n_columns, overlaps) for choice, make in makers.items()}
        cells = join_cells(list(lattices.values()))
        return cls(table, lattices, cells, None if weights is None else weights[table.order])

    @property
    def n_values(self) -> int:
        """Number of values of all lattices."""
        return sum(lattice.size for lattice in self.lattices.values())

    @property
    def dtype(self) -> type[np.int64] | type[np.float64]:
        """Of the counts."""
        return np.int64 if self.weights is None else np.float64

    def count(self, rows: NDArray[np.uint64]) -> PairCounts:
        """Counts of all lattices in one vector, and the side counts."""
        if self.table.n_patterns > MAX_PATTERNS:
            return self.count_pair_by_pair(rows)
        counts = self._new_counts()
        groups = RowGroups(self.table.patterns, self.table.starts)
        if self.weights is None:
            count_by_pattern(rows, groups, self.cells, counts)
        else:
            weigh_by_pattern(rows, self.weights, groups, self.cells, counts)
        return counts

    def count_pair_by_pair(self, rows: NDArray[np.uint64], row_sums: RowSums | None = None) -> PairCounts:
        """The same counts, slowly; and sums for each row."""
        counts = self._new_counts()
        weights = np.ones(rows.shape[0], np.int64) if self.weights is None else self.weights
        row_sums = row_sums or RowSums(np.empty((0, 0)), np.empty(0, self.dtype), np.empty(0))
        count_pair_by_pair(rows, self.table.masks, weights, self.cells, counts, row_sums)
        return counts

    def _new_counts(self) -> PairCounts:
        return PairCounts(np.empty(self.n_values, self.dtype), np.empty(N_SIDES, self.dtype))

    def n_pairs(self) -> int:
        """Pairs of rows that share a cell."""
        counts = replace(self, weights=None).count(self.table.rows)
        return int(counts.values[: next(iter(self.lattices.values())).size].sum())

    def mean_to_others(self) -> dict[str, NDArray[np.float64]]:
        """By choice, the mean similarity of each row to those it shares cells with; in the order before packing."""
        n = self.table.rows.shape[0]
        values = np.concatenate([lattice.values for lattice in self.lattices.values()])
        row_sums = RowSums(np.zeros((n, len(self.lattices))), np.zeros(n, self.dtype), values)
        self.count_pair_by_pair(self.table.rows, row_sums)
        means = np.full((n, len(self.lattices)), np.nan)
        has_partners = row_sums.partners > 0
        means[self.table.order[has_partners]] = row_sums.sums[has_partners] / row_sums.partners[has_partners, None]
        return dict(zip(self.lattices, means.T, strict=True))

    def select(self, similarity: Similarity, values: Counts, sides: Counts) -> Counts:
        """Counts of one similarity from counts of all lattices; both ``(n, ...)``."""
        stop = 0
        for choice, lattice in self.lattices.items():
            start, stop = stop, stop + lattice.size
            if choice == similarity.choice:
                break
        counts = values[:, start:stop]
        if similarity.adjust:
            counts = counts.copy()
            similarity.adjust(counts, sides)
        return counts

    def lattice(self, similarity: Similarity) -> Lattice:
        """The lattice of one similarity."""
        return self.lattices[similarity.choice]
