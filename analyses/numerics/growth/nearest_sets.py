"""The order in which sets are added, each the farthest from the nearest of those already there.

The cosine similarity of two sets is the size of their intersection over the root of the product of their sizes. A word
holds 64 bits of a set, so that one instruction counts the intersection of two words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.growth.groups import Groups, go_on
from analyses.numerics.similarity.score_table import pack_bits
from tracker.statistics.jit import INT, jit, popcount
from tracker.statistics.ranking import TIE_TOLERANCE

RUN = 64
"""Groups whose similarities are computed together."""


class _RemainingSets(NamedTuple):
    """The groups that have a row left; the first ``n_left`` places of each array count.

    Attributes:
        group: ``(m,)`` which group stands at each place.
        words: ``(n_words, m)`` bits.
        roots: ``(m,)`` 1 / sqrt of the number of bits; 0 for the empty set.
        keys: ``(m,)`` the largest similarities so far, as the bits of float64; those of numbers from 0 have
            their order.
        floors: the smallest key of each run of `RUN` places.
    """

    group: Any
    words: Any
    roots: Any
    keys: Any
    floors: Any


@jit
def _compare(left: Any, n_left: Any, last: Any, root: float) -> None:
    """Bring the largest similarity of every remaining group up to date with one more selected set.

    Args:
        last: ``(n_words,)`` bits of the selected set; ``root`` is 1 / sqrt of their number.
    """
    words, roots, keys = left.words, left.roots, left.keys
    common, similarity = np.empty(RUN, np.int64), np.empty(RUN)
    bits = similarity.view(np.int64)
    for run in range((n_left + RUN - 1) // RUN):
        first = run * RUN
        size = min(INT(RUN), n_left - first)
        for i in range(size):  # sizes of intersections
            common[i] = INT(popcount(words[0, first + i] & last[0]))
        for w in range(1, last.size):
            for i in range(size):
                common[i] += INT(popcount(words[w, first + i] & last[w]))
        for i in range(size):  # the cosine similarities
            similarity[i] = common[i] * (root * roots[first + i])
        least = INT(0x7FFF_FFFF_FFFF_FFFF)
        for i in range(size):  # the largest similarity of each group, and the smallest of these
            keys[first + i] = max(keys[first + i], bits[i])
            least = min(least, keys[first + i])
        left.floors[run] = least


@jit
def _remove(left: Any, place: Any, n_left: Any) -> Any:
    """Take a group out; the last one takes its place.

    Returns:
        The number of groups that remain.
    """
    final = n_left - 1
    for w in range(left.words.shape[0]):
        left.words[w, place] = left.words[w, final]
    left.group[place], left.roots[place], left.keys[place] = left.group[final], left.roots[final], left.keys[final]
    return final


@jit
def _choose(left: Any, n_left: Any, members: Any, at: Any) -> Any:
    """The place of the group whose largest similarity is smallest; of equal ones that with the first row."""
    n_runs = (n_left + RUN - 1) // RUN
    most = np.empty(1)
    key = most.view(np.int64)
    key[0] = left.floors[0]  # the smallest of all keys
    for run in range(1, n_runs):
        key[0] = min(key[0], left.floors[run])
    most[0] += TIE_TOLERANCE  # `key` are the bits of this sum
    chosen = INT(-1)
    for run in range(n_runs):  # the first row among the groups that are equally far
        if left.floors[run] > key[0]:
            continue
        for place in range(run * RUN, min(run * RUN + RUN, n_left)):
            if left.keys[place] <= key[0] and (
                chosen < 0 or members[at[left.group[place]]] < members[at[left.group[chosen]]]
            ):
                chosen = INT(place)
    return chosen


@jit
def _find_order(
    left: Any,
    n_left: Any,
    members: Any,
    starts: Any,
    at: Any,
    start: int,
    last: Any,
    root: float,
    rows: Any,
    distances: Any,
) -> None:
    """Add the rows one by one.

    Args:
        last: ``(n_words,)`` bits of the first row; ``root`` is 1 / sqrt of their number.
    """
    similarity = left.keys.view(np.float64)
    for step in range(1, rows.size):
        _compare(left, n_left, last, root)
        place = _choose(left, n_left, members, at)
        g = left.group[place]
        rows[step], distances[step] = members[at[g]], 1.0 - similarity[place]
        for w in range(last.size):  # the next comparison is with this set
            last[w] = left.words[w, place]
        root = left.roots[place]
        if not go_on(g, start, members, starts, at):
            n_left = _remove(left, place, n_left)


def order_sets_by_nearest(groups: Groups, start: int, rows: NDArray[np.int64], distances: NDArray[np.float64]) -> None:
    """Fill in the rows, each the farthest from the nearest of those before it, and these distances.

    Args:
        groups: the rows by direction; binary.
        start: the first row.
        rows, distances: ``(n,)``.
    """
    flags = groups.units > 0
    words, sizes = pack_bits(flags), np.count_nonzero(flags, axis=1)
    roots = np.divide(1, np.sqrt(sizes), out=np.zeros(len(sizes)), where=sizes > 0)
    at = groups.next_places(start)
    group = np.flatnonzero(at < groups.starts[1:])
    left = _RemainingSets(
        group=group,
        words=np.ascontiguousarray(words[group].T),
        roots=roots[group],
        keys=np.zeros(group.size, np.int64),
        floors=np.zeros(-(-group.size // RUN), np.int64),
    )
    rows[0], distances[0] = start, np.nan
    first = groups.group[start]
    _find_order(
        left, group.size, groups.members, groups.starts, at, start, words[first], float(roots[first]), rows, distances
    )
