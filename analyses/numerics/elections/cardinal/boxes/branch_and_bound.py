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
def _copy(values: Any, to: Any) -> None:
    """Copy the rows of one table to the first rows of another."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            to[i, j] = values[i, j]


@jit
def _ensure_capacity(values: Any, size: Any) -> Any:
    """The table, or a copy with room for as many rows."""
    if size <= len(values):
        return values
    larger = np.empty((2 * size, values.shape[1]))
    _copy(values, larger)
    return larger


@jit
def _fill_middle(box: Any, weights: Any) -> None:
    """Fill ``weights`` with the middle of a box."""
    for i in range(weights.size):
        weights[i] = (box[0, i] + box[1, i]) / 2


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
        Best worth, its weights (empty where nothing exceeds the incumbent), the lower and upper ends of open boxes
        ``(2 * n, n_weights)``, and their bounds ``(n, 1)``.
    """
    n, n_rows = D.shape
    # Boxes wait on a stack; the open rows of each lie in one arena, those of the uppermost box last.
    boxes = np.empty((MAX_DEPTH + 2, 2, n))
    stack = np.zeros((4, MAX_DEPTH + 3), np.int64)
    start, certain, bound, depth = stack[0], stack[1], stack[2], stack[3]
    arena, halves, counts = np.empty((4 * n_rows, 3)), np.empty((2, n_rows, 3)), np.zeros((4, 2), np.int64)
    open_boxes, open_bounds, n_open = np.empty((32, n)), np.empty((16, 1)), INT(0)
    witness, has_witness, box = np.empty(n), False, np.empty((2, n))

    for i in range(n):
        boxes[0, 0, i], boxes[0, 1, i] = low[i], high[i]
    _sums_in_box(D, boxes[0], halves[0])
    start[1], certain[0], bound[0], at_middle = _filter_open_rows(
        D, slack, worth, halves[0], INT(0), 0.0, np.bool_(True), arena
    )
    if at_middle > incumbent:
        incumbent, has_witness = at_middle, True
        _fill_middle(boxes[0], witness)
    n_boxes, top = 1, 0
    while top >= 0:
        if bound[top] <= incumbent:
            top -= 1
            continue
        _copy(boxes[top], box)
        rows = arena[start[top] : start[top + 1]]
        j = _choose_branching_weight(D, worth, box, rows)
        if n_boxes >= budget or depth[top] >= MAX_DEPTH or top + 1 >= MAX_DEPTH or j < 0:
            open_boxes = _ensure_capacity(open_boxes, 2 * n_open + 2)
            open_bounds = _ensure_capacity(open_bounds, n_open + 1)
            _copy(box, open_boxes[2 * n_open :])
            open_bounds[n_open, 0] = bound[top]
            n_open, top = n_open + 1, top - 1
            continue
        cut = _halve(D, slack, worth, box, j, rows, halves, counts)
        n_boxes += 2
        for side in range(2):
            if certain[top] + counts[3, side] > incumbent:
                incumbent, has_witness = certain[top] + counts[3, side], True
                _fill_middle(box, witness)
                witness[j] = (box[side, j] + cut) / 2
        end, deeper, certain_before = start[top], depth[top] + 1, certain[top]
        worse = 1 if counts[2, 0] >= counts[2, 1] else 0
        top -= 1
        for turn in range(2):
            side = worse if turn == 0 else 1 - worse
            size, bound_in = counts[0, side], certain_before + counts[2, side]
            if bound_in <= incumbent:
                continue
            top += 1
            _copy(box, boxes[top])
            boxes[top, 1 - side, j] = cut
            certain[top], bound[top], depth[top] = certain_before + counts[1, side], bound_in, deeper
            arena = _ensure_capacity(arena, end + size)
            _copy(halves[side][:size], arena[end:])
            start[top], start[top + 1] = end, end + size
            end += size
    return incumbent, witness[: n if has_witness else 0], open_boxes[: 2 * n_open], open_bounds[:n_open]
