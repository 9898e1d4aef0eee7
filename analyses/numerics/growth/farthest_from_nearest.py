"""The order in which rows are added, each with the largest distance from the nearest of those already there.

The distance of a row x is 1 - max x.s over the selected unit vectors s. The maximum over some of them is a lower bound
of that over all, so only rows whose bound is low are looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.growth.groups import Groups, dot, go_on
from tracker.statistics.jit import INT, jit
from tracker.statistics.ranking import TIE_TOLERANCE

RUN = 32
"""Groups whose bounds are summed up in one, so that most are passed over together."""
BLOCK = 128
"""Selected vectors whose similarities to all remaining groups are computed at once."""


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


class _Search(NamedTuple):
    """What `order_by_nearest` knows of m groups; `_add_nearest` and `_see_block` update it.

    Attributes:
        units: ``(m, k)`` their vectors, of length 1 or 0.
        members: ``(n,)`` the rows of each group, group after group.
        starts: ``(m + 1,)`` where each group begins in ``members``, and their end.
        at: ``(m,)`` place of a group's next row in ``members``.
        keys: ``(m,)`` lower bound of a group's largest similarity; infinite once it has no row left.
        seen: ``(m,)`` number of selected vectors over which ``keys`` is the maximum.
        floors: smallest key of each run of `RUN` groups.
        selected: ``(m,)`` groups whose vectors are selected, in this order.
        is_selected: ``(m,)`` whether a group is among them.
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
            selected[n_selected], is_selected[last] = last, True
            n_selected += 1
            if n_selected % BLOCK == 0:
                break
        run = _lowest(floors, INT(0), floors.size)
        g = _lowest(keys, run * RUN, min(run * RUN + RUN, m))
        while seen[g] < n_selected:
            keys[g] = max(keys[g], dot(units[g], units[selected[seen[g]]]))
            seen[g] += 1
        least, n_fresh = keys[g], INT(0)
        for run in range(floors.size):
            if floors[run] > least + 2 * TIE_TOLERANCE:
                continue
            for g in range(run * RUN, min(run * RUN + RUN, m)):
                while seen[g] < n_selected and keys[g] <= least + 2 * TIE_TOLERANCE:
                    keys[g] = max(keys[g], dot(units[g], units[selected[seen[g]]]))
                    seen[g] += 1
                if keys[g] < np.inf and keys[g] <= least + 2 * TIE_TOLERANCE:
                    least = min(least, keys[g])
                    fresh[n_fresh] = g
                    n_fresh += 1
            floors[run] = keys[_lowest(keys, run * RUN, min(run * RUN + RUN, m))]
        last = _first_row(fresh, n_fresh, keys, least + TIE_TOLERANCE, members, at)
        rows[step], distances[step] = members[at[last]], 1.0 - keys[last]
        step += 1
        if not go_on(last, start, members, starts, at):
            keys[last] = np.inf
        run = last // RUN
        floors[run] = keys[_lowest(keys, run * RUN, min(run * RUN + RUN, m))]
    return last, step, n_selected


@jit
def _leave_out(keys: Any, remaining: Any, singles: Any) -> Any:
    """Take the groups without a row left out of the remaining ones and of the rows of their vectors, in any order.

    Returns:
        The number of those that remain.
    """
    i, n_left = INT(0), INT(remaining.size)
    while i < n_left:
        if keys[remaining[i]] < np.inf:
            i += 1
            continue
        n_left -= 1  # the last one takes its place
        remaining[i] = remaining[n_left]
        for j in range(singles.shape[1]):
            singles[i, j] = singles[n_left, j]
    return n_left


@jit
def _see_block(search: Any, first: int, products: Any, highest: Any, remaining: Any, error: float) -> None:
    """Bring ``keys`` up to date with a block of selected vectors.

    Args:
        first: the place of the block in ``selected``.
        products: ``(r, b)`` float32 similarities of the remaining groups to the block; each is off by at most
            ``error``, so few have to be computed again without rounding; ``highest`` are the largest of each row.
        remaining: ``(r,)`` the groups.
    """
    units, _members, _starts, _at, keys, seen, floors, selected, _is_selected = search
    b = products.shape[1]
    for i in range(remaining.size):
        g = remaining[i]
        if highest[i] + error > keys[g]:
            for j in range(b):
                if products[i, j] >= highest[i] - 2 * error and products[i, j] + error > keys[g]:
                    keys[g] = max(keys[g], dot(units[g], units[selected[first + j]]))
        seen[g] = first + b
    for run in range(floors.size):
        floors[run] = keys[_lowest(keys, run * RUN, min(run * RUN + RUN, keys.size))]


def order_by_nearest(groups: Groups, start: int, rows: NDArray[np.int64], distances: NDArray[np.float64]) -> None:
    """Fill in the rows, each the farthest from the nearest of those before it, and these distances.

    After each block of selected vectors, the similarities of all remaining groups to it are computed as one matrix
    product, in float32. A product of unit vectors of k numbers is then off by at most (k + 2) units of rounding, by
    the inequality of Cauchy and Schwarz; what could be a group's largest similarity is computed again in float64.

    Args:
        groups: the rows by direction.
        start: the first row.
        rows, distances: ``(n,)``.
    """
    units, (m, k) = groups.units, groups.units.shape
    at = groups.next_places(start)
    search = _Search(
        units=units,
        members=groups.members,
        starts=groups.starts,
        at=at,
        keys=np.where(at < groups.starts[1:], -np.inf, np.inf),
        seen=np.zeros(m, np.int64),
        floors=np.full((m + RUN - 1) // RUN, -np.inf),
        selected=np.empty(m, np.int64),
        is_selected=np.zeros(m, np.bool_),
    )
    error = (k + 4) * float(np.finfo(np.float32).eps)
    remaining, singles, buffer = np.arange(m), units.astype(np.float32), np.empty((m, BLOCK), np.float32)
    rows[0], distances[0] = start, np.nan
    last, step, n_selected, n_left = int(groups.group[start]), 1, 0, m
    while step < rows.size:
        last, step, n_selected = _add_nearest(search, start, last, step, n_selected, rows, distances)
        if step < rows.size:
            n_left = _leave_out(search.keys, remaining[:n_left], singles)
            block = units[search.selected[n_selected - BLOCK : n_selected]].astype(np.float32)
            products = np.matmul(singles[:n_left], block.T, out=buffer[:n_left])
            _see_block(search, n_selected - BLOCK, products, products.max(axis=1), remaining[:n_left], error)
