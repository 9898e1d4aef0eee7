"""How many pairs of rows have each similarity, one pair at a time, whatever cells are missing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from analyses.numerics.similarity.lattices import cell_position
from analyses.numerics.similarity.pairs.pair_counts import BOTH_EMPTY, DISJOINT_ONES, NO_OVERLAP, SAME_ONES
from tracker.statistics.jit import bit_counts, jit, popcount


class RowSums(NamedTuple):
    """What is summed up for each row.

    Attributes:
        sums: ``(n, n_lattices)`` float64, weighted sum of each row's similarities to all others; or ``(0, ...)``.
        partners: ``(n,)``, weight of the rows that share a cell with each; or ``(0,)``.
        values: float64, the value behind every place of the counts.
    """

    sums: Any
    partners: Any
    values: Any


@jit
def count_pair_by_pair(rows: Any, masks: Any, weights: Any, cells: Any, counts: Any, row_sums: Any) -> None:
    """Count all pairs of rows one by one, and add up each row's similarities if ``row_sums`` has rows.

    Args:
        rows, masks: ``(n, n_words)`` uint64.
        weights: ``(n,)``: a pair counts the product of its rows' weights. Ones as int64 count; of float64, counts
            and partners are float64 too.
        cells: `LatticeCells` of the similarities.
        counts: `PairCounts`, filled.
        row_sums: `RowSums`, filled if it has rows.
    """
    n, n_words = rows.shape
    sums, partners, values = row_sums.sums, row_sums.partners, row_sums.values
    counts.values[:] = 0
    counts.sides[:] = 0
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
                position = cell_position(cells, lattice, shared, left, right, both)
                counts.values[position] += weight
                if sums.shape[0] > 0:
                    sums[i, lattice] += values[position] * weights[j]
                    sums[j, lattice] += values[position] * weights[i]
            if sums.shape[0] > 0:
                partners[i] += weights[j]
                partners[j] += weights[i]
