"""The cosine of every pair of rows of a table of any scores: binned and summed, none stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracker.statistics.jit import jit

BINS = 1 << 14
"""Bins from the least possible cosine to 1. KS distances are taken at their edges
and are at most the largest share of one bin below the distance at every point."""


class CosineRows(NamedTuple):
    """A table of scores.

    Attributes:
        scores: ``(n, k)`` float64, 0 where missing, rows grouped by pattern.
        columns: its transpose.
        patterns: ``(n_patterns, k)`` float64, 1 where measured.
        starts: where each group begins.
        lowest: lower edge of the first bin; the last ends at 1.
        weights: ``(n,)`` float64, and a pair weighs the product of its rows'; or ``(0,)``.
    """

    scores: Any
    columns: Any
    patterns: Any
    starts: Any
    lowest: Any
    weights: Any


class CosineBins(NamedTuple):
    """What `bin_cosines` fills.

    Attributes:
        counts: ``(BINS,)`` int64, pairs in each bin.
        moments: ``(2,)`` float64, the sum of 1 - similarity and of its square, weighted where rows are; rows that vary
            together have similarities near 1, and their variance would drown in rounding if taken around 0.
        masses: ``(BINS,)`` float64, the weight of the pairs in each bin; or ``(0,)``.
        sums, partners: ``(n,)`` float64, (weighted) sum of each row's similarities, and their number or weight; or
            ``(0,)``.
    """

    counts: Any
    moments: Any
    masses: Any
    sums: Any
    partners: Any


class CosineSpace(NamedTuple):
    """Memory for the cosines of one row with all later ones.

    Attributes:
        cosines: ``(n,)``, first the dot products.
        right: ``(n,)``, squares of all rows under the pattern of the row.
        left: ``(n_patterns,)``, square of the row under each pattern.
        overlap: ``(n_patterns,)``, columns that its pattern shares with each.
    """

    cosines: Any
    right: Any
    left: Any
    overlap: Any


@jit
def _new_space(rows: Any) -> Any:
    n, n_patterns = rows.scores.shape[0], rows.patterns.shape[0]
    return CosineSpace(np.empty(n), np.empty(n), np.empty(n_patterns), np.empty(n_patterns))


@jit
def _enter_group(rows: Any, g: int, space: Any) -> None:
    """Squares of all rows, and shared columns, for the rows of one pattern."""
    for j in range(rows.scores.shape[0]):
        total = 0.0
        for column in range(rows.scores.shape[1]):
            total += rows.scores[j, column] * rows.scores[j, column] * rows.patterns[g, column]
        space.right[j] = total
    for h in range(rows.patterns.shape[0]):
        total = 0.0
        for column in range(rows.patterns.shape[1]):
            total += rows.patterns[g, column] * rows.patterns[h, column]
        space.overlap[h] = total


@jit
def _enter_row(rows: Any, i: int, space: Any) -> None:
    """Squares of one row, and its dot products with all later rows."""
    for h in range(rows.patterns.shape[0]):
        total = 0.0
        for column in range(rows.scores.shape[1]):
            total += rows.scores[i, column] * rows.scores[i, column] * rows.patterns[h, column]
        space.left[h] = total
    _dots(rows.scores[i], rows.columns, i + 1, space.cosines)


@jit
def _dots(row: Any, columns: Any, begin: int, dots: Any) -> None:
    total = dots[begin:]
    total[:] = 0.0
    for column in range(row.size):
        score = row[column]
        if score != 0.0:
            scores = columns[column, begin:]
            for j in range(total.size):
                total[j] += score * scores[j]


@jit
def _cosines(rows: Any, i: int, h: int, space: Any) -> Any:
    """Cosines of row ``i`` with the later rows of group ``h``, and the first of these rows."""
    first, stop = max(rows.starts[h], i + 1), rows.starts[h + 1]
    if space.overlap[h] == 0.0 or first >= stop:
        return space.cosines[:0], first
    cosines, right = space.cosines[first:stop], space.right[first:stop]
    left = space.left[h]
    for x in range(cosines.size):
        size = np.sqrt(left * right[x])
        cosines[x] = min(1.0, max(rows.lowest, cosines[x] / size)) if size > 0.0 else 0.0
    return cosines, first


@jit
def _bin_weighted(cosines: Any, i: int, first: int, rows: Any, scale: float, bins: Any) -> None:
    """Add the similarities of one row to others, each by the product of the weights, to bins and moments."""
    weight, weights = rows.weights[i], rows.weights[first : first + cosines.size]
    counts, masses = bins.counts, bins.masses
    lowest = rows.lowest
    total = squares = 0.0
    for x in range(cosines.size):
        gap = 1.0 - cosines[x]
        total += weights[x] * gap
        squares += weights[x] * gap * gap
        place = min(BINS - 1, np.int64((cosines[x] - lowest) * scale))
        counts[place] += 1
        masses[place] += weight * weights[x]
    bins.moments[0] += weight * total
    bins.moments[1] += weight * squares
    if bins.sums.size:
        for x in range(cosines.size):
            bins.sums[i] += weights[x] * cosines[x]
            bins.partners[i] += weights[x]
            bins.sums[first + x] += weight * cosines[x]
            bins.partners[first + x] += weight


@jit
def _bin_equal(cosines: Any, i: int, first: int, lowest: float, scale: float, bins: Any) -> None:
    """Add the similarities of one row to others to bins and moments."""
    counts = bins.counts
    total = squares = 0.0
    for x in range(cosines.size):
        gap = 1.0 - cosines[x]
        total += gap
        squares += gap * gap
        counts[min(BINS - 1, np.int64((cosines[x] - lowest) * scale))] += 1
    bins.moments[0] += total
    bins.moments[1] += squares
    if bins.sums.size:
        bins.sums[i] += cosines.size - total
        bins.partners[i] += cosines.size
        for x in range(cosines.size):
            bins.sums[first + x] += cosines[x]
            bins.partners[first + x] += 1


@jit
def bin_cosines(rows: Any, bins: Any) -> None:
    """Bin the cosine of every pair of rows over the columns measured in both.

    Args:
        rows: `CosineRows`.
        bins: `CosineBins`, filled.
    """
    scale = BINS / (1.0 - rows.lowest)
    space = _new_space(rows)
    for g in range(rows.patterns.shape[0]):
        _enter_group(rows, g, space)
        for i in range(rows.starts[g], rows.starts[g + 1]):
            _enter_row(rows, i, space)
            for h in range(g, rows.patterns.shape[0]):
                cosines, first = _cosines(rows, i, h, space)
                if cosines.size and rows.weights.size:
                    _bin_weighted(cosines, i, first, rows, scale, bins)
                elif cosines.size:
                    _bin_equal(cosines, i, first, rows.lowest, scale, bins)


@jit
def collect_cosines(rows: Any, is_selected: Any, cosines: Any, masses: Any) -> None:
    """Collect the cosines that fall in some bins, in any order.

    Args:
        rows: `CosineRows`.
        is_selected: ``(BINS,)`` bool, the bins.
        cosines: float64, filled.
        masses: float64, filled with the weight of each pair if rows have weights.
    """
    scale = BINS / (1.0 - rows.lowest)
    space = _new_space(rows)
    n_collected = 0
    for g in range(rows.patterns.shape[0]):
        _enter_group(rows, g, space)
        for i in range(rows.starts[g], rows.starts[g + 1]):
            _enter_row(rows, i, space)
            for h in range(g, rows.patterns.shape[0]):
                some, first = _cosines(rows, i, h, space)
                for x in range(some.size):
                    if is_selected[min(BINS - 1, np.int64((some[x] - rows.lowest) * scale))]:
                        cosines[n_collected] = some[x]
                        if rows.weights.size:
                            masses[n_collected] = rows.weights[i] * rows.weights[first + x]
                        n_collected += 1
