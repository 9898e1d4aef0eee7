"""How much weight the pairs of rows with each similarity carry, where rows do not all count the same.

A pair weighs the product of its rows' weights. The same lattices as in `pair_counts` are filled, with
sums of weights in place of counts. Every sum runs in an order that the table alone decides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from analyses.numerics.similarity.pairs.pair_counts import (
    DISJOINT_ONES,
    NO_OVERLAP,
    add_pairs,
    count_shared,
    fill_common,
    new_sorted_rows,
    sort_by_ones,
)
from tracker.statistics.jit import INT, bit_counts, jit, popcount

BLOCK_SIZE = 1024
"""Rows whose positions are worked out before their weights are added: so many stay in the nearest memory."""


class Weighing(NamedTuple):
    """Memory of `weigh_by_pattern`.

    Attributes:
        words: ``(n_words, n)`` uint64, the measured words of the sorted rows on the right, word by word.
        weights: ``(n,)`` float64, of these rows.
        bases: ``(n,)`` uint32, the position in ``sums`` of each of them without common ones.
        positions: ``(BLOCK_SIZE,)`` uint32.
        cell_starts: ``(k + 1,)`` int64, where the sums of the rows with ``t`` ones begin.
        partial: ``(4, n_cells)`` float64, sums for one row on the left.
        sums: ``(n_cells,)`` float64, for all rows on the left with equally many ones.
    """

    words: Any
    weights: Any
    bases: Any
    positions: Any
    cell_starts: Any
    partial: Any
    sums: Any


@jit
def _lay_out(bits: Any, weights: Any, common: Any, right: Any, n_right: Any, space: Any) -> None:
    """The measured words of sorted rows, word by word, and their weights."""
    for j in range(n_right):
        space.weights[j] = weights[right.order[j]]
        for w in range(common.size):
            space.words[w, j] = bits[right.order[j], w] & common[w]


@jit
def _number_cells(s: int, min_t: Any, first: Any, space: Any) -> int:
    """Number the cells of one ``s``: one for each ``t >= min_t`` that occurs and each ``c`` up to both; how many."""
    cell = 0
    for t in range(min_t, first.size - 1):
        space.cell_starts[t] = cell
        if first[t + 1] > first[t]:
            space.bases[first[t] : first[t + 1]] = cell
            cell += min(s, t) + 1
    return cell


@jit
def _add_row(row: Any, begin: Any, n_right: Any, space: Any) -> None:
    """Add the weight of every row from ``begin`` to the cell it falls in with one row.

    Four sums of each cell take turns, or each addition would wait for the one before it.
    """
    places, partial = space.positions, space.partial
    a, b, c, d = partial[0], partial[1], partial[2], partial[3]
    for start in range(begin, n_right, places.size):
        size = min(places.size, n_right - start)
        base, heavy = space.bases[start : start + size], space.weights[start : start + size]
        word, right_words = row[0], space.words[0, start:]
        for j in range(size):
            places[j] = base[j] + np.uint32(popcount(right_words[j] & word))
        for w in range(1, space.words.shape[0]):
            word, right_words = row[w], space.words[w, start:]
            for j in range(size):
                places[j] += np.uint32(popcount(right_words[j] & word))
        even = size // 4 * 4
        for j in range(0, even, 4):
            a[places[j]] += heavy[j]
            b[places[j + 1]] += heavy[j + 1]
            c[places[j + 2]] += heavy[j + 2]
            d[places[j + 3]] += heavy[j + 3]
        for j in range(even, size):
            a[places[j]] += heavy[j]


@jit
def _add_sums(s: int, same: bool, overlap: int, first: Any, space: Any, cells: Any, masses: Any) -> None:
    """Move the sums of all rows with ``s`` ones into the masses of each similarity."""
    for t in range(s if same else 0, overlap + 1):
        if first[t + 1] == first[t]:
            continue
        for c in range(min(s, t) + 1):
            mass = space.sums[space.cell_starts[t] + c]
            if mass != 0.0:
                add_pairs(mass, overlap, s, t, c, cells, masses)


@jit
def _weigh_rows_with_ones(
    bits: Any, weights: Any, start: int, stop: int, common: Any, ones: Any
) -> tuple[float, float]:
    """Weight of the rows that have ones, none of them in a shared cell; and of those that have one there."""
    outside = inside = 0.0
    for i in range(start, stop):
        shared = np.uint64(0)
        for w in range(common.size):
            shared += popcount(bits[i, w] & common[w])
        if shared > 0:
            inside += weights[i]
        elif ones[i] > 0:
            outside += weights[i]
    return outside, inside


@jit
def _weigh_between(
    bits: Any, weights: Any, overlap: int, same: bool, left: Any, right: Any, n_right: Any, space: Any, cells: Any,
    masses: Any,
) -> None:  # fmt: skip
    """Weigh the pairs of a row of one group and a row of another, or of the same."""
    for s in range(overlap + 1):
        if left.first[s + 1] == left.first[s]:
            continue
        n_used = _number_cells(s, s if same else 0, right.first, space)
        space.sums[:n_used] = 0.0
        for i in range(left.first[s], left.first[s + 1]):
            partial = space.partial
            partial[:, :n_used] = 0.0
            _add_row(bits[left.order[i]], i + 1 if same else INT(0), n_right, space)
            weight = weights[left.order[i]]
            for x in range(n_used):
                space.sums[x] += weight * ((partial[0, x] + partial[1, x]) + (partial[2, x] + partial[3, x]))
        _add_sums(s, same, overlap, right.first, space, cells, masses)


@jit
def weigh_by_pattern(bits: Any, weights: Any, packed: Any, cells: Any, masses: Any) -> None:
    """Weigh all pairs of rows, pattern by pattern.

    Args:
        bits: ``(n, n_words)`` uint64, a table with the missing cells of ``packed``.
        weights: ``(n,)`` float64, positive.
        packed: `PackedScores`.
        cells: `LatticeCells` of the similarities.
        masses: `PairCounts` of float64, filled: the weight of the pairs at every value of every lattice.
    """
    n, n_words = bits.shape
    k = cells.by_overlap.shape[1] - 1
    starts = packed.starts
    n_cells = (k + 1) * (k + 2) // 2
    space = Weighing(
        np.zeros((n_words, n), np.uint64), np.zeros(n), np.zeros(n, np.uint32), np.zeros(BLOCK_SIZE, np.uint32),
        np.zeros(k + 1, np.int64), np.zeros((4, n_cells)), np.zeros(n_cells),
    )  # fmt: skip
    left, right = new_sorted_rows(n, k), new_sorted_rows(n, k)
    masses.values[:] = 0.0
    masses.sides[:] = 0.0
    ones, common = bit_counts(bits), np.empty(n_words, np.uint64)
    for g in range(starts.size - 1):
        for h in range(g, starts.size - 1):
            fill_common(packed.patterns, g, h, common)
            overlap = count_shared(packed.patterns, g, h)
            same = g == h
            if overlap == 0:
                product = weights[starts[g] : starts[g + 1]].sum() * weights[starts[h] : starts[h + 1]].sum()
                masses.sides[NO_OVERLAP] += product
                continue
            if not same:
                outside_g, inside_g = _weigh_rows_with_ones(bits, weights, starts[g], starts[g + 1], common, ones)
                outside_h, inside_h = _weigh_rows_with_ones(bits, weights, starts[h], starts[h + 1], common, ones)
                masses.sides[DISJOINT_ONES] += outside_g * (outside_h + inside_h) + inside_g * outside_h
            sort_by_ones(bits, starts[g], starts[g + 1], common, left)
            sort_by_ones(bits, starts[h], starts[h + 1], common, right)
            n_right = starts[h + 1] - starts[h]
            _lay_out(bits, weights, common, right, n_right, space)
            _weigh_between(bits, weights, overlap, same, left, right, n_right, space, cells, masses)
