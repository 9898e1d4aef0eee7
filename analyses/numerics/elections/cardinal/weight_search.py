"""Good weights, quickly: one task alone, then one weight after the other set to its best value.

With all other weights fixed, a pair of models changes its order at one value of the remaining weight at most, so the
best value is found among intervals between such crossings. The crossings are counted in bins; only bins that could
hold something better than their ends are sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit
from tracker.statistics.rng_streams import RESTARTS, generator

BINS = 256
MAX_SWEEPS = 12
"""So often all weights are gone through at most."""

MIN_EFFORT = 1e7
"""Pairs of models looked at in any case, where all weights cannot be gone through with less."""

MANY_WEIGHTS = 20
"""From so many on, single steps get stuck and a smooth approach is tried as well."""

MAX_RESTARTS, MAX_SEARCHES, MAX_SMOOTH_STARTS = 500, 100_000, 16
"""Of restarts, of searches along one weight, and of smooth approaches, however little each of them costs."""

SMOOTH_COST = 10
"""A step of the smooth approach takes as long as so many looks at every pair of models."""

SMOOTH_STEPS, INITIAL_BLUNTNESS, FINAL_BLUNTNESS = 200, 1.0, 0.02
"""Of the smooth approach: how many, and how blunt it sees an order, in standard deviations of the sums' differences."""


@jit
def count_reversed(totals: Any, place: Any) -> Any:
    """Pairs of models whose order by ``totals``, larger first, is strictly opposite to ``place``, which ascends."""
    n = 0
    for i in range(len(totals)):
        for k in range(i + 1, len(totals)):
            if totals[k] > totals[i] and place[k] > place[i]:
                n += 1
    return n


@jit
def best_weight_value(rest: Any, own: Any, place: Any, epsilon: Any) -> Any:
    """The value of one weight that reverses most pairs, and how many.

    Args:
        rest: ``(m,)`` weighed sums without the task.
        own: ``(m,)`` the task's scores.
        place: ``(m,)`` ranks before, ascending.
        epsilon: values are in [epsilon, 1].
    """
    m = len(rest)
    gains, losses = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64)
    at = 0
    width = (1 - epsilon) / BINS
    for i in range(m):
        for k in range(i + 1, m):
            if place[i] == place[k]:
                continue
            a, b = rest[i] - rest[k], own[i] - own[k]
            if a + epsilon * b < 0:
                at += 1
            if b == 0:
                continue
            crossing = -a / b
            if epsilon < crossing < 1:
                where: Any = min(INT((crossing - epsilon) / width), BINS - 1)
                if b < 0:
                    gains[where] += 1
                else:
                    losses[where] += 1
    best, value = at, epsilon
    ends = np.empty(BINS + 1, np.int64)
    ends[0] = at
    for where in range(BINS):
        ends[where + 1] = ends[where] + gains[where] - losses[where]
        if ends[where + 1] > best:
            best, value = ends[where + 1], epsilon + (where + 1) * width
    while True:
        where = -1
        for one in range(BINS):
            could_be = ends[one] + gains[one] if losses[one] > 0 else 0
            if could_be > best and (where < 0 or could_be > ends[where] + gains[where]):
                where = one
        if where < 0:
            break
        n_events = gains[where] + losses[where]
        crossings, steps = np.empty(n_events), np.empty(n_events, np.int64)
        filled = 0
        for i in range(m):
            for k in range(i + 1, m):
                if place[i] == place[k]:
                    continue
                a, b = rest[i] - rest[k], own[i] - own[k]
                if b == 0:
                    continue
                crossing = -a / b
                if epsilon < crossing < 1 and min(INT((crossing - epsilon) / width), BINS - 1) == where:
                    crossings[filled] = crossing
                    steps[filled] = 1 if b < 0 else -1
                    filled += 1
        order = np.argsort(crossings)
        n = ends[where]
        for turn in range(n_events):
            n += steps[order[turn]]
            if n > best and (turn + 1 == n_events or crossings[order[turn + 1]] > crossings[order[turn]]):
                upper = crossings[order[turn + 1]] if turn + 1 < n_events else epsilon + (where + 1) * width
                best, value = n, (crossings[order[turn]] + upper) / 2
        gains[where] = 0
    return value, best


@jit
def ascend_coordinates(X: Any, weights: Any, place: Any, epsilon: Any, most_searches: Any) -> Any:
    """Set one weight after the other to its best value until none helps; the number of reversed pairs and searches."""
    n = len(weights)
    totals = np.zeros(X.shape[1])
    for j in range(n):
        totals += weights[j] * X[j]
    best = count_reversed(totals, place)
    searches, since = 0, 0
    j = 0
    while since < n and searches < most_searches:
        rest = totals - weights[j] * X[j]
        value, n_reversed = best_weight_value(rest, X[j], place, epsilon)
        searches += 1
        since += 1
        if n_reversed > best:
            best = n_reversed
            weights[j] = value
            totals = rest + value * X[j]
            since = 1
        j = (j + 1) % n
    return best, searches


def single_task_starts(n_weights: int, epsilon: float) -> NDArray[np.float64]:
    """``(n_weights, n_weights)`` starts: a task at 1, all others at epsilon."""
    starts = np.full((n_weights, n_weights), epsilon)
    np.fill_diagonal(starts, 1.0)
    return starts


def ascend_smoothed(
    X: NDArray[np.float64], place: NDArray[np.float64], *, epsilon: float, theta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights by gradient ascent of a smooth number of reversed pairs that grows sharper step by step.

    A pair counts 1 / (1 + exp(d / blunt)), with d by how much the one ahead before is ahead now; weights are
    epsilon + (1 − epsilon) / (1 + exp(−theta)), moved by Adam (Kingma & Ba 2015) with its usual constants.

    Args:
        X: ``(n_weights, m)`` scores.
        place: ``(m,)`` ranks before.
        epsilon: least weight.
        theta: ``(n_weights,)`` where to start.
    """
    ahead = (place[:, None] < place[None, :]).astype(np.float64)
    speed, size = np.zeros(len(X)), np.zeros(len(X))
    for step in range(1, SMOOTH_STEPS + 1):
        share = 1 / (1 + np.exp(-theta))
        totals = (epsilon + (1 - epsilon) * share) @ X
        blunt = (
            INITIAL_BLUNTNESS * (FINAL_BLUNTNESS / INITIAL_BLUNTNESS) ** (step / SMOOTH_STEPS) * (totals.std() or 1.0)
        )
        chance = 1 / (1 + np.exp(np.clip((totals[:, None] - totals[None, :]) / blunt, -50, 50)))
        pull = ahead * chance * (1 - chance) / blunt
        gradient = -(X @ (pull.sum(axis=1) - pull.sum(axis=0))) * (1 - epsilon) * share * (1 - share)
        speed = 0.9 * speed + 0.1 * gradient
        size = 0.999 * size + 0.001 * gradient**2
        theta = theta + 0.1 * (speed / (1 - 0.9**step)) / (np.sqrt(size / (1 - 0.999**step)) + 1e-12)
    return np.asarray(epsilon + (1 - epsilon) / (1 + np.exp(-theta)))


def search_weights(
    X: NDArray[np.float64],
    place: NDArray[np.float64],
    *,
    epsilon: float,
    starts: NDArray[np.float64],
    effort: float,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Weights that reverse many pairs.

    The starts are followed from the best on; what effort is left goes into restarts near the best found.

    Args:
        X: ``(n_weights, m)`` scores.
        place: ``(m,)`` ranks before.
        epsilon: least weight; the largest is 1.
        starts: ``(n, n_weights)``.
        effort: pairs of models looked at, about; the same effort gives the same weights.
        seed: of the restarts.
    """
    n_weights, m = X.shape
    order = np.argsort(place, kind="stable")
    X, place = np.ascontiguousarray(X[:, order]), place[order]
    rng = generator(seed, RESTARTS)
    searches_left = int(max(min(n_weights, MIN_EFFORT / (m * m)), min(effort / (m * m), MAX_SEARCHES)))
    n_smooth = (
        min(MAX_SMOOTH_STARTS, int(effort / (SMOOTH_COST * SMOOTH_STEPS * m * m))) if n_weights >= MANY_WEIGHTS else 0
    )
    thetas = rng.normal(-1, 2, (n_smooth, n_weights))
    starts = np.vstack([starts, *(ascend_smoothed(X, place, epsilon=epsilon, theta=theta)[None] for theta in thetas)])
    reversed_by = np.array([count_reversed(start @ X, place) for start in starts])
    best, found = -1, starts[0]
    for start in np.argsort(-reversed_by, kind="stable"):
        if searches_left <= 0:
            break
        weights = starts[start].copy()
        n, used = ascend_coordinates(X, weights, place, epsilon, min(searches_left, MAX_SWEEPS * n_weights))
        searches_left -= used
        if n > best:
            best, found = int(n), weights
    for _ in range(MAX_RESTARTS if n_weights > 2 else 0):
        if searches_left <= 0:
            break
        weights = found.copy()
        moved = rng.random(n_weights) < max(2 / n_weights, 0.15)
        weights[moved] = np.where(rng.random(moved.sum()) < 0.5, epsilon, rng.uniform(epsilon, 1, moved.sum()))
        n, used = ascend_coordinates(X, weights, place, epsilon, min(searches_left, MAX_SWEEPS * n_weights))
        searches_left -= used
        if n > best:
            best, found = int(n), weights
    return np.asarray(found)
