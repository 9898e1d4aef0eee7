"""Counts the pairs of a binary table's rows on the lattices of their similarities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.bit_tables import BitTable
from analyses.numerics.similarity.pair_counts import APART, EMPTY, SAME, SIDES, count_by_pattern, count_pair_by_pair
from analyses.numerics.similarity.pair_lattice import (
    Lattice,
    cosine_lattice,
    cosine_starts,
    hamming_lattice,
    jaccard_lattice,
    no_cosine_lattice,
)
from analyses.numerics.similarity.pair_weights import weigh_by_pattern

MANY_PATTERNS = 64
"""With more patterns of missing cells than this, pairs are counted one by one."""

Counts = NDArray[Any]
"""int64, or float64 where rows have weights."""


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts the pairs of one table's rows, whatever their scores.

    Attributes:
        table: whose missing cells, and rows if none are given, are counted.
        lattices: of Hamming, cosine and Jaccard, in the order of the counts.
        starts: where the cosine's cells begin.
        weights: ``(n,)`` float64, positive, of the table's rows; a pair counts the product of two. None: each counts 1,
            and counts are integers.
    """

    table: BitTable
    lattices: tuple[Lattice, Lattice, Lattice]
    starts: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, table: BitTable, *, cosine: bool, weights: NDArray[np.float64] | None = None) -> Counter:
        """A counter for tables of this shape with these missing cells, with or without the cosine.

        Args:
            table: as above.
            cosine: whether its lattice is wanted.
            weights: of the rows that ``table`` was made from, in their order; or None.
        """
        k = table.n_columns
        lattices = (
            hamming_lattice(k, table.overlaps()),
            cosine_lattice(k) if cosine else no_cosine_lattice(k),
            jaccard_lattice(k),
        )
        starts = cosine_starts(k) if cosine else np.zeros((k + 1, k + 1), np.int64)
        return cls(table, lattices, starts, None if weights is None else weights[table.order])

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the counts of each lattice begin, and where the last end."""
        return np.cumsum([0, *(lattice.size for lattice in self.lattices)])

    @property
    def dtype(self) -> type[np.int64] | type[np.float64]:
        """Of the counts."""
        return np.int64 if self.weights is None else np.float64

    def count(self, rows: NDArray[np.uint64]) -> tuple[Counts, Counts]:
        """Counts of all lattices in one vector, and the side counts."""
        if self.table.n_patterns > MANY_PATTERNS:
            return self._one_by_one(rows, np.empty((0, 3)), np.empty(0, self.dtype))
        counts, sides = np.empty(self.offsets[-1], self.dtype), np.empty(SIDES, self.dtype)
        groups = self.table.patterns, self.table.starts
        if self.weights is None:
            count_by_pattern(rows, *groups, *self._indexes(), counts, sides)
        else:
            weigh_by_pattern(rows, self.weights, *groups, *self._indexes(), counts, sides)
        return counts, sides

    def n_pairs(self) -> int:
        """Pairs of rows that share a cell."""
        counts, _ = replace(self, weights=None).count(self.table.rows)
        return int(counts[: self.offsets[1]].sum())

    def mean_to_others(self) -> NDArray[np.float64]:
        """``(n, 3)``: mean similarity of each row to those it shares cells with; in the order before packing."""
        n = self.table.rows.shape[0]
        sums, partners = np.zeros((n, 3)), np.zeros(n, self.dtype)
        self._one_by_one(self.table.rows, sums, partners)
        means = np.full((n, 3), np.nan)
        some = partners > 0
        means[self.table.order[some]] = sums[some] / partners[some, None]
        return means

    def of_similarity(self, name: str, counts: Counts, sides: Counts) -> Counts:
        """Counts of one of `SIMILARITIES` from counts of all lattices; both ``(n, ...)``."""
        which = {"hamming": 0, "cosine": 1, "jaccard": 2}[name.split("_")[0]]
        mine = counts[:, self.offsets[which] : self.offsets[which + 1]]
        if name == "cosine_nonzero":
            mine = mine.copy()
            mine[:, 0] = sides[:, APART]
        elif name == "jaccard_empty0":
            mine = mine.copy()
            mine[:, 0] += sides[:, EMPTY]
            mine[:, -1] = sides[:, SAME]
        return mine

    def lattice(self, name: str) -> Lattice:
        """The lattice of one of `SIMILARITIES`."""
        return self.lattices[("hamming", "cosine", "jaccard").index(name.split("_")[0])]

    def _indexes(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        hamming, cosine, jaccard = self.lattices
        return hamming.index, jaccard.index, cosine.index, self.starts, self.offsets

    def _one_by_one(
        self, rows: NDArray[np.uint64], sums: NDArray[np.float64], partners: Counts
    ) -> tuple[Counts, Counts]:
        counts, sides = np.empty(self.offsets[-1], self.dtype), np.empty(SIDES, self.dtype)
        values = np.concatenate([lattice.values for lattice in self.lattices])
        weights = np.ones(rows.shape[0], np.int64) if self.weights is None else self.weights
        count_pair_by_pair(
            rows, self.table.masks, weights, *self._indexes(), counts, sides, values, sums, partners
        )  # fmt: skip
        return counts, sides
