"""The cosine of every pair of rows of a table of any scores: binned and summed, none stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracker.statistics.jit import jit

BINS = 1 << 14
"""Bins from the least possible cosine to 1. KS distances are taken at their edges
and are at most the largest share of one bin below the distance at every point."""


@jit
def _dots(row: Any, columns: Any, begin: int, dots: Any) -> None:
    total = dots[begin:]
    total[:] = 0.0
    for column in range(row.size):
        score = row[column]
        if score != 0.0:
            other = columns[column, begin:]
            for j in range(total.size):
                total[j] += score * other[j]


@jit
def _weigh(
    value: Any, weight: float, weights: Any, lowest: float, scale: float, counts: Any, masses: Any, moments: Any
) -> None:
    """Add the similarities of one row to others, each by the product of the weights, to bins and moments."""
    total = squares = 0.0
    for x in range(value.size):
        gap = 1.0 - value[x]
        total += weights[x] * gap
        squares += weights[x] * gap * gap
        place = min(BINS - 1, np.int64((value[x] - lowest) * scale))
        counts[place] += 1
        masses[place] += weight * weights[x]
    moments[0] += weight * total
    moments[1] += weight * squares


@jit
def count_cosines(
    scores: Any, columns: Any, patterns: Any, starts: Any, lowest: float, counts: Any, moments: Any,
    wanted: Any, found: Any, sums: Any, partners: Any, weights: Any, masses: Any, found_masses: Any,
) -> None:  # fmt: skip
    """Bin the cosine of every pair of rows over the columns measured in both.

    Args:
        scores: ``(n, k)`` float64, 0 where missing, rows grouped by pattern; ``columns``: its transpose.
        patterns: ``(n_patterns, k)`` float64, 1 where measured; ``starts``: where each group begins.
        lowest: lower edge of the first bin; the last ends at 1.
        counts: ``(BINS,)`` int64, filled, in the pass in which ``found`` is empty.
        moments: ``(2,)`` float64, filled likewise: the sum of 1 - similarity and of its square; rows that vary
            together have similarities near 1, and their variance would drown in rounding if taken around 0.
        wanted: ``(BINS,)`` bool: bins whose similarities are written to ``found``, in any order.
        found: float64.
        sums, partners: ``(n,)`` float64, filled: sum of each row's similarities, and their number; or ``(0,)``.
        weights: ``(n,)`` float64, and a pair weighs the product of its rows': ``moments``, ``sums`` and ``partners``
            are sums of weights, and two more are filled; or ``(0,)``.
        masses: ``(BINS,)`` float64, the weight of the pairs in each bin; or ``(0,)``.
        found_masses: as ``found``, the weight of each pair; or ``(0,)``.
    """
    n, k = scores.shape
    scale = BINS / (1.0 - lowest)
    dots = np.empty(n)
    square_right = np.empty(n)
    n_found = 0
    square_left = np.empty(patterns.shape[0])
    overlap = np.empty(patterns.shape[0])
    for g in range(patterns.shape[0]):
        for j in range(n):
            total = 0.0
            for column in range(k):
                total += scores[j, column] * scores[j, column] * patterns[g, column]
            square_right[j] = total
        for h in range(patterns.shape[0]):
            overlap[h] = (patterns[g] * patterns[h]).sum()
        for i in range(starts[g], starts[g + 1]):
            for h in range(patterns.shape[0]):
                total = 0.0
                for column in range(k):
                    total += scores[i, column] * scores[i, column] * patterns[h, column]
                square_left[h] = total
            _dots(scores[i], columns, i + 1, dots)
            for h in range(g, patterns.shape[0]):
                if overlap[h] == 0.0:
                    continue
                first, second = max(starts[h], i + 1), starts[h + 1]
                if first >= second:
                    continue
                value, right = dots[first:second], square_right[first:second]
                left = square_left[h]
                for x in range(value.size):
                    size = np.sqrt(left * right[x])
                    value[x] = min(1.0, max(lowest, value[x] / size)) if size > 0.0 else 0.0
                if found.size:
                    for x in range(value.size):
                        if wanted[min(BINS - 1, np.int64((value[x] - lowest) * scale))]:
                            found[n_found] = value[x]
                            if weights.size:
                                found_masses[n_found] = weights[i] * weights[first + x]
                            n_found += 1
                    continue
                if weights.size:
                    _weigh(value, weights[i], weights[first:second], lowest, scale, counts, masses, moments)
                    if sums.size:
                        for x in range(value.size):
                            sums[i] += weights[first + x] * value[x]
                            partners[i] += weights[first + x]
                            sums[first + x] += weights[i] * value[x]
                            partners[first + x] += weights[i]
                    continue
                total = squares = 0.0
                for x in range(value.size):
                    gap = 1.0 - value[x]
                    total += gap
                    squares += gap * gap
                    counts[min(BINS - 1, np.int64((value[x] - lowest) * scale))] += 1
                moments[0] += total
                moments[1] += squares
                if sums.size:
                    sums[i] += value.size - total
                    partners[i] += value.size
                    for x in range(value.size):
                        sums[first + x] += value[x]
                        partners[first + x] += 1
