"""The most inequalities that weights in given boxes can fulfil at once, as an interval that closes with time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.branch_and_bound import SUM_ERROR, branch_and_bound
from analyses.numerics.elections.cardinal.exact_feasibility import maximize_in_box

SMALL_BUDGET, LARGE_BUDGET = 12, 5000
"""Boxes looked at before the most promising one is taken up again; more of them once memory runs short."""

MAX_STORED_FLOATS = 2**24
"""Floats kept for open boxes, about."""

MAX_EXACT_ROWS = 12
"""Rows that are decided in exact arithmetic, where halving does not end: around points at which several rows are 0."""

NARROW_WIDTH, MIN_WIDTH = 2.0**-8, 2.0**-36
"""Width of a box from which on that is tried, and at which a box with more rows is given up."""


@dataclass(frozen=True, kw_only=True)
class WeightInequalities:
    """Rows d·w < 0, each worth something.

    Attributes:
        D: ``(n_weights, n_rows)`` float64, each entry correctly rounded but for a few last digits.
        worth: ``(n_rows,)`` int64 of a row that holds, positive.
        worth_tied: ``(n_rows,)`` int64 of a row with d·w = 0.
        steps, units: the rows exactly, up to a positive factor each: integers times ``(n_weights,)`` fractions.
    """

    D: NDArray[np.float64]
    worth: NDArray[np.int64]
    worth_tied: NDArray[np.int64]
    steps: NDArray[Any]
    units: tuple[Fraction, ...]

    @property
    def slack(self) -> NDArray[np.float64]:
        """``(n_rows,)`` how far a computed sum may be from the true one, for weights in [0, 1]."""
        return np.asarray(SUM_ERROR * np.abs(self.D).sum(axis=0))

    def exact_row(self, row: int) -> list[Fraction]:
        """A row as fractions."""
        return [int(step) * unit for step, unit in zip(self.steps[:, row], self.units, strict=True)]

    def undecided_rows(self, box: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
        """Rows that hold in part of a box, perhaps, and the worth of those that hold in all of it."""
        positive, negative = np.maximum(self.D, 0), np.minimum(self.D, 0)
        minimum, maximum = box[0] @ positive + box[1] @ negative, box[1] @ positive + box[0] @ negative
        is_certain = maximum < -self.slack
        return np.flatnonzero((minimum < self.slack) & ~is_certain), int(self.worth[is_certain].sum())


def face_boxes(n_weights: int, epsilon: float) -> list[NDArray[np.float64]]:
    """Boxes ``(2, n_weights)`` that hold every direction of [epsilon, 1]ⁿ: one weight at 1, the others free."""
    boxes = []
    for index in range(n_weights):
        box = np.array([np.full(n_weights, epsilon), np.ones(n_weights)])
        box[0, index] = 1.0
        boxes.append(box)
    return boxes


class BoxSearch:
    """Branch and bound over weights in [epsilon, 1], the box with the largest bound first; it can be taken up again.

    Attributes:
        best: worth of the best weights known; at first what is to be exceeded.
        weights: ``(n_weights,)`` that have it; None where none exceeds it.
    """

    def __init__(
        self,
        rows: WeightInequalities,
        *,
        epsilon: Fraction,
        min_weight: float,
        incumbent: int,
        max_exact_rows: int = MAX_EXACT_ROWS,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            rows: at least one weight.
            epsilon: least weight.
            min_weight: the same as a float.
            incumbent: what is to be exceeded.
            max_exact_rows: rows that are decided in exact arithmetic.
        """
        self.incumbent, self.weights = incumbent, None
        self._rows, self._epsilon, self._min_weight, self._max_exact_rows = rows, epsilon, min_weight, max_exact_rows
        self._slack, self._abandoned_bound = rows.slack, 0
        total_worth = int(rows.worth.sum())
        boxes = face_boxes(len(rows.D), min_weight)
        self._heap: list[tuple[int, int, Any]] = [(-total_worth, number, box) for number, box in enumerate(boxes)]
        self._n_made = len(boxes)

    weights: NDArray[np.float64] | None

    @property
    def upper_bound(self) -> int:
        """No weights do more."""
        return max(self.incumbent, self._abandoned_bound, -self._heap[0][0] if self._heap else 0)

    def advance(self, *, deadline: float, target_bound: int = 0) -> None:
        """Go on until nothing better is possible, the bound is at most ``target_bound``, or time is up.

        Args:
            deadline: by the monotonic clock.
            target_bound: a bound that will do.
        """
        heap, rows = self._heap, self._rows
        while heap and -heap[0][0] > max(self.incumbent, target_bound) and monotonic() < deadline:
            bound, _, box = heapq.heappop(heap)
            width = (box[1] - box[0]).max()
            if width <= NARROW_WIDTH or len(self._slack) <= self._max_exact_rows:
                undecided, certain_worth = rows.undecided_rows(box)
                if len(undecided) <= self._max_exact_rows:
                    self._accept(
                        *_solve_exactly(
                            rows, undecided, certain_worth, box, self._epsilon, self._min_weight, self.incumbent
                        )
                    )
                    continue
            if width <= MIN_WIDTH:
                self._abandoned_bound = max(self._abandoned_bound, -bound)
                continue
            budget = SMALL_BUDGET if len(heap) * 2 * len(rows.D) < MAX_STORED_FLOATS else LARGE_BUDGET
            best, witness, ends, bounds = branch_and_bound(
                rows.D, self._slack, rows.worth, box[0], box[1], self.incumbent, budget
            )
            self._accept(best, witness if len(witness) else None)
            open_boxes = ends.copy().reshape(-1, 2, len(rows.D))
            for open_box, open_bound in zip(open_boxes, bounds.ravel().tolist(), strict=True):
                heapq.heappush(heap, (-int(open_bound), self._n_made, open_box))
                self._n_made += 1

    def propose(self, weights: NDArray[np.float64]) -> None:
        """Take weights found elsewhere, if they are better.

        Args:
            weights: ``(n_weights,)`` in [epsilon, 1].
        """
        worth = int(self._rows.worth[weights @ self._rows.D < -self._slack].sum())
        if worth > self.incumbent:
            self._accept(worth, weights)

    def _accept(self, worth: int, weights: NDArray[np.float64] | None) -> None:
        if weights is not None:
            self.incumbent, self.weights = int(worth), weights


def _solve_exactly(
    rows: WeightInequalities,
    undecided: NDArray[np.int64],
    certain_worth: int,
    box: NDArray[np.float64],
    epsilon: Fraction,
    min_weight: float,
    incumbent: int,
) -> tuple[int, NDArray[np.float64] | None]:
    """The best of one box in exact arithmetic, where it exceeds what is known."""
    low, high = ([epsilon if end == min_weight else Fraction(end) for end in ends] for ends in box.tolist())
    worth, weights = maximize_in_box(
        [rows.exact_row(row) for row in undecided],
        rows.worth[undecided].tolist(),
        rows.worth_tied[undecided].tolist(),
        low,
        high,
        incumbent=incumbent - certain_worth,
    )
    if weights is None:
        return incumbent, None
    return worth + certain_worth, np.array([min_weight if weight == epsilon else float(weight) for weight in weights])
