"""Branch and bound over boxes of weights: how many of many linear inequalities can hold at once?

Rows are inequalities d·w < 0, each worth something; w ranges over boxes. Over a box the least and the largest d·w are
sums of corners, so a row is never, surely or perhaps fulfilled there; what is not never is a bound. Halving a box
changes one term of each sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracker.statistics.jit import INT, jit

SUM_ERROR = 1e-13
"""Sums of at most some hundred terms, each of them correctly rounded, are known to this share of Σ|d|."""

MAX_DEPTH = 400
"""So often a box is halved at most before it is handed back as it is."""

N_SAMPLED_ROWS = 48
"""Rows by which the direction to halve is chosen."""


ROW, MIN_SUM, MAX_SUM = 0, 1, 2
"""Columns of a row that is still open in a box: which it is, and its least and largest sum there."""


@jit
def _sums_in_box(D: Any, box: Any, rows: Any) -> None:
    """Fill ``rows``, one for each inequality, with its least and largest sum in a box."""
    for row in range(D.shape[1]):
        minimum, maximum = 0.0, 0.0
        for j in range(D.shape[0]):
            d = D[j, row]
            minimum += d * (box[0, j] if d > 0 else box[1, j])
            maximum += d * (box[1, j] if d > 0 else box[0, j])
        rows[row, ROW], rows[row, MIN_SUM], rows[row, MAX_SUM] = row, minimum, maximum


@jit
def _filter_open_rows(D: Any, slack: Any, worth: Any, parent: Any, j: Any, by: Any, from_above: Any, rows: Any) -> Any:
    """Fill ``rows`` with those that stay open once weight ``j`` of a box has lost ``by`` at its upper or lower end.

    Returns:
        How many; the worth of rows that now surely hold, of all that can hold, and of those that do at the middle.
    """
    size, certain, bound, at_middle = 0, 0, 0, 0
    for index in range(len(parent)):
        row = INT(parent[index, ROW])
        smallest, largest = parent[index, MIN_SUM], parent[index, MAX_SUM]
        change = D[j, row] * by
        if from_above:
            change = -change
        if change > 0:
            smallest += change
        else:
            largest += change
        if smallest >= slack[row]:
            continue
        bound += worth[row]
        if smallest + largest < -2 * slack[row]:
            at_middle += worth[row]
        if largest < -slack[row]:
            certain += worth[row]
        else:
            rows[size, ROW], rows[size, MIN_SUM], rows[size, MAX_SUM] = row, smallest, largest
            size += 1
    return size, certain, bound, at_middle


@jit
def _choose_branching_weight(D: Any, worth: Any, box: Any, rows: Any) -> Any:
    """The weight along which the sums of some of the rows vary most, as a share of how much they vary at all."""
    step = max(1, len(rows) // N_SAMPLED_ROWS)
    chosen, widest = -1, 0.0
    for j in range(D.shape[0]):
        spread = 0.0
        for index in range(0, len(rows), step):
            row = INT(rows[index, ROW])
            spread += worth[row] * abs(D[j, row]) / (rows[index, MAX_SUM] - rows[index, MIN_SUM])
        width = box[1, j] - box[0, j]
        if width > 0 and spread * width > widest:
            chosen, widest = j, spread * width
    return chosen


@jit
def _ensure_capacity(array: Any, size: Any) -> Any:
    """The array, or a copy with room for as many entries."""
    if size <= len(array):
        return array
    larger = np.empty((2 * size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@jit
def _append_box(boxes: Any, bounds: Any, n: Any, box: Any, bound: Any) -> Any:
    """The boxes and bounds, grown where they are full, with one more at index ``n``."""
    boxes, bounds = _ensure_capacity(boxes, n + 1), _ensure_capacity(bounds, n + 1)
    boxes[n], bounds[n] = box, bound
    return boxes, bounds


@jit
def _halve(D: Any, slack: Any, worth: Any, box: Any, j: Any, rows: Any, halves: Any, counts: Any) -> Any:
    """Fill ``halves`` with the rows open in each half and ``counts``, ``(4, 2)``; returns where the box is cut."""
    cut = (box[0, j] + box[1, j]) / 2
    for side in range(2):
        by = box[1, j] - cut if side == 0 else cut - box[0, j]
        counts[0, side], counts[1, side], counts[2, side], counts[3, side] = _filter_open_rows(
            D, slack, worth, rows, j, by, side == 0, halves[side]
        )
    return cut


@jit
def branch_and_bound(D: Any, slack: Any, worth: Any, low: Any, high: Any, incumbent: Any, budget: Any) -> Any:
    """Halve a box again and again, following the better half first, and drop what cannot exceed the incumbent.

    Args:
        D: ``(n_weights, n_rows)`` float64, a column for each inequality.
        slack: ``(n_rows,)`` how far a sum may be from what it should be.
        worth: ``(n_rows,)`` int64, positive.
        low, high: ``(n_weights,)`` the box.
        incumbent: worth that is to be exceeded.
        budget: boxes to look at, at most.

    Returns:
        Best worth, its weights (empty where nothing exceeds the incumbent), open boxes ``(n, 2, n_weights)``, their
        bounds, and the number of boxes looked at.
    """
    n, n_rows = D.shape
    # Boxes wait on a stack; the open rows of each lie in one arena, those of the uppermost box last.
    boxes = np.empty((MAX_DEPTH + 2, 2, n))
    start, certain, bound, depth = np.zeros((4, MAX_DEPTH + 3), np.int64)
    arena, halves, counts = np.empty((4 * n_rows, 3)), np.empty((2, n_rows, 3)), np.zeros((4, 2), np.int64)
    open_boxes, open_bounds, n_open = np.empty((16, 2, n)), np.empty(16, np.int64), INT(0)
    witness = np.empty(0)

    boxes[0, 0], boxes[0, 1] = low, high
    _sums_in_box(D, boxes[0], halves[0])
    start[1], certain[0], bound[0], at_middle = _filter_open_rows(
        D, slack, worth, halves[0], INT(0), 0.0, np.bool_(True), arena
    )
    if at_middle > incumbent:
        incumbent, witness = at_middle, (low + high) / 2
    n_boxes, top = 1, 0
    while top >= 0:
        if bound[top] <= incumbent:
            top -= 1
            continue
        box, rows = boxes[top].copy(), arena[start[top] : start[top + 1]]
        j = _choose_branching_weight(D, worth, box, rows)
        if n_boxes >= budget or depth[top] >= MAX_DEPTH or top + 1 >= MAX_DEPTH or j < 0:
            open_boxes, open_bounds = _append_box(open_boxes, open_bounds, n_open, box, bound[top])
            n_open, top = n_open + 1, top - 1
            continue
        cut = _halve(D, slack, worth, box, j, rows, halves, counts)
        size, certain_in, bound_in = counts[0], certain[top] + counts[1], certain[top] + counts[2]
        n_boxes += 2
        for side in range(2):
            if certain[top] + counts[3, side] > incumbent:
                incumbent, witness = certain[top] + counts[3, side], (box[0] + box[1]) / 2
                witness[j] = (box[side, j] + cut) / 2
        end, deeper, worse = start[top], depth[top] + 1, 1 if bound_in[0] >= bound_in[1] else 0
        top -= 1
        for side in (worse, 1 - worse):
            if bound_in[side] <= incumbent:
                continue
            top += 1
            boxes[top] = box
            boxes[top, 1 - side, j] = cut
            certain[top], bound[top], depth[top] = certain_in[side], bound_in[side], deeper
            arena = _ensure_capacity(arena, end + size[side])
            arena[end : end + size[side]] = halves[side, : size[side]]
            start[top], start[top + 1] = end, end + size[side]
            end += size[side]
    return incumbent, witness, open_boxes[:n_open].copy(), open_bounds[:n_open].copy(), n_boxes
