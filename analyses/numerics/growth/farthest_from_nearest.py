"""The order in which rows are added, each with the largest distance from the nearest of those already there.

The distance of a row x is 1 - max x.s over the selected unit vectors s. The maximum over some of them is a lower bound
of that over all, so only rows whose bound is low are looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.growth.groups import Groups, dot, go_on
from tracker.statistics.jit import INT, jit, sum_kernel
from tracker.statistics.ranking import TIE_TOLERANCE

RUN = 32
"""Groups whose bounds are summed up in one, so that most are passed over together."""
SINGLE = float(np.finfo(np.float32).eps)
"""More than float32 changes a number of at most 1 in size."""
FIRST_BLOCK = 48  # a multiple of 16
"""Selected vectors whose similarities to all remaining groups are computed at once for the first time."""
BLOCK = 4 * FIRST_BLOCK
"""Those of every block after the first ones, which double the number of selected vectors."""


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
        singles: ``(m, k)`` float32, the same of the remaining groups, from the first row on.
        places: ``(m,)`` int64, the row of a group in ``singles``.
        block: ``(BLOCK, k)`` float32, the same of the last selected groups.
        error: no similarity in float32 is off by more.
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
    singles: Any
    places: Any
    block: Any
    error: Any
    members: Any
    starts: Any
    at: Any
    keys: Any
    seen: Any
    floors: Any
    selected: Any
    is_selected: Any


@sum_kernel
def _four_dots(vector: Any, block: Any, i: Any) -> Any:
    """The scalar products of a vector with four rows, which are read faster together."""
    zero = vector.dtype.type(0)
    a, b, c, d = zero, zero, zero, zero
    for j in range(vector.size):
        a += vector[j] * block[i, j]
        b += vector[j] * block[i + 1, j]
        c += vector[j] * block[i + 2, j]
        d += vector[j] * block[i + 3, j]
    return a, b, c, d


@jit
def _see(search: Any, g: Any, n_selected: int, most: float) -> None:
    """Bring a group's key up to date with the block, or above a bound; most change nothing, as float32 proves."""
    units, selected, block, error = search.units, search.selected, search.block, search.error
    single, key, unseen = search.singles[search.places[g]], search.keys[g], search.seen[g]
    while unseen < n_selected and key <= most:
        if unseen % 4 == 0 and unseen + 4 <= n_selected:
            four = _four_dots(single, block, unseen % BLOCK)
            if max(four[0], four[1], four[2], four[3]) + error <= key:
                unseen += 4
                continue
        if dot(single, block[unseen % BLOCK]) + error > key:
            key = max(key, dot(units[g], units[selected[unseen]]))
        unseen += 1
    search.keys[g], search.seen[g] = key, unseen


@jit
def _add_nearest(
    search: Any, start: int, last: int, step: int, n_selected: int, stop: int, rows: Any, distances: Any
) -> Any:
    """Add rows by the distance to the nearest selected row, 1 - max x.s over the selected s, until a block is complete.

    The maximum over some of the selected vectors is a lower bound of that over all. A row is given up as soon as its
    bound rules it out.

    Returns:
        The group last added, the rows added so far, and the number of vectors in ``selected``.
    """
    members, starts, at = search.members, search.starts, search.at
    keys, seen, floors = search.keys, search.seen, search.floors
    selected, is_selected, m = search.selected, search.is_selected, search.keys.size
    fresh = np.empty(m, np.int64)
    while step < rows.size:
        if not is_selected[last]:
            selected[n_selected], is_selected[last] = last, True
            search.block[n_selected % BLOCK] = search.singles[search.places[last]]
            n_selected += 1
            if n_selected == stop:
                break
        run = _lowest(floors, INT(0), floors.size)
        g = _lowest(keys, run * RUN, min(run * RUN + RUN, m))
        _see(search, g, n_selected, np.inf)
        least, n_fresh = keys[g], INT(0)
        for run in range(floors.size):
            if floors[run] > least + 2 * TIE_TOLERANCE:
                continue
            for g in range(run * RUN, min(run * RUN + RUN, m)):
                if seen[g] < n_selected and keys[g] <= least + 2 * TIE_TOLERANCE:  # most calls would change nothing
                    _see(search, g, n_selected, least + 2 * TIE_TOLERANCE)
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
def _leave_out(search: Any, remaining: Any) -> Any:
    """Take the groups without a row left out of the remaining ones and of the rows of their vectors, in any order.

    Returns:
        The number of those that remain.
    """
    singles = search.singles
    i, n_left = INT(0), INT(remaining.size)
    while i < n_left:
        if search.keys[remaining[i]] < np.inf:
            i += 1
            continue
        n_left -= 1  # the last one takes its place
        remaining[i] = remaining[n_left]
        search.places[remaining[i]] = i
        for j in range(singles.shape[1]):
            singles[i, j] = singles[n_left, j]
    return n_left


@jit
def _reaches(row: Any, bound: float) -> Any:
    """Whether a number of a float32 row, all at most 1 in size, may be above a bound."""
    limit, n_above = np.float32(bound - SINGLE), np.int32(0)
    for j in range(row.size):
        n_above += np.int32(row[j] >= limit)
    return n_above > 0


@jit
def _largest(row: Any, lanes: Any) -> Any:
    """The largest number of a row: of every 16th by itself, then of these; vector operations compare 16 at once."""
    lanes[:] = row[: lanes.size]
    for start in range(lanes.size, row.size, lanes.size):
        for x in range(lanes.size):
            lanes[x] = max(lanes[x], row[start + x])
    largest = lanes[0]
    for x in range(1, lanes.size):
        largest = max(largest, lanes[x])
    return largest


@jit
def _see_block(search: Any, first: int, products: Any, remaining: Any) -> None:
    """Bring ``keys`` up to date with a block of selected vectors.

    Args:
        first: the place of the block in ``selected``.
        products: ``(r, b)`` float32 similarities of the remaining groups to the block, of which few have to be
            computed again in float64.
        remaining: ``(r,)`` the groups.
    """
    units, error, keys, selected, floors = search.units, search.error, search.keys, search.selected, search.floors
    b, lanes = products.shape[1], np.empty(16, np.float32)
    for i in range(remaining.size):
        g = remaining[i]
        if _reaches(products[i], keys[g] - error):
            highest = _largest(products[i], lanes)
            for j in range(b):
                if products[i, j] >= highest - 2 * error and products[i, j] + error > keys[g]:
                    keys[g] = max(keys[g], dot(units[g], units[selected[first + j]]))
        search.seen[g] = first + b
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
        singles=units.astype(np.float32),
        places=np.arange(m),
        block=np.empty((BLOCK, k), np.float32),
        error=(k + 4) * SINGLE,
        members=groups.members,
        starts=groups.starts,
        at=at,
        keys=np.where(at < groups.starts[1:], -np.inf, np.inf),
        seen=np.zeros(m, np.int64),
        floors=np.full((m + RUN - 1) // RUN, -np.inf),
        selected=np.empty(m, np.int64),
        is_selected=np.zeros(m, np.bool_),
    )
    remaining, buffer = np.arange(m), np.empty(m * BLOCK, np.float32)
    rows[0], distances[0] = start, np.nan
    last, step, n_selected, n_left, first, stop = int(groups.group[start]), 1, 0, m, 0, FIRST_BLOCK
    while step < rows.size:
        last, step, n_selected = _add_nearest(search, start, last, step, n_selected, stop, rows, distances)
        if step < rows.size:
            n_left = _leave_out(search, remaining[:n_left])
            block = search.block[first % BLOCK :][: stop - first]
            products = buffer[: n_left * len(block)].reshape(n_left, len(block))
            np.matmul(search.singles[:n_left], block.T, out=products)
            _see_block(search, first, products, remaining[:n_left])
            first, stop = stop, stop + min(stop, BLOCK)
