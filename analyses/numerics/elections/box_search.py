"""The most inequalities that weights in given boxes can fulfil at once, as an interval that closes with time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.weight_boxes import ROUNDING, explore

SMALL, LARGE = 12, 5000
"""Boxes looked at before the most promising one is taken up again; more of them once memory runs short."""

MOST_NUMBERS = 2**24
"""Floats kept for open boxes, about."""

NARROWEST = 2.0**-36
"""A box of at most this width is not halved again: what is still open in it rests on coincidence."""


@dataclass(frozen=True, kw_only=True)
class Inequalities:
    """Rows d·w < 0, each worth something.

    Attributes:
        D: ``(n_weights, n_rows)`` float64, each entry correctly rounded.
        worth: ``(n_rows,)`` int64, positive.
    """

    D: NDArray[np.float64]
    worth: NDArray[np.int64]

    @property
    def slack(self) -> NDArray[np.float64]:
        """``(n_rows,)`` how far a computed sum may be from the true one, for weights in [0, 1]."""
        return np.asarray(ROUNDING * np.abs(self.D).sum(axis=0))

    def fulfilled(self, weights: NDArray[np.float64]) -> int:
        """Worth of the rows that surely hold."""
        return int(self.worth[weights @ self.D < -self.slack].sum())


def face_boxes(n_weights: int, epsilon: float) -> list[NDArray[np.float64]]:
    """Boxes ``(2, n_weights)`` that hold every direction of [epsilon, 1]ⁿ: one weight at 1, the others free."""
    boxes = []
    for place in range(n_weights):
        box = np.array([np.full(n_weights, epsilon), np.ones(n_weights)])
        box[0, place] = 1.0
        boxes.append(box)
    return boxes


@dataclass(frozen=True, kw_only=True)
class Most:
    """What was found.

    Attributes:
        worth: of the best weights known; what was to be exceeded, where none exceeds it.
        weights: ``(n_weights,)``; None where none exceeds it.
        at_most: no weights in the boxes do more.
        narrow: boxes that bound it and are too narrow to be halved again.
    """

    worth: int
    weights: NDArray[np.float64] | None
    at_most: int
    narrow: list[NDArray[np.float64]]


def most_fulfilled(rows: Inequalities, boxes: list[NDArray[np.float64]], *, best: int, until: float) -> Most:
    """Branch and bound, the box with the largest bound first.

    Args:
        rows: at least one weight.
        boxes: ``(2, n_weights)`` each, within [0, 1].
        best: what is to be exceeded.
        until: when to stop, by the monotonic clock.
    """
    slack, n_weights = rows.slack, len(rows.D)
    possible = int(rows.worth.sum())
    heap: list[tuple[int, int, Any]] = [(-possible, number, box) for number, box in enumerate(boxes)]
    heapq.heapify(heap)
    n_made = len(heap)
    weights: NDArray[np.float64] | None = None
    narrow: list[tuple[int, Any]] = []
    while heap and -heap[0][0] > best and monotonic() < until:
        bound, _, box = heapq.heappop(heap)
        if (box[1] - box[0]).max() <= NARROWEST:
            narrow.append((-bound, box))
            continue
        budget = SMALL if len(heap) * 2 * n_weights < MOST_NUMBERS else LARGE
        best, found, left, bounds, _ = explore(rows.D, slack, rows.worth, box[0], box[1], best, budget)
        if len(found):
            weights = found
        for one, its_bound in zip(left, bounds.tolist(), strict=True):
            heapq.heappush(heap, (-its_bound, n_made, one))
            n_made += 1
    still = [(size, box) for size, box in narrow if size > best]
    open_bound = -heap[0][0] if heap else best
    return Most(
        worth=best,
        weights=weights,
        at_most=max(best, open_bound, *(size for size, _ in still), best),
        narrow=[box for _, box in still],
    )
