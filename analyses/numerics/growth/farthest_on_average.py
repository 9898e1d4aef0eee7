"""The order in which rows are added, each with the largest mean distance from those already there.

The mean distance of a row x is 1 - x.r / n_selected, with r the sum of the selected unit vectors. A pool holds the
rows whose x.r was smallest at some step; only they are looked at, until another row could be next. What r has changed
by since, d, bounds what x.r has: with a direction c that all rows share, x.d = (x.c)(d.c) + x.(d - (d.c)c), and by the
inequality of Cauchy and Schwarz the last term is at least -sqrt(1 - (x.c)²) |d - (d.c)c|.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.growth.groups import Groups, dot, go_on, row_dot
from tracker.statistics.jit import INT, jit, sum_kernel
from tracker.statistics.parallel.blocks import split_blocks
from tracker.statistics.parallel.time_limits import LoopTimer
from tracker.statistics.ranking import TIE_TOLERANCE

LEAST_POOL, POOL_SHARE = 64, 16
"""A new pool has at least so many groups, and at least one of so many."""
STRIDE = 8
"""Of so many groups, one is in the sample that shows how far a pool reaches."""
CALL_SIZE = 1 << 28
"""Numbers of all groups, times rows that one call of the compiled code adds, about."""
SLOW_SHARE = 40
"""The first row of so many is left out of estimates of time: pools last shortest at the start."""
RUN = 16
"""Groups of the pool that are passed over together."""
SINGLE = float(np.finfo(np.float32).eps)
"""Twice the unit of rounding of float32."""
SQUARED_ROUNDING = 1e-12
"""Added to the square of the part of a unit vector across c: more than its rounding."""


class _Pool(NamedTuple):
    """What `_extend_order` knows of m groups and a pool of some of them.

    Attributes:
        units: ``(m, k)`` their vectors, of length 1 or 0; ``singles`` are these in float32.
        members: ``(n,)`` the rows of each group, group after group.
        starts: ``(m + 1,)`` where each group begins in ``members``, and their end.
        at: ``(m,)`` place of a group's next row in ``members``.
        common: ``(k,)`` the shared direction c.
        along, across: ``(m,)`` the product of each vector with c, and the length of the rest, rounded up.
        lowest: a lower bound of x.d whatever d: 0 where nothing is negative, else minus infinity.
        remaining: ``(m,)`` groups with a row left at the last new pool.
        pool: ``(m,)`` groups of the pool.
        keys: ``(m,)`` x.r of the groups of the pool when last computed; infinite once a group has no row left.
        floors: the smallest of each `RUN` keys when last computed.
        places, values: ``(m,)`` where the candidates for the next row stand in the pool, and their x.r.
    """

    units: Any
    singles: Any
    members: Any
    starts: Any
    at: Any
    common: Any
    along: Any
    across: Any
    lowest: float
    remaining: Any
    pool: Any
    keys: Any
    floors: Any
    places: Any
    values: Any


@sum_kernel
def _split(d: Any, common: Any) -> Any:
    """The product of a vector with c, and the length of the rest."""
    shared = dot(d, common)
    rest = 0.0
    for j in range(d.size):
        part = d[j] - shared * common[j]
        rest += part * part
    return shared, np.sqrt(rest)


@jit
def _enclose(search: Any, groups: Any) -> Any:
    """The smallest and the largest of ``along`` and the largest of ``across``, of some groups."""
    low, high, across = np.inf, -np.inf, 0.0
    if groups.size == 0:
        return 0.0, 0.0, 0.0
    for g in groups:
        low, high = min(low, search.along[g]), max(high, search.along[g])
        across = max(across, search.across[g])
    return low, high, across


@jit
def _bound(enclosure: Any, change: Any, lowest: float) -> Any:
    """A lower bound of x.d for all groups of an enclosure, with a change d that is split into two parts."""
    low, high, across = enclosure
    shared, rest = change
    return max((low if shared >= 0 else high) * shared - across * rest, lowest)


@jit
def _compute_keys(search: Any, r: Any, n_pool: Any) -> Any:
    """Compute ``keys`` and ``floors`` of the pool; groups without a row left leave it.

    Returns:
        The number of groups in the pool.
    """
    units, starts, at = search.units, search.starts, search.at
    pool, keys, floors = search.pool, search.keys, search.floors
    n_kept = INT(0)
    for place in range(n_pool):
        g = pool[place]
        if at[g] < starts[g + 1]:
            if n_kept % RUN == 0:
                floors[n_kept // RUN] = np.inf
            pool[n_kept], keys[n_kept] = g, row_dot(units, g, r)
            floors[n_kept // RUN] = min(floors[n_kept // RUN], keys[n_kept])
            n_kept += 1
    return n_kept


@jit
def _fill_pool(search: Any, r: Any, n_remaining: Any, tie: float) -> Any:
    """Make a new pool of the groups with the smallest x.r.

    Returns:
        The groups with a row left, those in the pool, a lower bound of x.r of the others, and their enclosure.
    """
    singles, starts, at, pool, remaining = search.singles, search.starts, search.at, search.pool, search.remaining
    single, products = r.astype(np.float32), np.empty(n_remaining, np.float32)
    n_left = INT(0)
    for i in range(n_remaining):  # x.r of every group with a row left
        g = remaining[i]
        if at[g] < starts[g + 1]:
            remaining[n_left], products[n_left] = g, row_dot(singles, g, single)
            n_left += 1
    size, threshold = max(LEAST_POOL, pool.size // POOL_SHARE), np.inf
    if n_left > size:  # about the quantile, from every few groups; they are in the order of their similarity
        sample = np.sort(products[:n_left:STRIDE])
        threshold = np.float64(sample[size // STRIDE])
    # Every product is off by at most this. The pool reaches so much further that the bound below lies above it
    error = (r.size + 4) * SINGLE * np.sqrt(dot(r, r))
    n_pool, n_outside = INT(0), INT(0)
    near, outside = np.empty(n_left, np.float32), np.empty(n_left, np.int64)
    for i in range(n_left):  # inside and outside
        if products[i] <= threshold + 2 * error + 4 * tie:
            pool[n_pool], near[n_pool] = remaining[i], products[i]
            n_pool += 1
        else:
            outside[n_outside] = remaining[i]
            n_outside += 1
    # the smallest first, so that the first run of candidates rules out most others
    pool[:n_pool] = pool[:n_pool][np.argsort(near[:n_pool])]
    bound = np.inf if n_outside == 0 else threshold + error + 4 * tie
    return n_left, _compute_keys(search, r, n_pool), bound, _enclose(search, outside[:n_outside])


@jit
def _find_candidates(search: Any, d: Any, change: Any, n_pool: Any, enclosure: Any, tie: float) -> Any:
    """Find the groups of the pool whose x.r could be the smallest, with products in float32.

    Args:
        d: what r has changed by since ``keys`` were computed; ``change`` are its two parts.
        enclosure: of the pool.

    Returns:
        The number of candidates, of products, and an upper bound of the smallest x.r.
    """
    singles, along, across, lowest = search.singles, search.along, search.across, search.lowest
    pool, keys, floors, places, values = search.pool, search.keys, search.floors, search.places, search.values
    single = d.astype(np.float32)
    error = (d.size + 4) * SINGLE * np.sqrt(dot(d, d))
    margin = 2 * (error + tie)
    least, n_found, n_products = np.inf, INT(0), INT(0)
    growth = _bound(enclosure, change, lowest)
    shared, rest = change
    for run in range((n_pool + RUN - 1) // RUN):
        if floors[run] + growth > least + margin:  # no group of the run can be next
            continue
        for place in range(run * RUN, min(run * RUN + RUN, n_pool)):
            g = pool[place]
            if keys[place] + max(along[g] * shared - across[g] * rest, lowest) > least + margin:
                continue
            value = keys[place] + row_dot(singles, g, single)  # off by at most `error`
            n_products += 1
            if value <= least + margin:
                places[n_found], values[n_found] = place, value
                n_found += 1
                least = min(least, value)
    n_kept = INT(0)
    for i in range(n_found):  # those found before the smallest
        if values[i] <= least + margin:
            places[n_kept] = places[i]
            n_kept += 1
    return n_kept, n_products, least + error


@jit
def _choose(search: Any, r: Any, n_found: Any, tie: float) -> Any:
    """The place in the pool of the candidate with the smallest x.r, and x.r; of equal ones that with the first row."""
    units, members, at = search.units, search.members, search.at
    pool, places, values = search.pool, search.places, search.values
    least, chosen = np.inf, INT(-1)
    for i in range(n_found):  # without the rounding of float32
        values[i] = row_dot(units, pool[places[i]], r)
        least = min(least, values[i])
    for i in range(n_found):
        if values[i] <= least + tie and (
            chosen < 0 or members[at[pool[places[i]]]] < members[at[pool[places[chosen]]]]
        ):
            chosen = INT(i)
    return places[chosen], values[chosen]


@jit
def _add(units: Any, g: Any, r: Any, rest: Any) -> None:
    """Add a vector to a sum: r + rest is the sum without rounding, r its nearest float (Knuth's two-sum)."""
    for j in range(r.size):
        u = units[g, j] + rest[j]
        total = r[j] + u
        back = total - r[j]
        rest[j] = (r[j] - (total - back)) + (u - back)
        r[j] = total


@jit
def _extend_order(
    search: Any, start: int, first: int, end: int, sums: Any, state: Any, rows: Any, distances: Any
) -> Any:
    """Add the rows ``first .. end - 1`` one by one.

    Args:
        sums: ``(4, k)`` r, its rest, and its changes since the last pool and since ``keys`` were computed.
        state: the group added last, numbers of groups and products, and the bounds of the pool.

    Returns:
        The state for the next rows.
    """
    units, members, starts, at, pool = search.units, search.members, search.starts, search.at, search.pool
    r, rest, since_filled, since_computed = sums[0], sums[1], sums[2], sums[3]
    last, n_left, n_pool, n_products, outside, around, within = state
    for step in range(first, end):
        _add(units, last, r, rest)
        for j in range(search.common.size):  # the changes of r since its products were computed
            since_filled[j] += units[last, j]
            since_computed[j] += units[last, j]
        tie = TIE_TOLERANCE * step
        if n_products > n_pool:  # as much work as to compute the keys again
            n_pool = _compute_keys(search, r, n_pool)
            since_computed[:], n_products = 0.0, INT(0)
        change = _split(since_computed, search.common)
        n_found, n_more, least = _find_candidates(search, since_computed, change, n_pool, within, tie)
        # another group could be next: make a new pool
        if least + 2 * tie >= outside + _bound(around, _split(since_filled, search.common), search.lowest):
            n_left, n_pool, outside, around = _fill_pool(search, r, n_left, tie)
            since_filled[:], since_computed[:], n_products = 0.0, 0.0, INT(0)
            within = _enclose(search, pool[:n_pool])
            n_found, n_more, least = _find_candidates(search, since_computed, (0.0, 0.0), n_pool, within, tie)
        n_products += n_more
        place, value = _choose(search, r, n_found, tie)
        last = pool[place]
        rows[step], distances[step] = members[at[last]], 1.0 - value / step
        if not go_on(last, start, members, starts, at):
            search.keys[place] = np.inf
    return last, n_left, n_pool, n_products, outside, around, within


def order_by_mean(groups: Groups, start: int, rows: NDArray[np.int64], distances: NDArray[np.float64]) -> None:
    """Fill in the rows, each with the largest mean distance from those before it, and these distances.

    Args:
        groups: the rows by direction.
        start: the first row.
        rows, distances: ``(n,)``.
    """
    units, m, at = groups.units, len(groups.units), groups.next_places(start)
    total = np.diff(groups.starts) @ units
    length = float(np.sqrt(total @ total))
    common = total / length if length > 0 else total
    along = units @ common
    search = _Pool(
        units=units,
        singles=units.astype(np.float32),
        members=groups.members,
        starts=groups.starts,
        at=at,
        common=common,
        along=along,
        across=np.sqrt(np.maximum(1 - along * along, 0) + SQUARED_ROUNDING),
        lowest=0.0 if groups.is_nonnegative else -np.inf,
        remaining=np.arange(m),
        pool=np.empty(m, np.int64),
        keys=np.empty(m),
        floors=np.empty((m + RUN - 1) // RUN),
        places=np.empty(m, np.int64),
        values=np.empty(m),
    )
    rows[0], distances[0] = start, np.nan
    none = (0.0, 0.0, 0.0)
    state = (int(groups.group[start]), m, 0, 0, -np.inf, none, none)
    sums, n = np.zeros((4, units.shape[1])), rows.size - 1
    for part in split_blocks(n, max(CALL_SIZE // max(units.size, 1), 1)):
        if part.start <= n // SLOW_SHARE:
            timer = LoopTimer(n - part.start)
        state = _extend_order(search, start, part.start + 1, part.stop + 1, sums, state, rows, distances)
        timer.count(len(part))
