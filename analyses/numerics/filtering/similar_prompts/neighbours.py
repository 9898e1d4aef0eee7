"""The prompts nearest to each prompt, without approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.similar_prompts.cosine_distances import (
    LANES,
    NormalizedVectors,
    copy_row,
    distance_from,
    iterate_products,
)
from analyses.numerics.filtering.similar_prompts.neighbour_candidates import NeighbourCandidates, find_candidates
from analyses.numerics.sorting import stable_argsort
from tracker.statistics.jit import INT, jit
from tracker.statistics.parallel.blocks import map_blocks, split_blocks

ROWS_OF_A_TASK = 2048
"""Prompts a worker does at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbours:
    """The nearest other prompts of each prompt.

    Attributes:
        indices: ``(n, k)`` int32, nearest first; ties in distance by index.
        distances: ``(n, k)`` float64, cosine distance ``1 - cos`` in [0, 2], ascending.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.float64]


def find_nearest_neighbours(E: NDArray[np.float32], k: int = 100) -> Neighbours:
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
    directions, n = NormalizedVectors.of(E), len(E)
    k = max(0, min(k, n - 1))
    neighbours = Neighbours(indices=np.empty((n, k), np.int32), distances=np.empty((n, k)))
    few = find_candidates(directions, k)
    left = _fill_from(few, directions, neighbours) if few else np.arange(n if k else 0)
    _fill_from_all(left, directions, neighbours)
    return neighbours


def _fill_from(few: NeighbourCandidates, directions: NormalizedVectors, neighbours: Neighbours) -> NDArray[np.int64]:
    """Fill the rows whose neighbours are certain to be among their candidates; return the others."""
    k = neighbours.indices.shape[1]
    bars = few.kth(k) - np.float32(2 * directions.slack)
    enough = bars >= few.bars
    blocks = split_blocks(len(bars), ROWS_OF_A_TASK)

    def task(block: int) -> Neighbours:
        rows = blocks[block]
        part = Neighbours(indices=np.empty((len(rows), k), np.int32), distances=np.empty((len(rows), k)))
        chosen = np.flatnonzero(enough[rows.start : rows.stop])
        _select_candidates(
            chosen,
            rows.start,
            bars,
            few.places,
            few.values,
            directions.E,
            directions.squares,
            part.indices,
            part.distances,
        )
        return part

    for rows, part in zip(blocks, map_blocks(task, len(blocks)), strict=True):
        neighbours.indices[rows.start : rows.stop] = part.indices
        neighbours.distances[rows.start : rows.stop] = part.distances
    return np.flatnonzero(~enough)


def _fill_from_all(left: NDArray[np.int64], directions: NormalizedVectors, neighbours: Neighbours) -> None:
    """Fill some rows by comparing them with all prompts."""
    n, k = neighbours.indices.shape
    for start, near in iterate_products(directions.unit[left], directions.unit):
        rows = left[start : start + len(near)]
        near[np.arange(len(near)), rows] = -np.inf
        bars = np.partition(near, n - k, axis=1)[:, n - k] - np.float32(2 * directions.slack)
        _select(near, rows, bars, directions.E, directions.squares, neighbours.indices, neighbours.distances)


@jit
def _select_candidates(
    chosen: Any, first: Any, bars: Any, places: Any, values: Any, E: Any, squares: Any, indices: Any, distances: Any
) -> None:
    """Fill some rows of a block with the nearest of the candidates that reach the row's bar.

    Args:
        chosen: their places in the block.
        first: number of the block's first row.
        bars: ``(n,)`` of products.
        places, values: of `NeighbourCandidates`.
        E, squares: of `NormalizedVectors`.
        indices, distances: ``(b, k)`` of the block.
    """
    near = np.empty(places.shape[1], np.int32)
    exact, wide, sums = np.empty(near.size), np.empty(E.shape[1]), np.empty(LANES)
    for r in chosen:
        i, m = INT(first + r), 0
        for c in range(near.size):
            near[m] = places[i, c]
            m += values[i, c] >= bars[i]
        _keep_nearest(i, near[:m], E, squares, wide, exact, sums, indices[r], distances[r])


@jit
def _select(near: Any, rows: Any, bars: Any, E: Any, squares: Any, indices: Any, distances: Any) -> None:
    """Fill some rows with the nearest of all whose product reaches the row's bar.

    Args:
        near: ``(m, n)`` products of the rows with all.
        rows: ``(m,)`` their numbers.
        bars: ``(m,)``.
        E, squares: of `NormalizedVectors`.
        indices, distances: ``(n, k)`` of all.
    """
    n = near.shape[1]
    places, exact, wide, sums = np.empty(n, np.int32), np.empty(n), np.empty(E.shape[1]), np.empty(LANES)
    for r in range(len(rows)):
        i, m = INT(rows[r]), 0
        for j in range(n):
            places[m] = j
            m += near[r, j] >= bars[r]
        _keep_nearest(i, places[:m], E, squares, wide, exact, sums, indices[i], distances[i])


@jit
def _keep_nearest(
    i: Any, places: Any, E: Any, squares: Any, wide: Any, exact: Any, sums: Any, indices: Any, distances: Any
) -> None:
    """Order some prompts, ascending by number, by their distance from one, and keep the first."""
    copy_row(E, i, wide)
    n_equal, m = 0, places.size
    for c in range(m):
        exact[c] = distance_from(wide, squares[i], INT(places[c]), E, squares, sums)
        n_equal += exact[c] == 0
        if n_equal == indices.size:  # none of the others, which have higher numbers, can come before these
            m = c + 1
            break
    order, buffer = np.empty(m, np.int64), np.empty(m, np.int64)
    stable_argsort(exact[:m], order, buffer)
    for c in range(indices.size):
        indices[c], distances[c] = places[order[c]], exact[order[c]]
