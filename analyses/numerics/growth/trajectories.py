"""What becomes of means and rankings while rows are added one by one.

Sums are carried in two floats, so that models with equal scores stay tied in whatever order rows come;
sums of integers are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit
from tracker.statistics.ranking import TIE_TOLERANCE, mean_ranks
from tracker.statistics.rng_kernels import fill_below
from tracker.statistics.rng_streams import ORDERS

MAX_SIZES = 300
"""At most about this many sizes are kept."""


def choose_sizes(n: int, always: tuple[int, ...] = ()) -> NDArray[np.int64]:
    """Sizes from 1 to ``n`` worth looking at: half of them evenly spaced, half by a constant factor.

    Args:
        n: the largest, at least 1.
        always: sizes that are wanted too, where they are not larger.
    """
    half = MAX_SIZES // 2
    spaced = np.concatenate([np.linspace(1, n, half), np.geomspace(1, n, half), [s for s in always if s <= n]])
    return np.unique(np.round(spaced).astype(np.int64))


@jit
def _shuffle(order: Any, key: Any, number: int) -> None:
    draws = np.empty(order.size, np.int64)
    fill_below(draws, order.size, INT(-1), key, INT(ORDERS), number, INT(0))
    for i in range(order.size):
        last = order.size - 1 - i
        order[last], order[draws[i]] = order[draws[i]], order[last]


def draw_order(n: int, key: NDArray[np.uint64], number: int) -> NDArray[np.int64]:
    """A permutation of ``0 .. n - 1``, all equally likely.

    Args:
        n: how many.
        key: of the seed.
        number: which of the orders.
    """
    order = np.arange(n)
    _shuffle(order, key, number)
    return order


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectory:
    """Means and rankings as rows are added.

    Attributes:
        means: ``(n_sizes, k)`` float64 weighted mean of each column over the first rows, at the requested sizes.
        distances: ``(n,)`` float64, `kendall_distance` from the ranking by the first ``i + 1`` rows to that by all.
    """

    means: NDArray[np.float64]
    distances: NDArray[np.float64]

    def stable_size(self, within: float) -> int:
        """The least number of rows from which on the ranking is never farther from the final one than ``within``."""
        beyond = np.flatnonzero(self.distances > within + TIE_TOLERANCE)
        return min(int(beyond[-1]) + 2, self.distances.size) if beyond.size else 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectories:
    """Many of them, such as those of random orders.

    Attributes:
        means: ``(B, n_sizes, k)`` float64, as in `Trajectory`.
        distances: ``(B, n_sizes)`` float64, at the same sizes.
        stable_sizes: ``(B,)`` int64, `Trajectory.stable_size` of each, from the distances at every size.
    """

    means: NDArray[np.float64]
    distances: NDArray[np.float64]
    stable_sizes: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence[Trajectories]) -> Trajectories:
        """All of several, one after the other."""
        return cls(
            means=np.concatenate([part.means for part in parts]),
            distances=np.concatenate([part.distances for part in parts]),
            stable_sizes=np.concatenate([part.stable_sizes for part in parts]),
        )

    def stable_size_quantile(self, share: float) -> float:
        """The least size by which at least that share of the trajectories is stable."""
        return float(np.quantile(self.stable_sizes, share, method="inverted_cdf"))

    def band(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """2.5th, 50th and 97.5th percentile of `means` or `distances` over the trajectories, along a new first axis."""
        return np.asarray(np.quantile(values, [0.025, 0.5, 0.975], axis=0))

    def share_within(self, within: float) -> NDArray[np.float64]:
        """``(n_sizes,)``: the share of trajectories that are no farther than ``within`` at that size."""
        return np.asarray((self.distances <= within + TIE_TOLERANCE).mean(axis=0))


def stack_trajectories(some: Sequence[Trajectory], sizes: NDArray[np.int64], within: float) -> Trajectories:
    """What is kept of some trajectories.

    Args:
        some: at least one.
        sizes: those of their means.
        within: how near to the final ranking is near enough.
    """
    return Trajectories(
        means=np.array([order.means for order in some]),
        distances=np.array([order.distances[sizes - 1] for order in some]),
        stable_sizes=np.array([order.stable_size(within) for order in some]),
    )


@jit
def _follow(
    Q: Any, weights: Any, order: Any, place: Any, tied_until: Any, sizes: Any, means: Any, distances: Any
) -> None:
    k = Q.shape[1]
    sums, rest, now = np.zeros(k), np.zeros(k), np.empty(k)
    weight = 0.0
    n_pairs = max(k * (k - 1) / 2, 1.0)
    kept = 0
    for step in range(order.size):
        row = order[step]
        weight += weights[row]
        largest = 0.0
        for j in range(k):  # sums + rest is the sum without rounding, sums its nearest float (Knuth's two-sum)
            u = weights[row] * Q[row, place[j]] + rest[j]
            total = sums[j] + u
            back = total - sums[j]
            rest[j] = (sums[j] - (total - back)) + (u - back)
            sums[j] = total
            now[j] = total
            largest = max(largest, abs(total))
        slack = TIE_TOLERANCE * largest
        twice: Any = INT(0)
        for i in range(k):
            low, high = now[i] - slack, now[i] + slack
            for j in range(i + 1, tied_until[i]):
                twice += INT(now[j] < low) + INT(now[j] > high)
            for j in range(tied_until[i], k):
                twice += INT(now[j] >= low) + INT(now[j] > high)
        distances[step] = twice / 2 / n_pairs
        if step + 1 == sizes[kept]:
            for j in range(k):
                means[kept, place[j]] = now[j] / weight
            kept = min(kept + 1, sizes.size - 1)


def follow_order(
    Q: NDArray[np.float64], weights: NDArray[np.float64], order: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Trajectory:
    """Add rows in an order.

    Two columns are tied at a size if their sums differ by no more than `TIE_TOLERANCE` of the largest.

    Args:
        Q: ``(n, k)`` finite scores.
        weights: ``(n,)`` positive.
        order: ``(n,)`` int64, a permutation of the rows.
        sizes: ascending, the last is ``n``.
    """
    means, distances = np.empty((sizes.size, Q.shape[1])), np.empty(order.size)
    ranks = mean_ranks(final_means(Q, weights))
    place = np.argsort(ranks, kind="stable")
    tied_until = np.searchsorted(ranks[place], ranks[place], side="right")
    _follow(np.ascontiguousarray(Q), weights, order, place, tied_until, sizes, means, distances)
    return Trajectory(means=means, distances=distances)


def final_means(Q: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(k,)`` weighted means of the columns."""
    return np.asarray(weights @ Q / weights.sum())
