"""The prompts nearest to each prompt, without approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.compilation import INT, kernel
from analyses.numerics.filtering.cosine_distances import LANES, Directions, distance_from, products
from analyses.numerics.filtering.neighbour_candidates import ROWS_OF_A_TASK, Candidates, candidates
from analyses.numerics.resampling import blocks_of, map_blocks


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbours:
    """The nearest other prompts of each prompt.

    Attributes:
        indices: ``(n, k)`` int32, nearest first; ties in distance by index.
        distances: ``(n, k)`` float64, cosine distance ``1 - cos`` in [0, 2], ascending.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.float64]


def nearest_neighbours(E: NDArray[np.float32], k: int = 100) -> Neighbours:
    """The exact nearest neighbours: the same bytes for any number of workers and any library of matrix products.

    Products in single precision say which prompts come into question: all that are as near as the ``k``-th, or may be
    but for rounding. Those are ordered by their distances in double precision. A prompt is never its own neighbour;
    another one with the same vector is, at distance 0. Vectors that differ in length only are at a distance of 0 up to
    the last digits of a double, by which they may come in any order.

    Args:
        E: ``(n, d)`` finite vectors of any length but 0.
        k: how many; all ``n - 1`` others where there are no more.

    Raises:
        ValueError: a vector is zero or not finite.
    """
    directions, n = Directions.of(E), len(E)
    k = max(0, min(k, n - 1))
    indices, distances = np.empty((n, k), np.int32), np.empty((n, k))
    found = candidates(directions, k) if k else None
    blocks = blocks_of(n if k else 0, ROWS_OF_A_TASK)

    def task(block: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        return _of_block(directions, blocks[block], k, found)

    for rows, part in zip(blocks, map_blocks(task, len(blocks)), strict=True):
        indices[rows.start : rows.stop], distances[rows.start : rows.stop] = part
    return Neighbours(indices=indices, distances=distances)


def _of_block(
    directions: Directions, rows: range, k: int, found: Candidates | None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Neighbours of a run of prompts: ``(len(rows), k)`` indices and distances."""
    E, squares = directions.E, directions.squares
    width = np.float32(2 * directions.slack)
    indices, distances = np.empty((len(rows), k), np.int32), np.empty((len(rows), k))
    left = np.arange(len(rows))
    if found:
        block = slice(rows.start, rows.stop)
        bars = found.kth(block, k) - width
        enough = bars >= found.bars[block]
        _select_candidates(
            np.flatnonzero(enough), rows.start, bars, found.places, found.values, E, squares, indices, distances
        )
        left = np.flatnonzero(~enough)
    for start, near in products(directions.unit[rows.start + left], directions.unit):
        mine = left[start : start + len(near)]
        near[np.arange(len(near)), rows.start + mine] = -np.inf
        bars = np.partition(near, near.shape[1] - k, axis=1)[:, near.shape[1] - k] - width
        _select(near, mine, rows.start, bars, E, squares, indices, distances)
    return indices, distances


@kernel
def _select_candidates(
    rows: Any, first: Any, bars: Any, places: Any, values: Any, E: Any, squares: Any, indices: Any, distances: Any
) -> None:
    """Fill some rows with the nearest of the candidates that reach the row's bar.

    Args:
        rows: places among the rows of the block.
        first: number of the block's first row.
        bars: ``(b,)``.
        places, values: of `Candidates`.
        E, squares: of `Directions`.
        indices, distances: ``(b, k)``.
    """
    near = np.empty(places.shape[1], np.int32)
    exact, wide, sums = np.empty(near.size), np.empty(E.shape[1]), np.empty(LANES)
    for r in rows:
        m = 0
        for c in range(near.size):
            near[m] = places[first + r, c]
            m += values[first + r, c] >= bars[r]
        _keep_nearest(INT(first + r), near[:m], E, squares, wide, exact, sums, indices[r], distances[r])


@kernel
def _select(near: Any, rows: Any, first: Any, bars: Any, E: Any, squares: Any, indices: Any, distances: Any) -> None:
    """Fill some rows with the nearest of all whose product reaches the row's bar.

    Args:
        near: ``(m, n)`` products of the rows with all.
        rows, first: as above.
        bars: ``(m,)``.
        E, squares, indices, distances: as above.
    """
    n = near.shape[1]
    places, exact, wide, sums = np.empty(n, np.int32), np.empty(n), np.empty(E.shape[1]), np.empty(LANES)
    for q in range(len(near)):
        m = 0
        for j in range(n):
            places[m] = j
            m += near[q, j] >= bars[q]
        r = rows[q]
        _keep_nearest(INT(first + r), places[:m], E, squares, wide, exact, sums, indices[r], distances[r])


@kernel
def _keep_nearest(
    i: Any, places: Any, E: Any, squares: Any, wide: Any, exact: Any, sums: Any, indices: Any, distances: Any
) -> None:
    """Order some prompts, ascending by number, by their distance from one, and keep the first."""
    wide[:] = E[i]
    n_equal, m = 0, places.size
    for c in range(m):
        exact[c] = distance_from(wide, squares[i], INT(places[c]), E, squares, sums)
        n_equal += exact[c] == 0
        if n_equal == indices.size:  # none of the others, which have higher numbers, can come before these
            m = c + 1
            break
    order = np.argsort(exact[:m], kind="mergesort")
    for c in range(indices.size):
        indices[c], distances[c] = places[order[c]], exact[order[c]]
