"""The cosines of all pairs of rows in bins, by dot products in single precision.

Single precision decides the bin of a cosine that is farther from the edges of the bin than all rounding together. The
others, a few in a hundred, are computed again in double precision. So the counts are those of `bin_cosines` exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.cosine_pairs import ALMOST_ONE, BINS, find_place
from analyses.numerics.similarity.cosines.dot_products import PANEL, fill_dots
from analyses.numerics.similarity.cosines.rounded_rows import TOGETHER, RoundedRows
from tracker.statistics.jit import INT, jit

MIN_NEAR = 256
"""Pairs near an edge that are computed again together, but for the last ones of a panel."""
MAX_ERROR = 1 / 16
"""Of a cosine, in bins: with larger ones, double precision is faster."""
AT_ONCE = 4
"""Cosines computed together in double precision: one addition need not wait for the one before."""
NEAR, SELECTED, PLACE = np.uint16(2 * BINS), np.uint16(BINS), np.uint16(BINS - 1)
"""Bits of a pair: whether its cosine is near an edge, whether its bin is selected, and the number of its bin."""


class NearPairs(NamedTuple):
    """Pairs of rows whose cosines are near an edge of a bin.

    Attributes:
        lefts, rights: int32, the rows.
        places: uint16, the bin of each.
        n: ``(1,)`` int64, how many.
    """

    lefts: Any
    rights: Any
    places: Any
    n: Any


class CollectedPairs(NamedTuple):
    """The pairs of rows in some bins.

    Attributes:
        is_selected: ``(BINS,)`` bool, the bins.
        runs: ``(n_runs, 2)`` uint16, the same as runs of bins: the first, and how many.
        lefts, rights: int32, the rows, filled as far as there is room.
        places: uint16, the bin of each.
        n: ``(1,)`` int64, pairs in these bins, which may be more than there is room for.
        room: for how many there is room, and for those of a row more.
    """

    is_selected: Any
    runs: Any
    lefts: Any
    rights: Any
    places: Any
    n: Any
    room: Any

    @classmethod
    def with_room(cls, is_selected: NDArray[np.bool_], n: int, n_rows: int) -> CollectedPairs:
        """Room for ``n`` pairs in selected bins."""
        size = n + n_rows
        edges = np.flatnonzero(np.diff(is_selected, prepend=False, append=False))
        runs = np.stack([edges[::2], edges[1::2] - edges[::2]], axis=1).astype(np.uint16)
        lefts, rights = np.empty((2, size), np.int32)
        return cls(is_selected, runs, lefts, rights, np.empty(size, np.uint16), np.zeros(1, np.int64), n)

    @property
    def has_all(self) -> bool:
        """Whether there was room for all."""
        return int(self.n[0]) <= int(self.room)


@jit
def _fill_places(dots: Any, rows: Any, i: int, places: Any) -> None:
    """The bins of a row's cosines, and whether single precision is not sure of them."""
    left, right, origin = rows.offsets[i], rows.offsets[i + 1 :], rows.origin
    half, far = np.float32(0.5), np.float32(0.5) - rows.errors[i]
    first, last = np.float32(0.5 - origin), np.float32(BINS - 0.5 - origin)
    if far <= np.float32(0):
        first, last = np.float32(-np.inf), np.float32(np.inf)
    for x in range(places.size):
        position = dots[x] + (left + right[x])
        whole = np.int32(position)
        # The first bin holds all below it, and the last all above: their outer edges decide nothing.
        is_inside = (position > first) & (position < last)
        is_near = (np.float32(abs(position - np.float32(whole) - half)) >= far) & is_inside
        place = max(np.int32(0), min(np.int32(BINS - 1), np.int32(whole + origin)))
        places[x] = np.uint16(place) | np.uint16(NEAR * np.uint16(is_near))


@jit
def _mark_selected(places: Any, runs: Any) -> None:
    """Mark the pairs in runs of selected bins."""
    for r in range(runs.shape[0]):
        first, length = runs[r, 0], runs[r, 1]
        for x in range(places.size):
            is_inside = np.uint16((places[x] & PLACE) - first) < length
            places[x] |= np.uint16(SELECTED * np.uint16(is_inside))


@jit
def _count(places: Any, counts: Any, candidates: Any) -> Any:
    """Count pairs, and list those that are marked; their number."""
    n: Any = np.uint64(0)
    for x in range(places.size):
        counts[np.uint64(places[x] & PLACE)] += 1
        candidates[n] = x
        n += np.uint64(places[x] > PLACE)
    return INT(n)


@jit
def _fill_cosines(rows: Any, lefts: Any, rights: Any, n: Any, cosines: Any) -> None:
    """Cosines of the first ``n`` pairs in double precision, with the bytes of `bin_cosines`; there is room for more."""
    scores, norms = rows.scores, rows.inverse_norms
    for x in range(n, -(-n // AT_ONCE) * AT_ONCE):
        lefts[x], rights[x] = lefts[n - 1], rights[n - 1]
    for x in range(0, n, AT_ONCE):
        a, b, c, d = lefts[x], lefts[x + 1], lefts[x + 2], lefts[x + 3]
        e, f, g, h = rights[x], rights[x + 1], rights[x + 2], rights[x + 3]
        dot_a = dot_b = dot_c = dot_d = 0.0
        for column in range(scores.shape[1]):
            at = np.uint64(column)
            dot_a += scores[a, at] * scores[e, at]
            dot_b += scores[b, at] * scores[f, at]
            dot_c += scores[c, at] * scores[g, at]
            dot_d += scores[d, at] * scores[h, at]
        cosines[x], cosines[x + 1] = dot_a * (norms[a] * norms[e]), dot_b * (norms[b] * norms[f])
        cosines[x + 2], cosines[x + 3] = dot_c * (norms[c] * norms[g]), dot_d * (norms[d] * norms[h])
    for x in range(n):
        cosines[x] = max(rows.lowest, cosines[x]) if cosines[x] < ALMOST_ONE else 1.0


@jit
def _add_candidates(places: Any, candidates: Any, n: int, i: int, near: Any, collected: Any) -> None:
    """Add the candidates of row ``i`` to the pairs near an edge, or to the collected ones."""
    n_near, at, first = np.uint64(near.n[0]), np.uint64(collected.n[0]), i + 1
    has_room = INT(at) <= collected.room
    for x in range(n):
        place = places[np.uint64(candidates[x])]
        near.lefts[n_near], near.rights[n_near], near.places[n_near] = i, first + candidates[x], place & PLACE
        n_near += np.uint64(place >= NEAR)
        if has_room:
            collected.lefts[at], collected.rights[at], collected.places[at] = i, first + candidates[x], place & PLACE
        at += np.uint64((place & (NEAR | SELECTED)) == SELECTED)
    near.n[0], collected.n[0] = n_near, at


@jit
def _correct(rows: Any, near: Any, counts: Any, collected: Any, cosines: Any) -> None:
    """Move pairs near an edge to the bins of their cosines in double precision, and collect those in selected bins."""
    n, n_bins = near.n[0], BINS / (1.0 - rows.lowest)
    _fill_cosines(rows, near.lefts, near.rights, n, cosines)
    for x in range(n):
        place = np.uint64(find_place(cosines[x], rows.lowest, n_bins))
        counts[np.uint64(near.places[x])] -= 1
        counts[place] += 1
        if collected.is_selected[place]:
            at = collected.n[0]
            if at <= collected.room:
                collected.lefts[at], collected.rights[at], collected.places[at] = near.lefts[x], near.rights[x], place
            collected.n[0] += 1
    near.n[0] = 0


@jit
def _bin_rounded(rows: Any, counts: Any, collected: Any) -> Any:
    n = rows.scores.shape[0]
    size = MIN_NEAR + n + AT_ONCE
    near = NearPairs(
        np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.uint16), np.zeros(1, np.int64)
    )
    dots = np.empty((PANEL, rows.tiles.shape[0] * rows.tiles.shape[2]), np.float32)
    places, candidates, cosines = np.empty(n, np.uint16), np.empty(n + 1, np.int32), np.empty(size)
    n_computed: Any = INT(0)
    for begin in range(0, n, PANEL):
        end = min(begin + PANEL, n)
        fill_dots(rows.units, rows.tiles, begin, end, INT(TOGETHER), dots)
        for i in range(begin, end):
            of_row = places[: n - i - 1]
            _fill_places(dots[i - begin, i + 1 : n], rows, i, of_row)
            _mark_selected(of_row, collected.runs)
            _add_candidates(of_row, candidates, _count(of_row, counts, candidates), i, near, collected)
            if near.n[0] >= MIN_NEAR or i + 1 == end:
                n_computed += near.n[0]
                _correct(rows, near, counts, collected, cosines)
    return n_computed


def bin_rounded(rows: RoundedRows, counts: NDArray[np.signedinteger[Any]], collected: CollectedPairs) -> int:
    """Bin the cosine of every pair of rows, and collect the pairs in some bins.

    Args:
        rows: with an error of at most `MAX_ERROR`.
        counts: ``(BINS,)``, added to.
        collected: filled.

    Returns:
        Number of cosines that were computed in double precision.
    """
    return int(_bin_rounded(rows, counts, collected))


@jit
def _choose(rows: Any, collected: Any, is_selected: Any, lefts: Any, rights: Any, cosines: Any) -> Any:
    n: Any = np.uint64(0)
    for x in range(collected.n[0]):
        lefts[n], rights[n] = collected.lefts[x], collected.rights[x]
        n += np.uint64(is_selected[np.uint64(collected.places[x])])
    _fill_cosines(rows, lefts, rights, INT(n), cosines)
    return INT(n)


def choose_cosines(rows: RoundedRows, collected: CollectedPairs, is_selected: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The cosines of collected pairs in selected bins, in double precision."""
    size = int(collected.n[0]) + AT_ONCE
    lefts, rights = np.empty((2, size), np.int32)
    cosines = np.empty(size)
    return cosines[: _choose(rows, collected, is_selected, lefts, rights, cosines)]
