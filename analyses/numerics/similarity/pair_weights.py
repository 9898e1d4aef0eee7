"""How much weight the pairs of rows with each similarity carry, where rows do not all count the same.

A pair weighs the product of its rows' weights. The same lattices as in `pair_counts` are filled, with
sums of weights in place of counts. Every sum runs in an order that the table alone decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analyses.numerics.similarity.pair_counts import APART, DISJOINT, EMPTY, SAME, sort_by_ones
from tracker.statistics.jit import INT, bit_counts, jit, popcount

AT_ONCE = 1024
"""Rows whose places are worked out before their weights are added: so many stay in the nearest memory."""


@jit
def _lay_out(rows: Any, weights: Any, common: Any, order: Any, words: Any, right_weights: Any) -> None:
    """The measured words of sorted rows, word by word, and their weights."""
    for j in range(order.size):
        right_weights[j] = weights[order[j]]
        for w in range(common.size):
            words[w, j] = rows[order[j], w] & common[w]


@jit
def _cells(s: int, least: Any, first: Any, cell_starts: Any, bases: Any) -> int:
    """Number the cells of one ``s``: one for each ``t >= least`` that occurs and each ``c`` up to both; how many."""
    cell = 0
    for t in range(least, first.size - 1):
        cell_starts[t] = cell
        if first[t + 1] > first[t]:
            bases[first[t] : first[t + 1]] = cell
            cell += min(s, t) + 1
    return cell


@jit
def _add_row(row: Any, words: Any, weights: Any, bases: Any, begin: Any, places: Any, sums: Any) -> None:
    """Add the weight of every row from ``begin`` to the cell it falls in with one row.

    Four sums of each cell take turns, or each addition would wait for the one before it.
    """
    a, b, c, d = sums[0], sums[1], sums[2], sums[3]
    for start in range(begin, weights.size, places.size):
        size = min(places.size, weights.size - start)
        base, heavy, word, bits = bases[start : start + size], weights[start : start + size], row[0], words[0, start:]
        for j in range(size):
            places[j] = base[j] + np.uint32(popcount(bits[j] & word))
        for w in range(1, words.shape[0]):
            word, bits = row[w], words[w, start:]
            for j in range(size):
                places[j] += np.uint32(popcount(bits[j] & word))
        even = size // 4 * 4
        for j in range(0, even, 4):
            a[places[j]] += heavy[j]
            b[places[j + 1]] += heavy[j + 1]
            c[places[j + 2]] += heavy[j + 2]
            d[places[j + 3]] += heavy[j + 3]
        for j in range(even, size):
            a[places[j]] += heavy[j]


@jit
def _flush(
    s: int, same: bool, overlap: int, first: Any, cell_starts: Any, tally: Any, hamming: Any, jaccard: Any,
    cosine: Any, cosine_starts: Any, offsets: Any, masses: Any, sides: Any,
) -> None:  # fmt: skip
    """Move the tally of all rows with ``s`` ones into the masses of each similarity."""
    for t in range(s if same else 0, overlap + 1):
        if first[t + 1] == first[t]:
            continue
        for c in range(min(s, t) + 1):
            mass = tally[cell_starts[t] + c]
            if mass == 0.0:
                continue
            masses[offsets[0] + hamming[overlap, overlap - s - t + 2 * c]] += mass
            masses[offsets[1] + cosine[cosine_starts[s, t] + c]] += mass
            masses[offsets[2] + jaccard[s + t - c, c]] += mass
            if s + t == 0:
                sides[EMPTY] += mass
            elif c == s and c == t:
                sides[SAME] += mass
            elif c == 0 and s > 0 and t > 0:
                sides[APART] += mass


@jit
def _hidden(rows: Any, weights: Any, start: int, stop: int, common: Any, ones: Any) -> tuple[float, float]:
    """Weight of the rows that have ones, none of them in a shared cell; and of those that have one there."""
    hidden = shown = 0.0
    for i in range(start, stop):
        shared = np.uint64(0)
        for w in range(common.size):
            shared += popcount(rows[i, w] & common[w])
        if shared > 0:
            shown += weights[i]
        elif ones[i] > 0:
            hidden += weights[i]
    return hidden, shown


@jit
def weigh_by_pattern(
    rows: Any, weights: Any, patterns: Any, starts: Any, hamming: Any, jaccard: Any, cosine: Any,
    cosine_starts: Any, offsets: Any, masses: Any, sides: Any,
) -> None:  # fmt: skip
    """Weigh all pairs of rows, pattern by pattern.

    Args:
        rows, patterns, starts, hamming, jaccard, cosine, cosine_starts, offsets: as for `count_by_pattern`.
        weights: ``(n,)`` float64, positive.
        masses: float64, filled: the weight of the pairs at every place of every lattice.
        sides: ``(SIDES,)`` float64, filled.
    """
    n, n_words = rows.shape
    k = cosine_starts.shape[0] - 1
    words, right_weights = np.zeros((n_words, n), np.uint64), np.zeros(n)
    bases, places = np.zeros(n, np.uint32), np.zeros(AT_ONCE, np.uint32)
    n_cells = (k + 1) * (k + 2) // 2
    sums, tally = np.zeros((4, n_cells)), np.zeros(n_cells)
    left_order, right_order, sorted_ones = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    left_first, right_first = np.zeros(k + 2, np.int64), np.zeros(k + 2, np.int64)
    cell_starts = np.zeros(k + 1, np.int64)
    masses[:] = 0.0
    sides[:] = 0.0
    ones = bit_counts(rows)
    for g in range(starts.size - 1):
        for h in range(g, starts.size - 1):
            common = patterns[g] & patterns[h]
            overlap: Any = INT(0)
            for w in range(n_words):
                overlap += np.int64(popcount(common[w]))
            same = g == h
            if overlap == 0:
                sides[DISJOINT] += weights[starts[g] : starts[g + 1]].sum() * weights[starts[h] : starts[h + 1]].sum()
                continue
            if not same:
                hidden_left, shown_left = _hidden(rows, weights, starts[g], starts[g + 1], common, ones)
                hidden_right, shown_right = _hidden(rows, weights, starts[h], starts[h + 1], common, ones)
                sides[APART] += hidden_left * (hidden_right + shown_right) + shown_left * hidden_right
            n_right = starts[h + 1] - starts[h]
            sort_by_ones(rows, starts[g], starts[g + 1], common, sorted_ones, left_first, left_order)
            sort_by_ones(rows, starts[h], starts[h + 1], common, sorted_ones, right_first, right_order)
            others, other_weights = words[:, :n_right], right_weights[:n_right]
            _lay_out(rows, weights, common, right_order[:n_right], others, other_weights)
            for s in range(overlap + 1):
                if left_first[s + 1] == left_first[s]:
                    continue
                n_used = _cells(s, s if same else 0, right_first, cell_starts, bases)
                tally[:n_used] = 0.0
                for i in range(left_first[s], left_first[s + 1]):
                    sums[:, :n_used] = 0.0
                    begin = i + 1 if same else INT(0)
                    _add_row(rows[left_order[i]], others, other_weights, bases, begin, places, sums)
                    weight = weights[left_order[i]]
                    for x in range(n_used):
                        tally[x] += weight * ((sums[0, x] + sums[1, x]) + (sums[2, x] + sums[3, x]))
                _flush(
                    s, same, overlap, right_first, cell_starts, tally, hamming, jaccard, cosine, cosine_starts,
                    offsets, masses, sides,
                )  # fmt: skip
