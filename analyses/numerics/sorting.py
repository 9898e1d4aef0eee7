"""Sort and search in kernels, where those of NumPy take a second to compile."""

from __future__ import annotations

from typing import Any

from tracker.statistics.jit import INT, jit

_RUN = 16
"""Values sorted by insertion, before runs are merged."""


@jit
def stable_argsort(values: Any, order: Any, buffer: Any) -> None:
    """Fill ``order`` with the indices that sort values in ascending order; equal values keep their order.

    Args:
        values: ``(n,)`` without NaN.
        order: at least ``(n,)`` int64; its first ``n`` are filled.
        buffer: at least ``(n,)`` int64, overwritten.
    """
    n = values.size
    for start in range(0, n, _RUN):
        for i in range(start, min(start + _RUN, n)):
            value, j = values[i], i
            while j > start and values[order[j - 1]] > value:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
    width = _RUN
    while width < n:
        for start in range(0, n - width, 2 * width):
            middle, stop = start + width, min(start + 2 * width, n)
            if values[order[middle - 1]] <= values[order[middle]]:
                continue
            for i in range(start, middle):
                buffer[i] = order[i]
            left, right, place = start, middle, start
            while left < middle and right < stop:
                if values[order[right]] < values[buffer[left]]:
                    order[place] = order[right]
                    right += 1
                else:
                    order[place] = buffer[left]
                    left += 1
                place += 1
            while left < middle:
                order[place] = buffer[left]
                left += 1
                place += 1
        width *= 2


@jit
def first_above(values: Any, bound: Any) -> Any:
    """Index of the first of some ascending values above a bound; their number if there is none."""
    low, high = INT(0), INT(values.size)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= bound:
            low = middle + 1
        else:
            high = middle
    return low
