"""The cosine of every pair of rows of a table of any scores: binned and summed, none stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.dot_products import PANEL, fill_dots
from tracker.statistics.jit import jit

BINS = 1 << 14
"""Bins from the least possible cosine to 1. KS distances are taken at their edges
and are at most the largest share of one bin below the distance at every point."""

ALMOST_ONE = 1.0 - 2.0**-50
"""Cosines from here on are 1: those of equal rows are four roundings below it at most."""


class CosineRows(NamedTuple):
    """A table of scores.

    Attributes:
        scores: ``(n, k)`` float64, 0 where missing, rows grouped by pattern.
        tiles: the scores as `make_tiles` arranges them.
        patterns: ``(n_patterns, k)`` float64, 1 where measured.
        starts: where each group begins.
        lowest: lower edge of the first bin; the last ends at 1.
        weights: ``(n,)`` float64, and a pair weighs the product of its rows'; or ``(0,)``.
    """

    scores: Any
    tiles: Any
    patterns: Any
    starts: Any
    lowest: Any
    weights: Any


class CollectedCosines(NamedTuple):
    """The cosines in some bins, in the order of the pairs.

    Attributes:
        is_selected: ``(BINS,)`` bool, the bins.
        cosines: float64, filled as far as there is room.
        masses: float64, filled with the weight of each pair if rows have weights.
        n: ``(1,)`` int64, cosines in these bins, which may be more than there is room for.
    """

    is_selected: Any
    cosines: Any
    masses: Any
    n: Any

    @classmethod
    def with_room(cls, is_selected: NDArray[np.bool_], n: int) -> CollectedCosines:
        """Room for ``n`` cosines in selected bins."""
        return cls(is_selected, np.empty(n), np.empty(n), np.zeros(1, np.int64))

    @property
    def has_all(self) -> bool:
        """Whether there was room for all."""
        return int(self.n[0]) <= int(self.cosines.size)


class CosineBins(NamedTuple):
    """What `bin_cosines` fills.

    Attributes:
        counts: ``(BINS,)`` int32 or int64, pairs in each bin.
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
    """Memory for the cosines of some rows with all later ones.

    Attributes:
        cosines: ``(PANEL, n_tiles * n_lanes)``, first the dot products.
        right: ``(n,)``, inverse norms of all rows under the pattern of the row; 0 for those of a row of zeros.
        left: ``(n_patterns,)``, inverse norm of the row under each pattern.
        overlap: ``(n_patterns,)``, columns that its pattern shares with each.
        places: ``(n,)`` int32, the bins of the cosines of one row.
    """

    cosines: Any
    right: Any
    left: Any
    overlap: Any
    places: Any


@jit
def _new_space(rows: Any) -> Any:
    n, n_patterns = rows.scores.shape[0], rows.patterns.shape[0]
    panel = np.empty((PANEL, rows.tiles.shape[0] * rows.tiles.shape[2]))
    return CosineSpace(panel, np.empty(n), np.empty(n_patterns), np.empty(n_patterns), np.empty(n, np.int32))


@jit
def _inverse_norm(scores: Any, pattern: Any) -> float:
    """Of a row under a pattern; 0 for zeros."""
    total = 0.0
    for column in range(scores.size):
        total += scores[column] * scores[column] * pattern[column]
    return 1.0 / np.sqrt(total) if total > 0.0 else 0.0


@jit
def _enter_group(rows: Any, g: int, space: Any) -> None:
    """Inverse norms of all rows, and shared columns, for the rows of one pattern."""
    for j in range(rows.scores.shape[0]):
        space.right[j] = _inverse_norm(rows.scores[j], rows.patterns[g])
    for h in range(rows.patterns.shape[0]):
        total = 0.0
        for column in range(rows.patterns.shape[1]):
            total += rows.patterns[g, column] * rows.patterns[h, column]
        space.overlap[h] = total


@jit
def _enter_row(rows: Any, i: int, space: Any) -> None:
    """Inverse norms of one row."""
    for h in range(rows.patterns.shape[0]):
        space.left[h] = _inverse_norm(rows.scores[i], rows.patterns[h])


@jit
def _cosines(rows: Any, i: int, h: int, place: int, space: Any) -> Any:
    """Cosines of row ``i``, at a place of the panel, with the later rows of group ``h``; the first of these rows."""
    first, stop = max(rows.starts[h], i + 1), rows.starts[h + 1]
    if space.overlap[h] == 0.0 or first >= stop:
        return space.cosines[0, :0], first
    cosines, right = space.cosines[place, first:stop], space.right[first:stop]
    left = space.left[h]
    for x in range(cosines.size):
        cosine = cosines[x] * (left * right[x])
        cosines[x] = max(rows.lowest, cosine) if cosine < ALMOST_ONE else 1.0
    return cosines, first


@jit
def find_place(cosine: float, lowest: float, scale: float) -> Any:
    """The bin of a cosine; there are ``scale`` bins between 0 and 1."""
    return min(BINS - 1, np.int32((cosine - lowest) * scale))


@jit
def fill_places(cosines: Any, lowest: float, places: Any) -> None:
    """The bins of cosines; in a loop by itself, which has vector operations."""
    scale = BINS / (1.0 - lowest)
    for x in range(cosines.size):
        places[x] = find_place(cosines[x], lowest, scale)


@jit
def _bin_weighted(cosines: Any, places: Any, i: int, first: int, rows: Any, bins: Any, collected: Any) -> None:
    """Add the similarities of one row to others, each by the product of the weights, to bins, moments and those that
    are collected.
    """
    weight, weights = rows.weights[i], rows.weights[first : first + cosines.size]
    counts, masses, is_selected = bins.counts, bins.masses, collected.is_selected
    n, room = collected.n[0], collected.cosines.size
    total = squares = 0.0
    for x in range(cosines.size):
        gap = 1.0 - cosines[x]
        total += weights[x] * gap
        squares += weights[x] * gap * gap
        place = places[x]
        counts[place] += 1
        masses[place] += weight * weights[x]
        if is_selected[place]:
            if n < room:
                collected.cosines[n] = cosines[x]
                collected.masses[n] = weight * weights[x]
            n += 1
    collected.n[0] = n
    bins.moments[0] += weight * total
    bins.moments[1] += weight * squares
    if bins.sums.size:
        for x in range(cosines.size):
            bins.sums[i] += weights[x] * cosines[x]
            bins.partners[i] += weights[x]
            bins.sums[first + x] += weight * cosines[x]
            bins.partners[first + x] += weight


@jit
def _bin_equal(cosines: Any, places: Any, i: int, first: int, bins: Any, collected: Any) -> None:
    """Add the similarities of one row to others to bins and moments, and to those that are collected."""
    counts, is_selected = bins.counts, collected.is_selected
    n, room = collected.n[0], collected.cosines.size
    total = squares = 0.0
    for x in range(cosines.size):
        gap = 1.0 - cosines[x]
        total += gap
        squares += gap * gap
        place = places[x]
        counts[place] += 1
        if is_selected[place]:
            if n < room:
                collected.cosines[n] = cosines[x]
            n += 1
    collected.n[0] = n
    bins.moments[0] += total
    bins.moments[1] += squares
    if bins.sums.size:
        bins.sums[i] += cosines.size - total
        bins.partners[i] += cosines.size
        for x in range(cosines.size):
            bins.sums[first + x] += cosines[x]
            bins.partners[first + x] += 1


@jit
def _collect(cosines: Any, places: Any, i: int, first: int, rows: Any, collected: Any) -> None:
    """Add the similarities of one row to others in some bins to those that are collected."""
    n, room, is_selected = collected.n[0], collected.cosines.size, collected.is_selected
    for x in range(cosines.size):
        if is_selected[places[x]]:
            if n < room:
                collected.cosines[n] = cosines[x]
                if rows.weights.size:
                    collected.masses[n] = rows.weights[i] * rows.weights[first + x]
            n += 1
    collected.n[0] = n


@jit
def bin_cosines(rows: Any, bins: Any, collected: Any) -> None:
    """Bin the cosine of every pair of rows over the columns measured in both, and collect those in some bins.

    Args:
        rows: `CosineRows`.
        bins: `CosineBins`, filled unless its counts are empty.
        collected: `CollectedCosines`, filled.
    """
    space = _new_space(rows)
    for g in range(rows.patterns.shape[0]):
        _enter_group(rows, g, space)
        for begin in range(rows.starts[g], rows.starts[g + 1], PANEL):
            end = min(begin + PANEL, rows.starts[g + 1])
            fill_dots(rows.scores, rows.tiles, begin, end, rows.scores.shape[1], space.cosines)
            for i in range(begin, end):
                _enter_row(rows, i, space)
                for h in range(g, rows.patterns.shape[0]):
                    cosines, first = _cosines(rows, i, h, i - begin, space)
                    if not cosines.size:
                        continue
                    places = space.places[: cosines.size]
                    fill_places(cosines, rows.lowest, places)
                    if not bins.counts.size:
                        _collect(cosines, places, i, first, rows, collected)
                    elif rows.weights.size:
                        _bin_weighted(cosines, places, i, first, rows, bins, collected)
                    else:
                        _bin_equal(cosines, places, i, first, bins, collected)
