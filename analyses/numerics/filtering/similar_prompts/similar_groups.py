"""Groups of prompts from pairs that are nearer than a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.similar_prompts.cosine_distances import (
    LANES,
    NormalizedVectors,
    copy_row,
    distance_from,
    iterate_pair_products,
    iterate_products,
)
from analyses.numerics.filtering.similar_prompts.neighbours import Neighbours
from analyses.numerics.sorting import first_above
from tracker.statistics.jit import INT, jit
from tracker.statistics.parallel.blocks import split_blocks

ROWS_AT_A_TIME = 2048
"""Prompts whose rows are multiplied with all together."""
CELLS = 2**16
"""Equal parts of the distances from 0 to 2: in most, a pair's product decides."""
OPEN = -1
"""Of a part: the distance itself must be worked out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdComponents:
    """Connected components of the pairs strictly nearer than each of several thresholds.

    Attributes:
        thresholds: ``(t,)`` of cosine distance, ascending.
        groups: ``(t, n)`` int32 number of the component each prompt is in, from 0 in the order of their first members;
            -1 for a prompt that has no such pair.
        n_pairs: ``(t,)`` int64 pairs strictly nearer.
    """

    thresholds: NDArray[np.float64]
    groups: NDArray[np.int32]
    n_pairs: NDArray[np.int64]


def find_components(E: NDArray[np.float32], neighbours: Neighbours, thresholds: Sequence[float]) -> ThresholdComponents:
    """Components over all pairs nearer than a threshold, not only those in the lists of neighbours.

    A pair that is in neither list is one of two prompts whose lists end before the largest threshold; only such
    prompts are compared again, with each other. Whether a pair is nearer is decided in double precision.

    Args:
        E: ``(n, d)`` finite vectors of any length but 0.
        neighbours: of the same vectors, however many.
        thresholds: at least one, ascending.

    Raises:
        ValueError: thresholds that are none or do not ascend.
    """
    limits = np.array(thresholds, np.float64)
    if not limits.size or not (np.diff(limits) >= 0).all():
        raise ValueError(f"thresholds must ascend: {list(thresholds)}")
    parents = np.tile(np.arange(len(E), dtype=np.int32), (len(limits), 1))
    counts, cut = np.zeros(len(limits) + 1, np.int64), _cut_short(neighbours, limits[-1])
    _join_lists(neighbours.indices, neighbours.distances, cut, limits, parents, counts)
    rows = np.flatnonzero(cut)
    few = NormalizedVectors.of(E[rows])
    cells = _cells(limits, few.slack)
    for row, column, near in iterate_pair_products(few.unit):
        _join_products(near, (row, column), rows, few.E, few.squares, cells, few.slack, limits, parents, counts)
    groups = np.empty_like(parents)
    _number(parents, groups)
    return ThresholdComponents(thresholds=limits, groups=groups, n_pairs=np.cumsum(counts[:-1]))


def find_stars(
    E: NDArray[np.float32],
    neighbours: Neighbours,
    threshold: float,
    *,
    texts: Sequence[str] | None = None,
    protect: float = 0.8,
) -> NDArray[np.int32]:
    """Groups around centres, as the authors of SMART filtering make them; they depend on the order of the prompts.

    Each prompt in turn is a centre. Its star is the prompt itself and all that are strictly nearer than the threshold,
    less those whose text is too like the centre's, less those that are in an earlier star. If two or more remain they
    are a star. A centre may itself be in an earlier star: then its star is of the others. Prompts left out for
    their text, or because fewer than two remained, are in no star yet and may still join a later one.

    Args:
        E: ``(n, d)`` finite vectors of any length but 0.
        neighbours: of the same vectors, however many; pairs beyond the lists count as well.
        threshold: of cosine distance.
        texts: ``n`` questions; without them none is left out for its text.
        protect: texts are too like each other if `is_lexically_similar` of centre and member is above this.

    Returns:
        ``(n,)`` number of the star each prompt is in, from 0 in the order in which they are made; -1 in none.
    """
    groups, n_stars = np.full(len(E), -1, np.int32), 0
    for centre, near in enumerate(iterate_nearer(E, neighbours, threshold)):
        members = near[groups[near] < 0]
        if len(members) + (groups[centre] < 0) < 2:
            continue
        if texts is not None:
            distinct = [not is_lexically_similar(texts[centre], texts[m], protect) for m in members]
            members = members[np.array(distinct, np.bool_)]
        if groups[centre] < 0:
            members = np.append(members, centre)
        if len(members) >= 2:
            groups[members] = n_stars
            n_stars += 1
    return groups


def is_lexically_similar(a: str, b: str, at_least: float) -> bool:
    """Whether ``difflib.SequenceMatcher(None, a, b).ratio()`` is above a bound; its upper bounds are tried first.

    The ratio depends on which text comes first, and from 200 characters on SequenceMatcher takes frequent characters of
    the second for junk, so that the ratio of long texts is too low.
    """
    length = len(a) + len(b)
    if length and 2.0 * min(len(a), len(b)) / length <= at_least:
        return False
    matcher = SequenceMatcher(None, a, b)
    return matcher.quick_ratio() > at_least and matcher.ratio() > at_least


def iterate_nearer(E: NDArray[np.float32], neighbours: Neighbours, threshold: float) -> Iterator[NDArray[np.int32]]:
    """For each prompt in turn, the others that are strictly nearer than the threshold."""
    cut, sizes = _cut_short(neighbours, threshold), (neighbours.distances < threshold).sum(axis=1)
    directions = NormalizedVectors.of(E) if cut.any() else None
    for block in split_blocks(len(E), ROWS_AT_A_TIME):
        rows = block.start + np.flatnonzero(cut[block.start : block.stop])
        beyond = _nearer_of(directions, rows, threshold) if directions and rows.size else iter(())
        for i in block:
            yield next(beyond) if cut[i] else neighbours.indices[i, : sizes[i]]


def _nearer_of(directions: NormalizedVectors, rows: NDArray[np.int64], threshold: float) -> Iterator[NDArray[np.int32]]:
    """The same for some prompts, among all."""
    E, squares, slack = directions.E, directions.squares, directions.slack
    places = np.empty(len(E), np.int32)
    for start, near in iterate_products(directions.unit[rows], directions.unit):
        for r in range(len(near)):
            n_near = _near_places(near[r], rows[start + r], E, squares, float(threshold), slack, places)
            yield places[:n_near].copy()


def _cut_short(neighbours: Neighbours, threshold: float) -> NDArray[np.bool_]:
    """``(n,)`` whether others nearer than the threshold may be missing from a prompt's list."""
    n, k = neighbours.indices.shape
    return neighbours.distances[:, -1] < threshold if 0 < k < n - 1 else np.full(n, k < n - 1)


def _cells(limits: NDArray[np.float64], slack: float) -> NDArray[np.int16]:
    """The side of each threshold on which a pair's distance lies, by its product.

    Args:
        limits: ``(t,)`` ascending.
        slack: by how much a product can be off.

    Returns:
        ``(CELLS,)`` for each part of ``1 - product``, index of the first limit that the distance is strictly below,
        ``t`` if there is none; `OPEN` where a limit is within the slack.
    """
    edges, reach = np.linspace(0, 2, CELLS + 1), 1.01 * slack  # a little more, for the rounding of edges and places
    least = np.searchsorted(limits, edges[:-1] - reach, side="right")
    most = np.searchsorted(limits, edges[1:] + reach, side="right")
    return np.where(least == most, least, OPEN).astype(np.int16)


@jit
def _near_places(near: Any, i: Any, E: Any, squares: Any, threshold: Any, slack: Any, places: Any) -> Any:
    """Write the columns nearer than a threshold to ``places``, but for ``i`` itself, and return their number.

    Args:
        near: ``(n,)`` products of row ``i`` with all.
        i: the row.
        E, squares: of `NormalizedVectors`.
        threshold: of distance.
        slack: by how much a product can be off.
        places: ``(n,)`` to fill.
    """
    least, surely = np.float32(1 - threshold - slack), np.float32(1 - threshold + slack)
    wide, sums = np.empty(E.shape[1]), np.empty(LANES)
    copy_row(E, i, wide)
    n_reached, n_near = 0, 0
    for j in range(near.size):
        places[n_reached] = j
        n_reached += near[j] >= least
    for j in places[:n_reached]:
        places[n_near] = j
        n_near += j != i and (near[j] > surely or distance_from(wide, squares[i], INT(j), E, squares, sums) < threshold)
    return n_near


@jit
def _join_lists(indices: Any, distances: Any, cut: Any, limits: Any, parents: Any, counts: Any) -> None:
    """Join the pairs in lists that are not cut short; the other prompt's list, if not cut short, has the pair too."""
    for i in range(len(indices)):
        if cut[i]:
            continue
        first = INT(0)
        for c in range(indices.shape[1]):
            j = indices[i, c]
            while first < limits.size and distances[i, c] >= limits[first]:
                first += 1
            if first == limits.size:
                break
            if cut[j] or i < j:
                counts[first] += 1
                _join(parents, first, INT(i), INT(j))


@jit
def _join_products(
    near: Any,
    corner: Any,
    rows: Any,
    E: Any,
    squares: Any,
    cells: Any,
    slack: Any,
    limits: Any,
    parents: Any,
    counts: Any,
) -> None:
    """Join the pairs in a block of products.

    Args:
        near: ``(b, m)`` of `iterate_pair_products`.
        corner: numbers of its first row and column.
        rows: ``(w,)`` the prompts they are.
        E, squares: of their `NormalizedVectors`.
        cells: of `_cells`, made with this slack.
        limits: ``(t,)`` ascending.
        parents: ``(t, n)`` of all prompts.
        counts: ``(t + 1,)`` pairs by the first limit above them.
    """
    row, column = corner
    least = np.float32(1 - limits[-1] - slack)
    wide, sums, reached = np.empty(E.shape[1]), np.empty(LANES), np.empty(near.shape[1], np.int32)
    for r in range(len(near)):
        i, row_products = row + r, near[r]
        copy_row(E, i, wide)
        n_reached = 0
        for c in range(i + 1 - column, row_products.size):
            reached[n_reached] = c
            n_reached += row_products[c] >= least
        for c in reached[:n_reached]:
            cell = INT((1.0 - np.float64(row_products[c])) * (CELLS / 2))
            first = INT(cells[min(max(cell, INT(0)), INT(CELLS - 1))])
            if first == OPEN:
                distance = distance_from(wide, squares[i], INT(column + c), E, squares, sums)
                first = first_above(limits, distance)
            if first < limits.size:
                counts[first] += 1
                p, q = INT(rows[i]), INT(rows[column + c])
                if parents[first, p] != parents[first, q]:
                    _join(parents, first, p, q)


@jit
def _join(parents: Any, first: Any, i: Any, j: Any) -> None:
    """Put two prompts into one component at a limit and all above it, until they are in one already.

    The root of a component is its first member.
    """
    for t in range(first, len(parents)):
        a, b = _root(parents, t, i), _root(parents, t, j)
        if a == b:
            break
        parents[t, max(a, b)] = min(a, b)


@jit
def _root(parents: Any, t: Any, i: Any) -> Any:
    while parents[t, i] != i:
        parents[t, i] = parents[t, parents[t, i]]
        i = INT(parents[t, i])
    return i


@jit
def _number(parents: Any, groups: Any) -> None:
    """Number the components of two or more."""
    n = parents.shape[1]
    sizes, numbers = np.empty(n, np.int64), np.empty(n, np.int32)
    for t in range(len(parents)):
        sizes[:] = 0
        for i in range(n):
            parents[t, i] = _root(parents, INT(t), INT(i))
            sizes[parents[t, i]] += 1
        n_groups = 0
        for i in range(n):
            root = parents[t, i]
            if root == i:
                numbers[i] = n_groups if sizes[i] > 1 else -1
                n_groups += sizes[i] > 1
            groups[t, i] = numbers[root]
