"""Branch and bound over boxes of weights: how many of many linear inequalities can hold at once?

Rows are inequalities d·w < 0, each worth something; w ranges over boxes. Over a box the least and the largest d·w are
sums of corners, so a row is never, surely or perhaps fulfilled there; what is not never is a bound. Halving a box
changes one term of each sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analyses.numerics.compilation import kernel

ROUNDING = 1e-13
"""Sums of at most some hundred terms, each of them correctly rounded, are known to this share of Σ|d|."""

DEEPEST = 400
"""So often a box is halved at most before it is handed back as it is."""

SAMPLED = 48
"""Rows by which the direction to halve is chosen."""


@kernel
def explore(D: Any, slack: Any, worth: Any, low: Any, high: Any, best: Any, budget: Any) -> Any:
    """Halve a box again and again, following the better half first, and drop what cannot exceed ``best``.

    Args:
        D: ``(n_weights, n_rows)`` float64, a column for each inequality.
        slack: ``(n_rows,)`` how far a sum may be from what it should be.
        worth: ``(n_rows,)`` int64, positive.
        low, high: ``(n_weights,)`` the box.
        best: what is to be exceeded.
        budget: boxes to look at, at most.

    Returns:
        Best worth found and its weights (the ``best`` given and an empty array where nothing exceeds it); the boxes
        left over as ``(n, 2, n_weights)`` with the bounds of each; boxes looked at.
    """
    n, n_rows = D.shape
    capacity = 4 * n_rows
    active = np.empty(capacity, np.int64)
    least, most = np.empty(capacity), np.empty(capacity)
    boxes = np.empty((DEEPEST + 2, 2, n))
    fixed = np.empty(DEEPEST + 2, np.int64)
    bound = np.empty(DEEPEST + 2, np.int64)
    start = np.empty(DEEPEST + 3, np.int64)
    depth = np.zeros(DEEPEST + 2, np.int64)
    witness = np.empty(0)
    left_over = np.empty((16, 2, n))
    left_bound = np.empty(16, np.int64)
    n_left = 0

    boxes[0, 0], boxes[0, 1] = low, high
    fixed[0], bound[0], start[0], start[1] = 0, 0, 0, 0
    top, end = 0, 0
    middle = 0
    for row in range(n_rows):
        smallest, largest = 0.0, 0.0
        for j in range(n):
            d = D[j, row]
            if d > 0:
                smallest += d * low[j]
                largest += d * high[j]
            else:
                smallest += d * high[j]
                largest += d * low[j]
        if smallest >= slack[row]:
            continue
        bound[0] += worth[row]
        if smallest + largest < -2 * slack[row]:
            middle += worth[row]
        if largest < -slack[row]:
            fixed[0] += worth[row]
            continue
        active[end], least[end], most[end] = row, smallest, largest
        end += 1
    start[1] = end
    if middle > best:
        best = middle
        witness = (low + high) / 2
    looked = 1
    side_active = np.empty((2, n_rows), np.int64)
    side_least, side_most = np.empty((2, n_rows)), np.empty((2, n_rows))
    side_size, side_fixed, side_bound = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    top = 0
    while top >= 0:
        first, last = start[top], start[top + 1]
        if bound[top] <= best:
            top -= 1
            continue
        if looked >= budget or depth[top] >= DEEPEST or top + 1 >= DEEPEST:
            if n_left == len(left_bound):
                wider = np.empty((2 * n_left, 2, n))
                wider[:n_left] = left_over
                left_over = wider
                more = np.empty(2 * n_left, np.int64)
                more[:n_left] = left_bound
                left_bound = more
            left_over[n_left] = boxes[top]
            left_bound[n_left] = bound[top]
            n_left += 1
            top -= 1
            continue
        # the direction in which the sums vary most
        size = last - first
        step = max(1, size // SAMPLED)
        chosen, widest = -1, 0.0
        for j in range(n):
            width = boxes[top, 1, j] - boxes[top, 0, j]
            if width <= 0:
                continue
            spread = 0.0
            for place in range(first, last, step):
                row = active[place]
                spread += worth[row] * abs(D[j, row]) / (most[place] - least[place])
            if spread * width > widest:
                chosen, widest = j, spread * width
        lower, upper = boxes[top, 0, chosen], boxes[top, 1, chosen]
        cut = (lower + upper) / 2
        for side in range(2):
            size_here, fixed_here = 0, fixed[top]
            bound_here = fixed[top]
            at_middle = fixed[top]
            for place in range(first, last):
                row = active[place]
                d = D[chosen, row]
                smallest, largest = least[place], most[place]
                if side == 0:  # the upper end comes down
                    if d > 0:
                        largest -= d * (upper - cut)
                    else:
                        smallest -= d * (upper - cut)
                elif d > 0:
                    smallest += d * (cut - lower)
                else:
                    largest += d * (cut - lower)
                if smallest >= slack[row]:
                    continue
                bound_here += worth[row]
                if smallest + largest < -2 * slack[row]:
                    at_middle += worth[row]
                if largest < -slack[row]:
                    fixed_here += worth[row]
                    continue
                side_active[side, size_here] = row
                side_least[side, size_here] = smallest
                side_most[side, size_here] = largest
                size_here += 1
            side_size[side], side_fixed[side], side_bound[side] = size_here, fixed_here, bound_here
            looked += 1
            if at_middle > best:
                best = at_middle
                witness = (boxes[top, 0] + boxes[top, 1]) / 2
                witness[chosen] = (lower + cut) / 2 if side == 0 else (cut + upper) / 2
        better = 0 if side_bound[0] >= side_bound[1] else 1
        parent = boxes[top].copy()
        deep = depth[top] + 1
        end = first
        top -= 1
        for turn in range(2):
            side = 1 - better if turn == 0 else better
            if side_bound[side] <= best:
                continue
            top += 1
            boxes[top] = parent
            if side == 0:
                boxes[top, 1, chosen] = cut
            else:
                boxes[top, 0, chosen] = cut
            fixed[top], bound[top], depth[top] = side_fixed[side], side_bound[side], deep
            size = side_size[side]
            while end + size > capacity:
                bigger_active = np.empty(2 * capacity, np.int64)
                bigger_active[:end] = active[:end]
                active = bigger_active
                bigger = np.empty(2 * capacity)
                bigger[:end] = least[:end]
                least = bigger
                bigger_most = np.empty(2 * capacity)
                bigger_most[:end] = most[:end]
                most = bigger_most
                capacity *= 2
            start[top] = end
            for place in range(size):
                active[end] = side_active[side, place]
                least[end] = side_least[side, place]
                most[end] = side_most[side, place]
                end += 1
            start[top + 1] = end
    return best, witness, left_over[:n_left].copy(), left_bound[:n_left].copy(), looked
