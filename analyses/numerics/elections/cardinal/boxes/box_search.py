"""The most inequalities that weights in given boxes can fulfil at once, as an interval that closes with time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.branch_and_bound import SUM_ERROR, branch_and_bound
from analyses.numerics.elections.cardinal.boxes.exact_feasibility import maximize_in_box
from tracker.statistics.jit import working_time

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


@dataclass(frozen=True, kw_only=True)
class OpenBox:
    """A box in which the incumbent may be exceeded.

    Attributes:
        ends: ``(2, n_weights)``.
        worth: no weights in the box do more.
        bound: of the box that this is a half of, where that has any.
    """

    ends: NDArray[np.float64]
    worth: int
    bound: Any = None


@dataclass(frozen=True, kw_only=True)
class BoxResult:
    """What is found in a box.

    Attributes:
        worth: of the weights.
        weights: ``(n_weights,)`` that exceed the incumbent; None where none do.
        open_boxes: parts of the box in which they may be exceeded.
        abandoned_worth: bound of a box that is too narrow to go on.
    """

    worth: int = 0
    weights: NDArray[np.float64] | None = None
    open_boxes: Sequence[OpenBox] = ()
    abandoned_worth: int = 0


class BoxSearch:
    """Branch and bound over weights in [epsilon, 1], the box with the largest bound first; it can be taken up again.

    Attributes:
        incumbent: worth of the best weights known; at first what is to be exceeded.
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
        self._heap = [(-total_worth, number, OpenBox(ends=box, worth=total_worth)) for number, box in enumerate(boxes)]
        self._n_made = len(boxes)

    weights: NDArray[np.float64] | None

    @property
    def upper_bound(self) -> int:
        """No weights do more."""
        return max(self.incumbent, self._abandoned_bound, -self._heap[0][0] if self._heap else 0)

    def advance(self, *, deadline: float, target_bound: int = 0) -> None:
        """Go on until nothing better is possible, the bound is at most ``target_bound``, or time is up.

        Args:
            deadline: by `working_time`.
            target_bound: a bound that will do.
        """
        self._advance(map, 1, deadline, target_bound)

    def _advance(self, map_boxes: Callable[..., Any], n_together: int, deadline: float, target_bound: int) -> None:
        """Search so many boxes at a time; what one of them finds is used after all of them."""
        heap = self._heap
        while heap and -heap[0][0] > max(self.incumbent, target_bound) and working_time() < deadline:
            boxes = [heapq.heappop(heap)[2] for _ in range(min(n_together, len(heap)))]
            for result in list(map_boxes(self._search_box, boxes)):
                self._add(result)

    def propose(self, weights: NDArray[np.float64]) -> None:
        """Take weights found elsewhere, if they are better.

        Args:
            weights: ``(n_weights,)`` in [epsilon, 1].
        """
        self._add(self._evaluate(weights))

    def _evaluate(self, weights: NDArray[np.float64]) -> BoxResult:
        """The worth of weights, rows too close to 0 left out."""
        return BoxResult(worth=int(self._rows.worth[weights @ self._rows.D < -self._slack].sum()), weights=weights)

    def _search_box(self, box: OpenBox) -> BoxResult:
        """Decide a box, or divide it."""
        if box.worth <= self.incumbent:
            return BoxResult()
        rows, ends = self._rows, box.ends
        width = (ends[1] - ends[0]).max()
        if width <= NARROW_WIDTH or len(self._slack) <= self._max_exact_rows:
            undecided, certain_worth = rows.undecided_rows(ends)
            if len(undecided) <= self._max_exact_rows:
                worth, weights = _solve_exactly(
                    rows, undecided, certain_worth, ends, self._epsilon, self._min_weight, self.incumbent
                )
                return BoxResult(worth=worth, weights=weights)
        if width <= MIN_WIDTH:
            return BoxResult(abandoned_worth=box.worth)
        return self._divide(box)

    def _divide(self, box: OpenBox) -> BoxResult:
        """Halve a box a few times."""
        is_memory_short = len(self._heap) * 2 * len(self._rows.D) >= MAX_STORED_FLOATS
        return self._halve(box, LARGE_BUDGET if is_memory_short else SMALL_BUDGET)

    def _halve(self, box: OpenBox, budget: int) -> BoxResult:
        """Halve a box, and look at ``budget`` boxes at most."""
        rows = self._rows
        worth, witness, ends, bounds = branch_and_bound(
            rows.D, self._slack, rows.worth, box.ends[0], box.ends[1], self.incumbent, budget
        )
        open_ends = ends.copy().reshape(-1, 2, len(rows.D))
        return BoxResult(
            worth=worth,
            weights=witness if len(witness) else None,
            open_boxes=[
                OpenBox(ends=box_ends, worth=int(bound))
                for box_ends, bound in zip(open_ends, bounds.ravel().tolist(), strict=True)
            ],
        )

    def _add(self, result: BoxResult) -> None:
        """Keep what a box holds."""
        if result.weights is not None and result.worth > self.incumbent:
            self.incumbent, self.weights = int(result.worth), result.weights
        self._abandoned_bound = max(self._abandoned_bound, result.abandoned_worth)
        for box in result.open_boxes:
            heapq.heappush(self._heap, (-box.worth, self._n_made, box))
            self._n_made += 1


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
