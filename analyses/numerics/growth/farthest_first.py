"""The order in which rows are added one by one, each as far as possible from those already there.

Distances are cosine distances; a row of zeros has no direction and is at distance 1 from every row, itself
included. Rows whose distances differ by no more than `TIE_TOLERANCE` are equally far, and the first of them is added.
Sums are carried in two floats, so that rounding stays orders of magnitude below `TIE_TOLERANCE` whatever the order.

The order is that of the direct method, which compares every remaining row with every selected one at each step;
only rows that could be next are looked at: what is known of a row from an earlier step bounds its similarity
from below.

Source: Ailem et al. 2024, section 3.3; the lazy evaluation of Minoux 1978, "Accelerated greedy algorithms for
maximizing submodular set functions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.directions import group_directions
from tracker.statistics.jit import INT, jit, sum_kernel
from tracker.statistics.ranking import TIE_TOLERANCE

RUN = 32
"""Groups whose bounds are summed up in one, so that most are passed over together."""
BLOCK = 128
"""Selected vectors whose similarities to all remaining groups are computed at once."""
LEFT = 0.9
"""Share of groups that remain at which the others are taken out of the matrix."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """The rows of a table in groups of one direction.

    Attributes:
        units: ``(m, k)`` float64 of length 1; zeros for rows of zeros. In the order of their similarity to all rows
            together, so that those that come early are neighbours; nothing else depends on it.
        group: ``(n,)`` int64, which of them each row has.
        members: ``(n,)`` int64, the rows of each group in ascending order, group after group.
        starts: ``(m + 1,)`` int64, where each group begins in ``members``.
        n_zero: rows of zeros.
        is_nonnegative: whether no number is below 0, so that similarities are not either.
    """

    units: NDArray[np.float64]
    group: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    n_zero: int
    is_nonnegative: bool

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.group.size


def group_rows(rows: NDArray[np.float64]) -> Groups:
    """The rows of a table by direction; those of zeros are a separate group.

    Args:
        rows: ``(n, k)`` finite.
    """
    grouped = group_directions(rows)
    is_zero = grouped.of_row < 0
    units = np.vstack([grouped.units, np.zeros((int(is_zero.any()), rows.shape[1]))])
    group = np.where(is_zero, grouped.n_distinct, grouped.of_row)
    sizes = np.bincount(group, minlength=len(units))
    sorting = np.argsort(units @ (sizes @ units), kind="stable")
    group = np.argsort(sorting)[group]
    return Groups(
        units=np.ascontiguousarray(units[sorting]),
        group=group.astype(np.int64),
        members=np.argsort(group, kind="stable").astype(np.int64),
        starts=np.concatenate([[0], np.cumsum(sizes[sorting])]).astype(np.int64),
        n_zero=int(is_zero.sum()),
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


def order_farthest_first(groups: Groups, start: int, criterion: Literal["mean", "min"] = "mean") -> Order:
    """Rows one by one, each the farthest from those already there.

    Args:
        groups: the rows by direction.
        start: the first row.
        criterion: "mean" takes the mean distance to all selected rows, "min" that to the nearest of them.
    """
    rows, distances = np.empty(groups.n_rows, np.int64), np.empty(groups.n_rows)
    if criterion == "mean":
        slack = 0.0 if groups.is_nonnegative else 1.0
        _by_mean(groups.units, groups.group, groups.members, groups.starts, start, slack, rows, distances)
    else:
        _by_nearest(groups, start, rows, distances)
    return Order(rows=rows, distances=np.clip(distances, 0.0, 2.0))


@sum_kernel
def _dot(a: Any, b: Any) -> Any:
    """The scalar product."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@jit
def _lowest(keys: Any, start: Any, stop: Any) -> Any:
    """Where the smallest key between two places stands."""
    place = start
    for i in range(start + 1, stop):
        if keys[i] < keys[place]:
            place = i
    return place


@jit
def _first_row(fresh: Any, n_fresh: Any, exact: Any, most: float, members: Any, at: Any) -> Any:
    """Among the groups looked at whose similarity is at most ``most``, that with the smallest row."""
    chosen: Any = INT(-1)
    for i in range(n_fresh):
        g = fresh[i]
        if exact[g] <= most and (chosen < 0 or members[at[g]] < members[at[chosen]]):
            chosen = g
    return chosen


@jit
def _go_on(g: int, start: int, members: Any, starts: Any, at: Any, keys: Any) -> None:
    """Turn to a group's next row, the start being taken already; a group without one is never looked at again."""
    at[g] += 1
    if at[g] < starts[g + 1] and members[at[g]] == start:
        at[g] += 1
    if at[g] == starts[g + 1]:
        keys[g] = np.inf


@jit
def _by_mean(
    units: Any, group: Any, members: Any, starts: Any, start: int, slack: float, rows: Any, distances: Any
) -> None:
    """`order_farthest_first` by the mean distance, 1 - x.r / n_selected with r the sum of the selected unit vectors.

    One more selected vector lowers x.r by at most ``slack``: 0 where nothing is negative, else 1. So
    x.r at an earlier step, less ``slack`` for each step since, is a lower bound; ``keys`` hold x.r plus
    ``slack`` times the step at which it was computed, which does not change with time. ``floors`` hold the smallest
    key of each run of `RUN` groups.
    """
    m, k = units.shape
    at, keys, exact, fresh = np.empty(m, np.int64), np.full(m, -np.inf), np.empty(m), np.empty(m, np.int64)
    for g in range(m):
        at[g] = starts[g] - 1
        _go_on(g, start, members, starts, at, keys)
    floors = np.full((m + RUN - 1) // RUN, -np.inf)
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
        tie = TIE_TOLERANCE * step
        least, n_fresh = np.inf, INT(0)
        promising = _lowest(floors, INT(0), floors.size)
        for turn in range(-1, floors.size):
            run = promising if turn < 0 else turn
            if turn == promising or floors[run] - slack * step > least + 2 * tie:
                continue
            for g in range(run * RUN, min(run * RUN + RUN, m)):
                if keys[g] < np.inf and keys[g] - slack * step <= least + 2 * tie:
                    exact[g] = _dot(units[g], r)
                    keys[g] = exact[g] + slack * step
                    least = min(least, exact[g])
                    fresh[n_fresh] = g
                    n_fresh += 1
            floors[run] = keys[_lowest(keys, run * RUN, min(run * RUN + RUN, m))]
        last = _first_row(fresh, n_fresh, exact, least + tie, members, at)
        rows[step], distances[step] = members[at[last]], 1.0 - exact[last] / step
        _go_on(last, start, members, starts, at, keys)
        run = last // RUN
        floors[run] = keys[_lowest(keys, run * RUN, min(run * RUN + RUN, m))]


class _Search(NamedTuple):
    """What `_by_nearest` knows of m groups; `_add_nearest` and `_see_block` update it.

    Attributes:
        units: ``(m, k)`` their vectors, of length 1 or 0.
        members: ``(n,)`` the rows of each group, group after group.
        starts: ``(m + 1,)`` where each group begins in ``members``, and their end.
        at: ``(m,)`` place of a group's next row in ``members``.
        keys: ``(m,)`` lower bound of a group's largest similarity; infinite once it has no row left.
        seen: ``(m,)`` number of selected vectors over which ``keys`` is the maximum.
        floors: smallest key of each run of `RUN` groups.
        selected: ``(m, k)`` vectors selected so far.
        is_selected: ``(m,)`` whether a group's vector is among them.
    """

    units: Any
    members: Any
    starts: Any
    at: Any
    keys: Any
    seen: Any
    floors: Any
    selected: Any
    is_selected: Any


@jit
def _add_nearest(search: Any, start: int, last: int, step: int, n_selected: int, rows: Any, distances: Any) -> Any:
    """Add rows by the distance to the nearest selected row, 1 - max x.s over the selected s, until a block is complete.

    The maximum over some of the selected vectors is a lower bound of that over all. A row is given up as soon as its
    bound rules it out.

    Returns:
        The group last added, the rows added so far, and the number of vectors in ``selected``.
    """
    units, members, starts, at, keys, seen, floors, selected, is_selected = search
    m = units.shape[0]
    fresh = np.empty(m, np.int64)
    while step < rows.size:
        if not is_selected[last]:
            for j in range(units.shape[1]):
                selected[n_selected, j] = units[last, j]
            is_selected[last] = True
            n_selected += 1
            if n_selected % BLOCK == 0:
                break
        run = _lowest(floors, INT(0), floors.size)
        g = _lowest(keys, run * RUN, min(run * RUN + RUN, m))
        while seen[g] < n_selected:
            keys[g] = max(keys[g], _dot(units[g], selected[seen[g]]))
            seen[g] += 1
        least, n_fresh = keys[g], INT(0)
        for run in range(floors.size):
            if floors[run] > least + 2 * TIE_TOLERANCE:
                continue
            for g in range(run * RUN, min(run * RUN + RUN, m)):
                while seen[g] < n_selected and keys[g] <= least + 2 * TIE_TOLERANCE:
                    keys[g] = max(keys[g], _dot(units[g], selected[seen[g]]))
                    seen[g] += 1
                if keys[g] < np.inf and keys[g] <= least + 2 * TIE_TOLERANCE:
                    least = min(least, keys[g])
                    fresh[n_fresh] = g
                    n_fresh += 1
            floors[run] = keys[_lowest(keys, run * RUN, min(run * RUN + RUN, m))]
        last = _first_row(fresh, n_fresh, keys, least + TIE_TOLERANCE, members, at)
        rows[step], distances[step] = members[at[last]], 1.0 - keys[last]
        step += 1
        _go_on(last, start, members, starts, at, keys)
        run = last // RUN
        floors[run] = keys[_lowest(keys, run * RUN, min(run * RUN + RUN, m))]
    return last, step, n_selected


@jit
def _see_block(search: Any, first: int, products: Any, remaining: Any, error: float) -> None:
    """Bring ``keys`` up to date with a block of selected vectors.

    Args:
        first: the place of the block in ``selected``.
        products: ``(r, b)`` float32 similarities of the remaining groups to the block; each is off by at most
            ``error``, so few have to be computed again without rounding.
        remaining: ``(r,)`` the groups.
    """
    units, _members, _starts, _at, keys, seen, floors, selected, _is_selected = search
    b = products.shape[1]
    for i in range(remaining.size):
        g = remaining[i]
        highest = products[i, 0]
        for j in range(1, b):
            highest = max(highest, products[i, j])
        if highest + error > keys[g]:
            for j in range(b):
                if products[i, j] >= highest - 2 * error and products[i, j] + error > keys[g]:
                    keys[g] = max(keys[g], _dot(units[g], selected[first + j]))
        seen[g] = first + b
    for run in range(floors.size):
        floors[run] = keys[_lowest(keys, run * RUN, min(run * RUN + RUN, keys.size))]


def _by_nearest(groups: Groups, start: int, rows: NDArray[np.int64], distances: NDArray[np.float64]) -> None:
    """`order_farthest_first` by the distance to the nearest selected row.

    After each block of selected vectors, the similarities of all remaining groups to it are computed as one matrix
    product, in float32. A product of unit vectors of k numbers is then off by at most (k + 2) units of rounding, by
    the inequality of Cauchy and Schwarz; what could be a group's largest similarity is computed again in float64.
    """
    units, (m, k) = groups.units, groups.units.shape
    at = groups.starts[:-1] + (groups.members[groups.starts[:-1]] == start)
    search = _Search(
        units=units,
        members=groups.members,
        starts=groups.starts,
        at=at,
        keys=np.where(at < groups.starts[1:], -np.inf, np.inf),
        seen=np.zeros(m, np.int64),
        floors=np.full((m + RUN - 1) // RUN, -np.inf),
        selected=np.empty((m, k)),
        is_selected=np.zeros(m, np.bool_),
    )
    error = (k + 4) * float(np.finfo(np.float32).eps)
    remaining, singles = np.arange(m), units.astype(np.float32)
    rows[0], distances[0] = start, np.nan
    last, step, n_selected = int(groups.group[start]), 1, 0
    while step < rows.size:
        last, step, n_selected = _add_nearest(search, start, last, step, n_selected, rows, distances)
        if step < rows.size:
            is_left = search.keys[remaining] < np.inf
            if is_left.mean() < LEFT:
                remaining, singles = remaining[is_left], singles[is_left]
            first = n_selected - BLOCK
            products = singles @ search.selected[first:n_selected].astype(np.float32).T
            _see_block(search, first, products, remaining, error)
