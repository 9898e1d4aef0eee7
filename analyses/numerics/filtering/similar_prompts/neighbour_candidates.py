"""The few prompts among which each prompt's nearest neighbours are, from products taken once for both of a pair."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.similar_prompts.cosine_distances import (
    ROWS_AT_A_TIME,
    NormalizedVectors,
    iterate_pair_products,
    iterate_products,
)
from tracker.statistics.jit import jit
from tracker.statistics.parallel.blocks import split_blocks

STEP = 16
"""One prompt in so many is looked at first, to learn how near the neighbours of each prompt may be."""
SPREADS = (2.8, 4.0)
"""Standard deviations of the number of neighbours among those looked at first: to expect more of them, and to have room
for more candidates. About one prompt in a hundred has too few or too many candidates."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NeighbourCandidates:
    """For each of ``n`` prompts all others whose product with it reaches a bar.

    Attributes:
        bars: ``(n,)`` of products of unit vectors.
        counts: ``(n,)`` how many reach it; if there is no room for all, some are missing.
        places: ``(n, room)`` their numbers, ascending.
        values: ``(n, room)`` their products; minus infinity after the last.
    """

    bars: NDArray[np.float32]
    counts: NDArray[np.int64]
    places: NDArray[np.int32]
    values: NDArray[np.float32]

    def kth(self, k: int) -> NDArray[np.float32]:
        """``(n,)`` the ``k``-th largest product; minus infinity where there are fewer, or some may be missing."""
        n, room = self.values.shape
        kth = np.empty(n, np.float32)
        for rows in split_blocks(n, ROWS_AT_A_TIME):
            block = slice(rows.start, rows.stop)
            kth[block] = np.partition(self.values[block], room - k, axis=1)[:, room - k]
        return np.where(self.counts <= room, kth, -np.float32(np.inf))


def find_candidates(directions: NormalizedVectors, k: int) -> NeighbourCandidates | None:
    """Usually some more than ``k`` for each prompt; None if there are too few prompts for that to pay, or ``k`` is 0.

    Which they are depends on the rounding of products.
    """
    n = len(directions.unit)
    expected = ceil(k / STEP + SPREADS[0] * sqrt(k / STEP))
    room = ceil(STEP * (expected + SPREADS[1] * sqrt(expected)))
    if not k or n < 4 * room:
        return None
    bars = _bars(directions.unit, expected)
    counts = np.zeros(n, np.int64)
    places, values = np.zeros((n, room), np.int32), np.full((n, room), -np.inf, np.float32)
    for row, column, near in iterate_pair_products(directions.unit):
        _gather(near, row, column, bars, counts, places, values)
    return NeighbourCandidates(bars=bars, counts=counts, places=places, values=values)


def _bars(unit: NDArray[np.float32], rank: int) -> NDArray[np.float32]:
    """``(n,)`` the product of that rank, of each vector with every `STEP`-th."""
    few, bars = unit[::STEP], np.empty(len(unit), np.float32)
    place = len(few) - rank
    for start, near in iterate_products(unit, few):
        near.partition(place, axis=1)
        bars[start : start + len(near)] = near[:, place]
    return bars


@jit
def _gather(near: Any, row: Any, column: Any, bars: Any, counts: Any, places: Any, values: Any) -> None:
    """Add the pairs in a block of products to the candidates of both.

    Args:
        near: ``(b, m)`` of `iterate_pair_products`.
        row, column: numbers of its first row and column.
        bars, counts, places, values: of `NeighbourCandidates`.
    """
    column_bars, room = bars[column:], places.shape[1]
    reached = np.empty(column_bars.size, np.int32)
    for r in range(len(near)):
        i, row_products = row + r, near[r]
        bar, count = bars[i], counts[i]
        n_reached = 0
        for c in range(i + 1 - column, row_products.size):
            reached[n_reached] = c
            n_reached += (row_products[c] >= bar) | (row_products[c] >= column_bars[c])
        for c in reached[:n_reached]:
            j = column + c
            if row_products[c] >= bar:
                if count < room:
                    places[i, count], values[i, count] = j, row_products[c]
                count += 1
            if row_products[c] >= column_bars[c]:
                if counts[j] < room:
                    places[j, counts[j]], values[j, counts[j]] = i, row_products[c]
                counts[j] += 1
        counts[i] = count
