"""How many pairs of rows have each similarity: every pair counted, none stored, 64 pairs in one operation.

The columns in which a row has a one are added up as binary numbers laid out bit plane by bit plane, one lane per
other row, and the lanes that hold each sum are counted. Rows must be grouped by their missing cells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from analyses.numerics.similarity.lattices import cell_position
from analyses.numerics.similarity.score_table import WORD
from tracker.statistics.jit import INT, bit_counts, jit, popcount

BOTH_EMPTY, DISJOINT_ONES, NO_OVERLAP, SAME_ONES, N_SIDES = 0, 1, 2, 3, 4
"""Places in the side counts: pairs without a one in any shared cell; pairs of rows that have ones, but
none in common; pairs without a shared cell; pairs with the same ones in the shared cells, at least one;
and how many places there are."""


class PairCounts(NamedTuple):
    """What is counted of the pairs of rows.

    Attributes:
        values: how many pairs, or which weight of pairs, fall on each value of each lattice.
        sides: ``(N_SIDES,)``.
    """

    values: Any
    sides: Any


class SortedRows(NamedTuple):
    """Rows of one group in order of their ones.

    Attributes:
        order: int64, the rows.
        first: ``(k + 2,)`` int64, where the rows with each number of ones begin in ``order``.
        ones: int64, the number of ones of each row of the group.
    """

    order: Any
    first: Any
    ones: Any


class Lanes(NamedTuple):
    """Memory of `count_by_pattern`: one lane, a bit of a word, for each row on the right.

    Attributes:
        columns: ``(n_words * 64, n_lane_words)`` uint64, the lanes that have a one in each column.
        first_word: ``(k + 2,)`` int64, the word at which the rows with each number of ones begin.
        planes: uint64, the bits of the sums, the lowest first; the last plane stays zero.
        carry: uint64.
        low, high: uint64, the lanes whose sums have each value of the lower and of the upper bits.
        sums: ``(k + 1, n_lane_words)`` uint64, lanes with each sum so far.
    """

    columns: Any
    first_word: Any
    planes: Any
    carry: Any
    low: Any
    high: Any
    sums: Any


@jit
def count_shared(patterns: Any, g: int, h: int) -> Any:
    """Columns measured in two packed."""
    overlap: Any = INT(0)
    for w in range(patterns.shape[1]):
        overlap += np.int64(popcount(patterns[g, w] & patterns[h, w]))
    return overlap


@jit
def fill_common(patterns: Any, g: int, h: int, common: Any) -> None:
    """Fill ``common``, ``(n_words,)`` uint64, with the columns measured in two packed patterns."""
    for w in range(common.size):
        common[w] = patterns[g, w] & patterns[h, w]


@jit
def new_sorted_rows(n: int, k: int) -> Any:
    """Memory for a group of at most ``n`` rows."""
    return SortedRows(np.zeros(n, np.int64), np.zeros(k + 2, np.int64), np.zeros(n, np.int64))


@jit
def sort_by_ones(bits: Any, start: int, stop: int, common: Any, group: Any) -> None:
    """Sort rows by their ones under ``common`` into `SortedRows`."""
    order, first, ones = group.order, group.first, group.ones
    first[:] = 0
    for i in range(start, stop):
        total = np.uint64(0)
        for w in range(common.size):
            total += popcount(bits[i, w] & common[w])
        ones[i - start] = np.int64(total)
        first[np.int64(total) + 1] += 1
    for s in range(first.size - 1):
        first[s + 1] += first[s]
    for i in range(start, stop):
        s = ones[i - start]
        order[first[s]] = i
        first[s] += 1
    for s in range(first.size - 1, 0, -1):
        first[s] = first[s - 1]
    first[0] = 0


@jit
def _lay_out(bits: Any, common: Any, right: Any, lanes: Any) -> None:
    """Turn sorted rows into lanes, column by column; rows with equally many ones begin a new word."""
    order, first = right.order, right.first
    word = 0
    for t in range(first.size - 1):
        lanes.first_word[t] = word
        word += (first[t + 1] - first[t] + 63) >> 6
    lanes.first_word[first.size - 1] = word
    lanes.columns[:, :word] = np.uint64(0)
    for t in range(first.size - 1):
        for j in range(first[t], first[t + 1]):
            lane = j - first[t]
            target = lanes.first_word[t] + (lane >> 6)
            flag = np.uint64(1) << np.uint64(lane & 63)
            for w in range(common.size):
                left = bits[order[j], w] & common[w]
                while left:
                    lowest = left & (~left + np.uint64(1))
                    lanes.columns[w * 64 + np.int64(popcount(lowest - np.uint64(1))), target] |= flag
                    left ^= lowest


@jit
def _add_two(x: Any, y: Any, plane: Any, carry: Any) -> None:
    for i in range(plane.size):
        a, b, old = x[i], y[i], plane[i]
        differs = a ^ b
        plane[i] = old ^ differs
        carry[i] = (a & b) | (old & differs)


@jit
def _add_columns(row: Any, common: Any, columns: Any, begin: Any, end: Any, planes: Any, carry: Any) -> Any:
    """Sum over the row's ones of the columns' lanes, as bit planes; how many planes were needed.

    Columns are taken two at a time: both and the lowest plane give its new value and a carry, which
    then travels up the planes.
    """
    depth: Any = INT(0)
    added = 0
    waiting: Any = INT(-1)
    carried = carry[begin:end]
    nothing = planes[planes.shape[0] - 1, begin:end]
    nothing[:] = np.uint64(0)
    for w in range(common.size + 1):
        left = row[w] & common[w] if w < common.size else np.uint64(waiting >= 0)
        while left:
            lowest = left & (~left + np.uint64(1))
            column = w * 64 + np.int64(popcount(lowest - np.uint64(1)))
            left ^= lowest
            if w < common.size:
                added += 1
                while added >> depth:
                    planes[depth, begin:end] = np.uint64(0)
                    depth += 1
                if waiting < 0:
                    waiting = column
                    continue
                _add_two(columns[waiting, begin:end], columns[column, begin:end], planes[0, begin:end], carried)
            else:
                _add_two(columns[waiting, begin:end], nothing, planes[0, begin:end], carried)
            waiting = -1
            for p in range(1, depth):
                plane = planes[p, begin:end]
                for x in range(plane.size):
                    old = plane[x]
                    plane[x] = old ^ carried[x]
                    carried[x] &= old
    return depth


@jit
def _select(planes: Any, low: Any, high: int, begin: Any, end: Any, chosen: Any) -> None:
    """``chosen[v]``: lanes in which planes ``low .. high - 1`` spell the number ``v``."""
    plane, zeros, ones = planes[low, begin:end], chosen[0, begin:end], chosen[1, begin:end]
    for x in range(plane.size):
        zeros[x] = ~plane[x]
        ones[x] = plane[x]
    for p in range(low + 1, high):
        size = 1 << (p - low)
        for v in range(size):
            plane, without, having = planes[p, begin:end], chosen[v, begin:end], chosen[v + size, begin:end]
            for x in range(plane.size):
                having[x] = without[x] & plane[x]
                without[x] &= ~plane[x]


@jit
def _count_sums(planes: Any, depth: int, s: int, begin: Any, end: Any, low: Any, high: Any, sums: Any) -> None:
    """Add to ``sums[c, word]`` how many lanes of each word hold the sum ``c``, for ``c`` in ``1 .. s``."""
    split = (depth + 1) // 2
    _select(planes, INT(0), split, begin, end, low)
    if split == depth:
        high[0, begin:end] = ~np.uint64(0)
    else:
        _select(planes, split, depth, begin, end, high)
    for c in range(1, s + 1):
        a, b = low[c & ((1 << split) - 1), begin:end], high[c >> split, begin:end]
        total = sums[c, begin:end]
        for x in range(total.size):
            total[x] += popcount(a[x] & b[x])


@jit
def add_pairs(number: Any, o: Any, s: Any, t: Any, c: Any, cells: Any, counts: Any) -> None:
    """Add a number or a weight of pairs, all with these shared cells and ones, to the counts of each similarity."""
    for lattice in range(cells.stride.size):
        counts.values[cell_position(cells, lattice, o, s, t, c)] += number
    if s + t == 0:
        counts.sides[BOTH_EMPTY] += number
    elif c == s and c == t:
        counts.sides[SAME_ONES] += number
    elif c == 0 and s > 0 and t > 0:
        counts.sides[DISJOINT_ONES] += number


@jit
def _add_sums(s: int, same: bool, overlap: int, left: Any, right: Any, lanes: Any, cells: Any, counts: Any) -> None:
    """Move the sums of all rows with ``s`` ones into the counts of each similarity."""
    n_left = left.first[s + 1] - left.first[s]
    sums, first_word = lanes.sums, lanes.first_word
    for t in range(s if same else 0, overlap + 1):
        n_right = right.first[t + 1] - right.first[t]
        if n_right == 0:
            continue
        n_uncounted = n_left * n_right
        for c in range(min(s, t), -1, -1):
            number = n_uncounted
            if c > 0:
                number = 0
                for x in range(first_word[t], first_word[t + 1]):
                    number += np.int64(sums[c, x])
                n_uncounted -= number
            if same and t == s:
                number = (number - n_left) // 2 if c == s else number // 2
            if number > 0:
                add_pairs(number, overlap, s, t, c, cells, counts)


@jit
def _count_between(
    bits: Any, common: Any, overlap: int, same: bool, left: Any, right: Any, lanes: Any, cells: Any, counts: Any
) -> None:
    """Count the pairs of a row of one group and a row of another, or of the same."""
    _lay_out(bits, common, right, lanes)
    end = lanes.first_word[right.first.size - 1]
    order, columns, planes, carry = left.order, lanes.columns, lanes.planes, lanes.carry
    low, high, sums = lanes.low, lanes.high, lanes.sums
    for s in range(overlap + 1):
        if left.first[s + 1] == left.first[s]:
            continue
        begin = lanes.first_word[s] if same else INT(0)
        sums[: s + 1, begin:end] = np.uint64(0)
        if s > 0:
            for i in range(left.first[s], left.first[s + 1]):
                depth = _add_columns(bits[order[i]], common, columns, begin, end, planes, carry)
                _count_sums(planes, depth, s, begin, end, low, high, sums)
        _add_sums(s, same, overlap, left, right, lanes, cells, counts)


@jit
def _new_lanes(n: int, n_words: int, k: int) -> Any:
    n_lane_words = n // WORD + k + 2
    max_depth = 1
    while k >> max_depth:
        max_depth += 1
    return Lanes(
        np.zeros((n_words * WORD, n_lane_words), np.uint64),
        np.zeros(k + 2, np.int64),
        np.zeros((max_depth + 1, n_lane_words), np.uint64),
        np.zeros(n_lane_words, np.uint64),
        np.zeros((1 << ((max_depth + 1) // 2), n_lane_words), np.uint64),
        np.zeros((1 << (max_depth // 2 + 1), n_lane_words), np.uint64),
        np.zeros((k + 1, n_lane_words), np.uint64),
    )


@jit
def _count_rows_with_ones(bits: Any, starts: Any) -> Any:
    ones = bit_counts(bits)
    numbers = np.zeros(starts.size - 1, np.int64)
    for g in range(starts.size - 1):
        for i in range(starts[g], starts[g + 1]):
            numbers[g] += ones[i] > 0
    return numbers


@jit
def count_by_pattern(bits: Any, packed: Any, cells: Any, counts: Any) -> None:
    """Count all pairs of rows, pattern by pattern.

    Args:
        bits: ``(n, n_words)`` uint64, a table with the missing cells of ``packed``.
        packed: `PackedScores`.
        cells: `LatticeCells` of the similarities.
        counts: `PairCounts` of int64, filled.
    """
    n, n_words = bits.shape
    k = cells.by_overlap.shape[1] - 1
    starts = packed.starts
    lanes = _new_lanes(n, n_words, k)
    left, right = new_sorted_rows(n, k), new_sorted_rows(n, k)
    counts.values[:] = 0
    counts.sides[:] = 0
    common = np.empty(n_words, np.uint64)
    n_with_ones = _count_rows_with_ones(bits, starts)
    for g in range(starts.size - 1):
        for h in range(g, starts.size - 1):
            fill_common(packed.patterns, g, h, common)
            overlap = count_shared(packed.patterns, g, h)
            same = g == h
            n_left, n_right = starts[g + 1] - starts[g], starts[h + 1] - starts[h]
            if overlap == 0:
                counts.sides[NO_OVERLAP] += n_left * (n_left - 1) // 2 if same else n_left * n_right
                continue
            sort_by_ones(bits, starts[g], starts[g + 1], common, left)
            sort_by_ones(bits, starts[h], starts[h + 1], common, right)
            if not same:
                n_pairs = (n_left - left.first[1]) * (n_right - right.first[1])
                counts.sides[DISJOINT_ONES] += n_with_ones[g] * n_with_ones[h] - n_pairs
            _count_between(bits, common, overlap, same, left, right, lanes, cells, counts)
