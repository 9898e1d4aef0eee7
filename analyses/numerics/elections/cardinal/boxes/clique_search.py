"""The search over boxes of weights with bounds by conflict cliques and hulls: for many rows in many weights."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np

from analyses.numerics.elections.cardinal.boxes.box_bounds import MAX_AGE, bound_box
from analyses.numerics.elections.cardinal.boxes.box_search import (
    LARGE_BUDGET,
    BoxResult,
    BoxSearch,
    OpenBox,
    WeightInequalities,
)
from analyses.numerics.elections.cardinal.boxes.rows_in_box import rows_in_box

MIN_ROWS = 100
"""Undecided in a box, below which halving it is faster than bounding it."""

MIN_WEIGHTS, MAX_WORK = 10, 2**31
"""With fewer weights, halving alone is faster. Squared rows times weights; a box takes too long beyond."""

MAX_EXACT_ROWS = 5
"""Rows that are decided in exact arithmetic: with many weights it takes seconds for a dozen."""

N_TOGETHER = 4
"""Boxes that are taken up at a time."""

MAX_STORED_CLIQUES = 2**25
"""Numbers of cliques kept for open boxes, about; beyond, boxes are covered anew."""


class CliqueSearch(BoxSearch):
    """Box search whose boxes are bounded by conflict cliques and hulls before they are halved."""

    def __init__(self, rows: WeightInequalities, *, epsilon: Fraction, min_weight: float, incumbent: int) -> None:
        """Nothing is looked at yet.

        Args:
            rows: at least one weight.
            epsilon: least weight.
            min_weight: the same as a float.
            incumbent: what is to be exceeded.
        """
        super().__init__(
            rows, epsilon=epsilon, min_weight=min_weight, incumbent=incumbent, max_exact_rows=MAX_EXACT_ROWS
        )
        self._transposed = np.ascontiguousarray(rows.D.T)
        whole = np.array([np.full(len(rows.D), min_weight), np.ones(len(rows.D))])
        in_whole = rows_in_box(self._transposed, self._slack, rows.worth, whole)
        if len(in_whole.worth):
            # One cover for all faces at first, so that even a short search ends with a bound of its own.
            bound = bound_box(in_whole, whole, None, max_worth=int(rows.worth.sum()), incumbent=incumbent)
            bound = replace(bound, age=MAX_AGE - 1)
            self._heap = [
                (-bound.worth, number, replace(box, worth=bound.worth, bound=bound)) for _, number, box in self._heap
            ]

    @classmethod
    def follow(cls, search: BoxSearch) -> CliqueSearch:
        """The search from the start, with the weights and the bound of one that has not ended."""
        follower = cls(search._rows, epsilon=search._epsilon, min_weight=search._min_weight, incumbent=search.incumbent)
        follower.weights = search.weights
        bound = min(search.upper_bound, follower.upper_bound)
        follower._heap = [(-bound, number, replace(box, worth=bound)) for _, number, box in follower._heap]
        return follower

    @staticmethod
    def suits(rows: WeightInequalities) -> bool:
        """Whether the bounds are worth their time."""
        n_weights, n_rows = rows.D.shape
        return bool(n_weights >= MIN_WEIGHTS and n_rows > MIN_ROWS and n_rows**2 * n_weights <= MAX_WORK)

    def advance(self, *, deadline: float, target_bound: int = 0) -> None:
        """The same with as many threads as there are processors; their number does not change what is found."""
        with ThreadPoolExecutor(min(N_TOGETHER, os.cpu_count() or 1)) as executor:
            self._advance(executor.map, N_TOGETHER, deadline, target_bound)

    def _divide(self, box: OpenBox) -> BoxResult:
        rows = rows_in_box(self._transposed, self._slack, self._rows.worth, box.ends)
        if len(rows.worth) < MIN_ROWS:
            return self._halve(box, LARGE_BUDGET)
        bound = bound_box(
            rows,
            box.ends,
            box.bound,
            max_worth=box.worth,
            incumbent=self.incumbent,
            keep_cliques=len(self._heap) * len(self._slack) < MAX_STORED_CLIQUES,
        )
        result = self._evaluate(bound.point)
        if bound.worth <= max(self.incumbent, result.worth):
            return result
        j, halves = bound.branching_weight, []
        for side in range(2):
            ends = box.ends.copy()
            ends[1 - side, j] = (box.ends[0, j] + box.ends[1, j]) / 2
            halves.append(OpenBox(ends=ends, worth=bound.worth, bound=bound))
        return BoxResult(worth=result.worth, weights=result.weights, open_boxes=halves)
