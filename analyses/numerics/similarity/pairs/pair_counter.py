"""Counts the pairs of a binary table's rows on the lattices of their similarities."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.lattices import Lattice, LatticeCells, cell_position, join_cells
from analyses.numerics.similarity.pairs.pair_counts import (
    BOTH_EMPTY,
    DISJOINT_ONES,
    N_SIDES,
    NO_OVERLAP,
    SAME_ONES,
    PairCounts,
    count_by_pattern,
)
from analyses.numerics.similarity.pairs.pair_weights import weigh_by_pattern
from analyses.numerics.similarity.score_table import PackedScores, ScoreTable
from analyses.numerics.similarity.similarities import Counts, Similarity
from tracker.statistics.jit import bit_counts, jit, popcount

MAX_PATTERNS = 64
"""With more patterns of missing cells than this, pairs are counted one by one."""
MIN_MAPPED = 1 << 22
"""Bytes from which an array is separate memory, which the system has back at once. That of an allocator, which has
some for each thread, stays with the process: with two workers, up to 230 MB."""


@jit
def _count_each_pair(bits: Any, packed: Any, weights: Any, cells: Any, counts: Any) -> None:
    """Count all pairs of rows one by one.

    Args:
        bits: ``(n, n_words)`` uint64, a table with the missing cells of ``packed``.
        packed: `PackedScores`.
        weights: ``(n,)``: a pair counts the product of its rows' weights. Ones as int64 count; float64 gives float64.
        cells: `LatticeCells` of the similarities.
        counts: `PairCounts`, filled.
    """
    n, n_words = bits.shape
    masks = packed.masks
    counts.values[:] = 0
    counts.sides[:] = 0
    ones = bit_counts(bits)
    for i in range(n):
        for j in range(i + 1, n):
            o = s = t = c = np.uint64(0)
            for w in range(n_words):
                o += popcount(masks[i, w] & masks[j, w])
                s += popcount(bits[i, w] & masks[j, w])
                t += popcount(masks[i, w] & bits[j, w])
                c += popcount(bits[i, w] & bits[j, w])
            shared, left, right, both = np.int64(o), np.int64(s), np.int64(t), np.int64(c)
            weight = weights[i] * weights[j]
            if shared == 0:
                counts.sides[NO_OVERLAP] += weight
                continue
            if left + right == 0:
                counts.sides[BOTH_EMPTY] += weight
            if both == 0 and ones[i] > 0 and ones[j] > 0:
                counts.sides[DISJOINT_ONES] += weight
            if both > 0 and both == left and both == right:
                counts.sides[SAME_ONES] += weight
            for lattice in range(cells.stride.size):
                counts.values[cell_position(cells, lattice, shared, left, right, both)] += weight


@jit
def _sum_each_row(packed: Any, weights: Any, cells: Any, values: Any, sums: Any, partners: Any) -> None:
    """Add up the similarities of each row to all others, in the order of the rows.

    Args:
        packed: `PackedScores`.
        weights: ``(n,)`` int64 ones or float64, of the rows.
        cells: `LatticeCells` of the similarities.
        values: float64, the value behind every place of the counts.
        sums: ``(n_lattices, n)`` float64 zeros, filled with the weighted sum of each row's similarities.
        partners: ``(n,)`` zeros, filled with the weight of the rows that share a cell with each.
    """
    n, n_words = packed.bits.shape
    bits, masks = packed.bits.T.copy(), packed.masks.T.copy()  # neighbours in memory, for vector operations
    numbers = np.empty((4, n), np.int64)
    shared, left, right, both = numbers[0], numbers[1], numbers[2], numbers[3]
    for i in range(n):
        numbers[:, i + 1 :] = 0
        for w in range(n_words):
            row, mask, row_bits, row_masks = bits[w, i], masks[w, i], bits[w], masks[w]
            for j in range(i + 1, n):
                shared[j] += np.int64(popcount(mask & row_masks[j]))
                left[j] += np.int64(popcount(row & row_masks[j]))
                right[j] += np.int64(popcount(mask & row_bits[j]))
                both[j] += np.int64(popcount(row & row_bits[j]))
        weight = weights[i]
        for j in range(i + 1, n):
            if shared[j] > 0:
                partners[i] += weights[j]
                partners[j] += weight
        for lattice in range(cells.stride.size):
            row_sums = sums[lattice]
            total = row_sums[i]
            for j in range(i + 1, n):
                if shared[j] > 0:
                    value = values[cell_position(cells, lattice, shared[j], left[j], right[j], both[j])]
                    total += value * weights[j]
                    row_sums[j] += value * weight
            row_sums[i] = total


def find_places(*counts: Counts) -> NDArray[np.intp]:
    """Return the values of a lattice that any table has, and the first and the last, which `Similarity.adjust` changes.

    Most values of a large lattice are of no table.

    Args:
        counts: ``(n, m)`` at all values of the lattice.
    """
    is_used = np.any([part.any(axis=0) for part in counts], axis=0)
    is_used[[0, -1]] = True
    return np.flatnonzero(is_used)


def _new_array(size: int, dtype: type[Any]) -> NDArray[Any]:
    n_bytes = size * np.dtype(dtype).itemsize
    return np.empty(size, dtype) if n_bytes < MIN_MAPPED else np.frombuffer(mmap.mmap(-1, n_bytes), dtype)


@dataclass(frozen=True, slots=True)
class PairCounter:
    """Counts the pairs of one table's rows, whatever their scores.

    Attributes:
        packed: whose missing cells are counted.
        lattices: by the choice of the similarity, in the order of the counts.
        cells: of the lattices.
        weights: ``(n,)`` float64, positive, of the packed rows; a pair counts the product of two. None: each counts 1,
            and counts are integers.
    """

    packed: PackedScores
    lattices: dict[str, Lattice]
    cells: LatticeCells
    weights: NDArray[np.float64] | None = None

    @classmethod
    def create(cls, table: ScoreTable, similarities: tuple[Similarity, ...]) -> PairCounter:
        """A counter of these similarities for tables with the shape, missing cells and weights of this one."""
        overlaps = table.packed.overlaps()
        makers = {similarity.choice: similarity.lattice for similarity in similarities}
        lattices = {choice: make(table.n_columns, overlaps) for choice, make in makers.items()}
        return cls(table.packed, lattices, join_cells(list(lattices.values())), table.packed_weights)

    @property
    def n_values(self) -> int:
        """Number of values of all lattices."""
        return sum(lattice.size for lattice in self.lattices.values())

    @property
    def dtype(self) -> type[np.int64] | type[np.float64]:
        """Of the counts."""
        return np.int64 if self.weights is None else np.float64

    def count(self, bits: NDArray[np.uint64]) -> PairCounts:
        """Counts of all lattices in one vector, and the side counts."""
        if self.packed.n_patterns > MAX_PATTERNS:
            return self.count_pair_by_pair(bits)
        counts = self._new_counts()
        if self.weights is None:
            count_by_pattern(bits, self.packed, self.cells, counts)
        else:
            weigh_by_pattern(bits, self.weights, self.packed, self.cells, counts)
        return counts

    def count_pair_by_pair(self, bits: NDArray[np.uint64]) -> PairCounts:
        """The same counts, slowly."""
        counts = self._new_counts()
        _count_each_pair(bits, self.packed, self._row_weights, self.cells, counts)
        return counts

    @property
    def _row_weights(self) -> NDArray[Any]:
        return np.ones(self.packed.bits.shape[0], np.int64) if self.weights is None else self.weights

    def _new_counts(self) -> PairCounts:
        return PairCounts(_new_array(self.n_values, self.dtype), np.empty(N_SIDES, self.dtype))

    def n_pairs(self) -> int:
        """Pairs of rows that share a cell."""
        counts = replace(self, weights=None).count(self.packed.bits)
        return int(counts.values[: next(iter(self.lattices.values())).size].sum())

    def sum_each_row(self) -> tuple[NDArray[np.float64], Counts]:
        """By lattice, the weighted sum of each row's similarities to all others, and the weight of those it shares
        cells with; in the order of the packed rows.
        """
        n = self.packed.bits.shape[0]
        values = np.concatenate([lattice.values for lattice in self.lattices.values()])
        sums, partners = np.zeros((len(self.lattices), n)), np.zeros(n, self.dtype)
        _sum_each_row(self.packed, self._row_weights, self.cells, values, sums, partners)
        return sums, partners

    def mean_to_others(self) -> dict[str, NDArray[np.float64]]:
        """By choice, the mean similarity of each row to those it shares cells with; in the order before packing."""
        n = self.packed.bits.shape[0]
        sums, partners = self.sum_each_row()
        means = np.full((n, len(self.lattices)), np.nan)
        has_partners = partners > 0
        means[self.packed.order[has_partners]] = sums.T[has_partners] / partners[has_partners, None]
        return dict(zip(self.lattices, means.T, strict=True))

    def select(
        self, similarity: Similarity, values: Counts, sides: Counts, places: NDArray[np.intp] | None = None
    ) -> Counts:
        """Counts of one similarity from counts of all lattices; both ``(n, ...)``.

        Args:
            similarity: the similarity.
            values: ``(n, n_values)``.
            sides: ``(n, N_SIDES)``.
            places: of some values of the lattice, see `find_places`; None for all.
        """
        counts = values[:, self.part(similarity)]
        if places is not None:
            counts = counts.take(places, 1)
        elif similarity.adjust:
            counts = counts.copy()
        if similarity.adjust:
            similarity.adjust(counts, sides)
        return counts

    def part(self, similarity: Similarity) -> slice:
        """Where the values of one similarity are among those of all lattices."""
        stop = 0
        for choice, lattice in self.lattices.items():
            start, stop = stop, stop + lattice.size
            if choice == similarity.choice:
                break
        return slice(start, stop)

    def lattice(self, similarity: Similarity) -> Lattice:
        """The lattice of one similarity."""
        return self.lattices[similarity.choice]
