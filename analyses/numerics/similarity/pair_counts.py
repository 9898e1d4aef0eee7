"""How many pairs of rows have each similarity: every pair counted, none stored.

Two ways that give the same integers. `count_by_pattern` handles 64 pairs in one operation: it adds up
the columns in which a row has a one as binary numbers laid out bit plane by bit plane, one lane per
other row, and counts the lanes that hold each sum. It needs rows grouped by their missing cells.
`count_pair_by_pair` takes any mask, one pair at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analyses.numerics.similarity.bit_tables import WORD
from tracker.statistics.jit import INT, bit_counts, jit, popcount

EMPTY, APART, DISJOINT, SAME, SIDES = 0, 1, 2, 3, 4
"""Places in the side counts: pairs without a one in any shared cell; pairs of rows that have ones, but
none in common; pairs without a shared cell; pairs with the same ones in the shared cells, at least one;
and how many places there are."""


@jit
def sort_by_ones(rows: Any, start: int, stop: int, common: Any, ones: Any, first: Any, order: Any) -> None:
    """Fill ``order`` with the rows in order of their ones under ``common``, ``first`` with where each number begins."""
    first[:] = 0
    for i in range(start, stop):
        total = np.uint64(0)
        for w in range(common.size):
            total += popcount(rows[i, w] & common[w])
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
def _lay_out(rows: Any, common: Any, order: Any, first: Any, lanes: Any, lane_words: Any) -> int:
    """Turn sorted rows into lanes, column by column; rows with equally many ones begin a word of their own."""
    word = 0
    for t in range(first.size - 1):
        lane_words[t] = word
        word += (first[t + 1] - first[t] + 63) >> 6
    lane_words[first.size - 1] = word
    lanes[:, :word] = np.uint64(0)
    for t in range(first.size - 1):
        for j in range(first[t], first[t + 1]):
            lane = j - first[t]
            target = lane_words[t] + (lane >> 6)
            flag = np.uint64(1) << np.uint64(lane & 63)
            for w in range(common.size):
                left = rows[order[j], w] & common[w]
                while left:
                    lowest = left & (~left + np.uint64(1))
                    lanes[w * 64 + np.int64(popcount(lowest - np.uint64(1))), target] |= flag
                    left ^= lowest
    return word


@jit
def _add_two(x: Any, y: Any, plane: Any, carry: Any) -> None:
    for i in range(plane.size):
        a, b, old = x[i], y[i], plane[i]
        differs = a ^ b
        plane[i] = old ^ differs
        carry[i] = (a & b) | (old & differs)


@jit
def _add_columns(row: Any, common: Any, lanes: Any, begin: Any, end: Any, planes: Any, carry: Any) -> Any:
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
                _add_two(lanes[waiting, begin:end], lanes[column, begin:end], planes[0, begin:end], carried)
            else:
                _add_two(lanes[waiting, begin:end], nothing, planes[0, begin:end], carried)
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
    plane, none, one = planes[low, begin:end], chosen[0, begin:end], chosen[1, begin:end]
    for x in range(plane.size):
        none[x] = ~plane[x]
        one[x] = plane[x]
    for p in range(low + 1, high):
        size = 1 << (p - low)
        for v in range(size):
            plane, without, having = planes[p, begin:end], chosen[v, begin:end], chosen[v + size, begin:end]
            for x in range(plane.size):
                having[x] = without[x] & plane[x]
                without[x] &= ~plane[x]


@jit
def _tally(planes: Any, depth: int, s: int, begin: Any, end: Any, low: Any, high: Any, tally: Any) -> None:
    """Add to ``tally[c, word]`` how many lanes of each word hold the sum ``c``, for ``c`` in ``1 .. s``."""
    split = (depth + 1) // 2
    _select(planes, INT(0), split, begin, end, low)
    if split == depth:
        high[0, begin:end] = ~np.uint64(0)
    else:
        _select(planes, split, depth, begin, end, high)
    for c in range(1, s + 1):
        a, b = low[c & ((1 << split) - 1), begin:end], high[c >> split, begin:end]
        total = tally[c, begin:end]
        for x in range(total.size):
            total[x] += popcount(a[x] & b[x])


@jit
def _flush(
    s: int, n_left: int, same: bool, overlap: int, first: Any, lane_words: Any, tally: Any, hamming: Any,
    jaccard: Any, cosine: Any, cosine_starts: Any, counts: Any, sides: Any, offsets: Any,
) -> None:  # fmt: skip
    """Move the tally of all rows with ``s`` ones into the counts of each similarity."""
    for t in range(s if same else 0, overlap + 1):
        n_right = first[t + 1] - first[t]
        if n_right == 0:
            continue
        left_over = n_left * n_right
        for c in range(min(s, t), -1, -1):
            number = left_over
            if c > 0:
                number = 0
                for x in range(lane_words[t], lane_words[t + 1]):
                    number += np.int64(tally[c, x])
                left_over -= number
            if same and t == s:
                number = (number - n_left) // 2 if c == s else number // 2
            if number == 0:
                continue
            counts[offsets[0] + hamming[overlap, overlap - s - t + 2 * c]] += number
            counts[offsets[1] + cosine[cosine_starts[s, t] + c]] += number
            counts[offsets[2] + jaccard[s + t - c, c]] += number
            if s + t == 0:
                sides[EMPTY] += number
            elif c == s and c == t:
                sides[SAME] += number
            elif c == 0 and s > 0 and t > 0:
                sides[APART] += number


@jit
def count_by_pattern(
    rows: Any, patterns: Any, starts: Any, hamming: Any, jaccard: Any, cosine: Any, cosine_starts: Any,
    offsets: Any, counts: Any, sides: Any,
) -> None:  # fmt: skip
    """Count all pairs of rows, pattern by pattern.

    Args:
        rows: ``(n, n_words)`` uint64, grouped by pattern.
        patterns: ``(n_patterns, n_words)`` uint64, the measured columns of each group.
        starts: ``(n_patterns + 1,)`` int64, where each group begins.
        hamming, jaccard, cosine: index of each lattice.
        cosine_starts: where the cells of each ``s, t`` begin in the cosine's.
        offsets: ``(3,)`` where the counts of Hamming, cosine and Jaccard begin.
        counts: int64, filled.
        sides: ``(SIDES,)`` int64, filled.
    """
    n, n_words = rows.shape
    k = cosine_starts.shape[0] - 1
    widest = n // WORD + k + 2
    depth_limit = 1
    while k >> depth_limit:
        depth_limit += 1
    lanes = np.zeros((n_words * WORD, widest), np.uint64)
    planes = np.zeros((depth_limit + 1, widest), np.uint64)
    low = np.zeros((1 << ((depth_limit + 1) // 2), widest), np.uint64)
    high = np.zeros((1 << (depth_limit // 2 + 1), widest), np.uint64)
    carry = np.zeros(widest, np.uint64)
    tally = np.zeros((k + 1, widest), np.uint64)
    left_order, right_order, ones = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    left_first, right_first = np.zeros(k + 2, np.int64), np.zeros(k + 2, np.int64)
    lane_words = np.zeros(k + 2, np.int64)
    counts[:] = 0
    sides[:] = 0
    without = bit_counts(rows)
    some_ones = np.zeros(starts.size - 1, np.int64)
    for g in range(starts.size - 1):
        for i in range(starts[g], starts[g + 1]):
            some_ones[g] += without[i] > 0
    for g in range(starts.size - 1):
        for h in range(g, starts.size - 1):
            common = patterns[g] & patterns[h]
            overlap: Any = INT(0)
            for w in range(n_words):
                overlap += np.int64(popcount(common[w]))
            same = g == h
            n_left, n_right = starts[g + 1] - starts[g], starts[h + 1] - starts[h]
            if overlap == 0:
                sides[DISJOINT] += n_left * (n_left - 1) // 2 if same else n_left * n_right
                continue
            sort_by_ones(rows, starts[g], starts[g + 1], common, ones, left_first, left_order)
            sort_by_ones(rows, starts[h], starts[h + 1], common, ones, right_first, right_order)
            shown_left, shown_right = n_left - left_first[1], n_right - right_first[1]
            sides[APART] += 0 if same else some_ones[g] * some_ones[h] - shown_left * shown_right
            end = _lay_out(rows, common, right_order, right_first, lanes, lane_words)
            for s in range(overlap + 1):
                if left_first[s + 1] == left_first[s]:
                    continue
                begin = lane_words[s] if same else INT(0)
                tally[: s + 1, begin:end] = np.uint64(0)
                if s > 0:
                    for i in range(left_first[s], left_first[s + 1]):
                        depth = _add_columns(rows[left_order[i]], common, lanes, begin, end, planes, carry)
                        _tally(planes, depth, s, begin, end, low, high, tally)
                _flush(
                    s, left_first[s + 1] - left_first[s], same, overlap, right_first, lane_words, tally, hamming,
                    jaccard, cosine, cosine_starts, counts, sides, offsets,
                )  # fmt: skip


@jit
def count_pair_by_pair(
    rows: Any, masks: Any, weights: Any, hamming: Any, jaccard: Any, cosine: Any, cosine_starts: Any, offsets: Any,
    counts: Any, sides: Any, values: Any, sums: Any, partners: Any,
) -> None:  # fmt: skip
    """Count all pairs of rows one by one, and add up each row's similarities if ``sums`` has rows.

    Args:
        rows, masks: ``(n, n_words)`` uint64.
        weights: ``(n,)``: a pair counts the product of its rows' weights. Ones as int64 count; of float64, counts,
            sides and partners are float64 too.
        hamming, jaccard, cosine, cosine_starts, offsets, counts, sides: as for `count_by_pattern`.
        values: float64, the value behind every place of ``counts``.
        sums: ``(n, 3)`` float64, filled: weighted sum of each row's similarities to all others; or ``(0, 3)``.
        partners: ``(n,)``, filled: weight of the rows that share a cell with each; or ``(0,)``.
    """
    n, n_words = rows.shape
    wants_sums = sums.shape[0] > 0
    counts[:] = 0
    sides[:] = 0
    ones = bit_counts(rows)
    for i in range(n):
        for j in range(i + 1, n):
            o = s = t = c = np.uint64(0)
            for w in range(n_words):
                o += popcount(masks[i, w] & masks[j, w])
                s += popcount(rows[i, w] & masks[j, w])
                t += popcount(masks[i, w] & rows[j, w])
                c += popcount(rows[i, w] & rows[j, w])
            shared, left, right, both = np.int64(o), np.int64(s), np.int64(t), np.int64(c)
            pair = weights[i] * weights[j]
            if shared == 0:
                sides[DISJOINT] += pair
                continue
            at_hamming = offsets[0] + hamming[shared, shared - left - right + 2 * both]
            at_cosine = offsets[1] + cosine[cosine_starts[left, right] + both]
            at_jaccard = offsets[2] + jaccard[left + right - both, both]
            counts[at_hamming] += pair
            counts[at_cosine] += pair
            counts[at_jaccard] += pair
            if left + right == 0:
                sides[EMPTY] += pair
            if both == 0 and ones[i] > 0 and ones[j] > 0:
                sides[APART] += pair
            if both > 0 and both == left and both == right:
                sides[SAME] += pair
            if wants_sums:
                for row, other in ((i, j), (j, i)):
                    sums[row, 0] += values[at_hamming] * weights[other]
                    sums[row, 1] += values[at_cosine] * weights[other]
                    sums[row, 2] += values[at_jaccard] * weights[other]
                    partners[row] += weights[other]
