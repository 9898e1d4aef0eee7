"""The order in which rows are added one by one, each as far as possible from those already there.

Distances are cosine distances; a row of zeros has no direction and is at distance 1 from every row, itself
included. Rows whose distances differ by no more than `TIE` are equally far, and the first of them is added.
Sums are carried in two floats, so that rounding stays orders of magnitude below `TIE` whatever the order.

The order is that of the direct method, which compares every remaining row with every selected one at each step;
only rows that could be next are looked at: what is known of a row from an earlier step bounds its similarity
from below.

Source: Ailem et al. 2024, section 3.3; the lazy evaluation of Minoux 1978, "Accelerated greedy algorithms for
maximizing submodular set functions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.compilation import INT, kernel, sum_kernel

TIE = 1e-12
"""Distances that differ by no more than this are equal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Directions:
    """The rows of a table without their lengths, equal ones once.

    Attributes:
        units: ``(m, k)`` float64 of length 1; zeros for rows of zeros.
        group: ``(n,)`` int64, which of them each row has.
        members: ``(n,)`` int64, the rows of each group in ascending order, group after group.
        starts: ``(m + 1,)`` int64, where each group begins in ``members``.
        is_nonnegative: whether no number is below 0, so that similarities are not either.
    """

    units: NDArray[np.float64]
    group: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    is_nonnegative: bool

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.group.size

    @property
    def n_zero(self) -> int:
        """Rows of zeros."""
        return int(np.asarray(~self.units.any(axis=1))[self.group].sum())


def directions(rows: NDArray[np.float64]) -> Directions:
    """The directions of rows.

    Args:
        rows: ``(n, k)`` finite.
    """
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    units = np.divide(rows, largest, out=np.zeros(rows.shape), where=largest > 0)
    lengths = np.sqrt(np.square(units).sum(axis=1, keepdims=True))
    np.divide(units, lengths, out=units, where=lengths > 0)
    units += 0.0  # the zero of minus sign is the same number in other bytes
    whole = units.view(np.dtype((np.void, units.dtype.itemsize * units.shape[1]))).ravel()
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    members = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=first.size))])
    return Directions(
        units=np.ascontiguousarray(units[first]),
        group=group.astype(np.int64),
        members=members.astype(np.int64),
        starts=starts.astype(np.int64),
        is_nonnegative=bool((units >= 0).all()),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """Rows in the order in which they were added.

    Attributes:
        rows: ``(n,)`` int64.
        distances: ``(n,)`` float64 from those already there, by the criterion, in [0, 2]; NaN for the first.
    """

    rows: NDArray[np.int64]
    distances: NDArray[np.float64]


def farthest_first(found: Directions, start: int, criterion: Literal["mean", "min"] = "mean") -> Order:
    """Rows one by one, each the farthest from those already there.

    Args:
        found: the rows' directions.
        start: the first row.
        criterion: "mean" takes the mean distance to all selected rows, "min" that to the nearest of them.
    """
    rows, distances = np.empty(found.n_rows, np.int64), np.empty(found.n_rows)
    arguments = found.units, found.group, found.members, found.starts, start
    if criterion == "mean":
        _by_mean(*arguments, 0.0 if found.is_nonnegative else 1.0, rows, distances)
    else:
        _by_nearest(*arguments, rows, distances)
    return Order(rows=rows, distances=np.clip(distances, 0.0, 2.0))


@sum_kernel
def _dot(a: Any, b: Any) -> Any:
    """The scalar product."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def _most_promising(keys: Any, size: int) -> Any:
    """Where the smallest bound stands."""
    place = 0
    for i in range(1, size):
        if keys[i] < keys[place]:
            place = i
    return place


@kernel
def _first_row(is_tied: Any, waiting: Any, size: int, members: Any, at: Any) -> Any:
    """Among the waiting groups that are tied, the place of that with the smallest row."""
    chosen: Any = INT(-1)
    for i in range(size):
        if is_tied[i] and (chosen < 0 or members[at[waiting[i]]] < members[at[waiting[chosen]]]):
            chosen = i
    return chosen


@kernel
def _go_on(g: int, start: int, members: Any, starts: Any, at: Any) -> Any:
    """Turn to a group's next row, the start being taken already; whether it has one."""
    at[g] += 1
    if at[g] < starts[g + 1] and members[at[g]] == start:
        at[g] += 1
    return at[g] < starts[g + 1]


@kernel
def _all_waiting(start: int, members: Any, starts: Any, at: Any, waiting: Any) -> Any:
    """Let every group with a row other than the start wait; returns how many do."""
    size: Any = INT(0)
    for g in range(at.size):
        at[g] = starts[g] - 1
        if _go_on(g, start, members, starts, at):
            waiting[size] = g
            size += 1
    return size


@kernel
def _by_mean(
    units: Any, group: Any, members: Any, starts: Any, start: int, slack: float, rows: Any, distances: Any
) -> None:
    """`farthest_first` by the mean distance, 1 - x.r / n_selected with r the sum of the selected unit vectors.

    One more selected vector lowers x.r by at most ``slack``: 0 where nothing is negative, else 1. So
    x.r at an earlier step, less ``slack`` for each step since, is a lower bound; ``keys`` hold x.r plus
    ``slack`` times the step at which it was computed, which does not change with time.
    """
    m, k = units.shape
    at, waiting, keys = np.empty(m, np.int64), np.empty(m, np.int64), np.full(m, -np.inf)
    is_tied, exact = np.empty(m, np.bool_), np.empty(m)
    size = _all_waiting(start, members, starts, at, waiting)
    rows[0], distances[0] = start, np.nan
    r, rest = np.zeros(k), np.zeros(k)
    last = group[start]
    for step in range(1, rows.size):
        for j in range(k):  # r + rest is the sum without rounding, r its nearest float (Knuth's two-sum)
            u = units[last, j] + rest[j]
            total = r[j] + u
            back = total - r[j]
            rest[j] = (r[j] - (total - back)) + (u - back)
            r[j] = total
        tie = TIE * step
        place = _most_promising(keys, size)
        least = _dot(units[waiting[place]], r)
        for i in range(size):
            is_tied[i] = keys[i] - slack * step <= least + 2 * tie
            if is_tied[i]:
                exact[i] = _dot(units[waiting[i]], r)
                keys[i] = exact[i] + slack * step
                least = min(least, exact[i])
        for i in range(size):
            is_tied[i] = is_tied[i] and exact[i] <= least + tie
        place = _first_row(is_tied, waiting, size, members, at)
        last = waiting[place]
        rows[step], distances[step] = members[at[last]], 1.0 - exact[place] / step
        if not _go_on(last, start, members, starts, at):
            size -= 1
            waiting[place], keys[place] = waiting[size], keys[size]


@kernel
def _by_nearest(units: Any, group: Any, members: Any, starts: Any, start: int, rows: Any, distances: Any) -> None:
    """`farthest_first` by the distance to the nearest selected row, 1 - max x.s over the selected s.

    The maximum over some of the selected vectors is a lower bound of that over all; ``keys`` hold it, ``seen``
    over how many. A row is given up as soon as its bound rules it out.
    """
    m = units.shape[0]
    at, waiting, keys = np.empty(m, np.int64), np.empty(m, np.int64), np.full(m, -np.inf)
    seen, is_tied = np.zeros(m, np.int64), np.empty(m, np.bool_)
    selected, is_selected = np.empty(units.shape), np.zeros(m, np.bool_)
    n_selected = 0
    size = _all_waiting(start, members, starts, at, waiting)
    rows[0], distances[0] = start, np.nan
    last = group[start]
    for step in range(1, rows.size):
        if not is_selected[last]:
            selected[n_selected], is_selected[last] = units[last], True
            n_selected += 1
        least = np.inf
        first = _most_promising(keys, size)
        for turn in range(-1, size):
            i = first if turn < 0 else turn
            while seen[i] < n_selected and keys[i] <= least + 2 * TIE:
                keys[i] = max(keys[i], _dot(units[waiting[i]], selected[seen[i]]))
                seen[i] += 1
            if seen[i] == n_selected:
                least = min(least, keys[i])
        for i in range(size):
            is_tied[i] = seen[i] == n_selected and keys[i] <= least + TIE
        place = _first_row(is_tied, waiting, size, members, at)
        last = waiting[place]
        rows[step], distances[step] = members[at[last]], 1.0 - keys[place]
        if not _go_on(last, start, members, starts, at):
            size -= 1
            waiting[place], keys[place], seen[place] = waiting[size], keys[size], seen[size]
