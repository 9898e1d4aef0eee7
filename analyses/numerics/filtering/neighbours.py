"""The prompts nearest to each prompt, without approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.compilation import kernel
from analyses.numerics.filtering.cosine_distances import LANES, Directions, pair_distance, products
from analyses.numerics.resampling import blocks_of, map_blocks

ROWS_OF_A_TASK = 2048
"""Rows a worker does at a time, in blocks that share their memory."""
GROUPS = 4
"""Groups of columns for each neighbour wanted: more let fewer others through, and take longer to rank."""


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

    A prompt is never its own neighbour; another one with the same vector is, at distance 0. Vectors that differ in
    length only are at a distance of 0 up to the last digits of a double, by which they may come in any order.

    Args:
        E: ``(n, d)`` finite vectors of any length but 0.
        k: how many; all ``n - 1`` others where there are no more.
    """
    directions, n = Directions.of(E), len(E)
    k = max(0, min(k, n - 1))
    blocks = blocks_of(n, ROWS_OF_A_TASK)

    def task(block: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        return _of_rows(directions, blocks[block], k)

    indices, distances = np.empty((n, k), np.int32), np.empty((n, k))
    if k:
        for rows, found in zip(blocks, map_blocks(task, len(blocks)), strict=True):
            indices[rows.start : rows.stop], distances[rows.start : rows.stop] = found
    return Neighbours(indices=indices, distances=distances)


def _of_rows(directions: Directions, rows: range, k: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Neighbours of a run of prompts: ``(len(rows), k)`` indices and distances."""
    indices, distances = np.empty((len(rows), k), np.int32), np.empty((len(rows), k))
    n_groups = min(len(directions.E), GROUPS * k)
    for start, near in products(directions.unit[rows.start : rows.stop], directions.unit):
        first, block = rows.start + start, slice(start, start + len(near))
        best = np.empty((len(near), n_groups), np.float32)
        _best_of_groups(near, first, best)
        # At least k products reach the k-th of the groups' best. Whatever is that near, or may be but for rounding,
        # is among those that come within twice the slack of it.
        bars = np.partition(best, n_groups - k, axis=1)[:, n_groups - k] - np.float32(2 * directions.slack)
        _select(near, first, best, bars, directions.E, directions.squares, indices[block], distances[block])
    return indices, distances


@kernel
def _best_of_groups(near: Any, first: Any, best: Any) -> None:
    """The largest product of each group of columns; column ``j`` is in group ``j % n_groups``.

    Prompts next to each other, which are often alike, are in different groups.

    Args:
        near: ``(b, n)`` products of rows ``first ..`` with all; that of a row with itself becomes the least.
        first: number of the first row.
        best: ``(b, n_groups)`` to fill.
    """
    n_groups = best.shape[1]
    for r in range(len(near)):
        near[r, first + r] = -np.inf
        mine = best[r]
        mine[:] = near[r, :n_groups]
        for start in range(n_groups, near.shape[1], n_groups):
            part = near[r, start : start + n_groups]
            for g in range(part.size):
                mine[g] = part[g] if part[g] > mine[g] else mine[g]


@kernel
def _select(near: Any, first: Any, best: Any, bars: Any, E: Any, squares: Any, indices: Any, distances: Any) -> None:
    """Order by distance all whose product reaches the row's bar, and keep the first.

    Args:
        near, first, best: as above.
        bars: ``(b,)``.
        E, squares: of `Directions`.
        indices, distances: ``(b, k)`` to fill.
    """
    n, n_groups, k = near.shape[1], best.shape[1], indices.shape[1]
    groups, places = np.empty(n_groups, np.int64), np.empty(n, np.int32)
    exact, sums = np.empty(n), np.empty(LANES)
    for r in range(len(near)):
        n_open = 0
        for g in range(n_groups):
            groups[n_open] = g
            n_open += best[r, g] >= bars[r]
        m = 0
        for start in range(0, n, n_groups):
            for g in groups[:n_open]:
                if start + g < n:
                    places[m] = start + g
                    m += near[r, start + g] >= bars[r]
        n_equal = 0
        for c in range(m):
            exact[c] = pair_distance(E, squares, first + r, places[c], sums)
            n_equal += exact[c] == 0
            if n_equal == k:  # none of the others, which have higher numbers, can come before these
                m = c + 1
                break
        order = np.argsort(exact[:m], kind="mergesort")
        for c in range(k):
            indices[r, c], distances[r, c] = places[order[c]], exact[order[c]]
