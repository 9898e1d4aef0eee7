"""Good weights, quickly: one task alone, then one weight after the other set to its best value.

With all other weights fixed, a pair of models changes its order at one value of the remaining weight at most, so the
best value is found among intervals between such crossings. The crossings are counted in bins; only bins that could
hold something better than their ends are sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.sorting import stable_argsort
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
def count_reversed(totals: Any, ranks: Any) -> Any:
    """Pairs of models whose order by ``totals``, larger first, is strictly opposite to ``ranks``, which ascend."""
    n = 0
    for i in range(len(totals)):
        for k in range(i + 1, len(totals)):
            if totals[k] > totals[i] and ranks[k] > ranks[i]:
                n += 1
    return n


@jit
def _count_crossings(rest: Any, scores: Any, ranks: Any, epsilon: Any, gains: Any, losses: Any) -> Any:
    """Fill ``gains`` and ``losses`` with the crossings in each bin; returns the pairs reversed at epsilon."""
    width = (1 - epsilon) / BINS
    n_reversed = 0
    for i in range(len(rest)):
        for k in range(i + 1, len(rest)):
            if ranks[i] == ranks[k]:
                continue
            a, b = rest[i] - rest[k], scores[i] - scores[k]
            if a + epsilon * b < 0:
                n_reversed += 1
            if b == 0:
                continue
            crossing = -a / b
            if epsilon < crossing < 1:
                index: Any = min(INT((crossing - epsilon) / width), BINS - 1)
                if b < 0:
                    gains[index] += 1
                else:
                    losses[index] += 1
    return n_reversed


@jit
def _search_bin(rest: Any, scores: Any, ranks: Any, epsilon: Any, bin_: Any, n_events: Any, at_start: Any) -> Any:
    """Most pairs reversed inside a bin, and the value; ``at_start`` pairs are reversed where it begins."""
    width = (1 - epsilon) / BINS
    crossings, steps = np.empty(n_events), np.empty(n_events, np.int64)
    n_filled = 0
    for i in range(len(rest)):
        for k in range(i + 1, len(rest)):
            if ranks[i] == ranks[k]:
                continue
            a, b = rest[i] - rest[k], scores[i] - scores[k]
            if b == 0:
                continue
            crossing = -a / b
            if epsilon < crossing < 1 and min(INT((crossing - epsilon) / width), BINS - 1) == bin_:
                crossings[n_filled] = crossing
                steps[n_filled] = 1 if b < 0 else -1
                n_filled += 1
    order, buffer = np.empty(n_events, np.int64), np.empty(n_events, np.int64)
    stable_argsort(crossings, order, buffer)
    n_reversed, most, value = at_start, INT(-1), 0.0
    for event in range(n_events):
        n_reversed += steps[order[event]]
        is_last = event + 1 == n_events
        if n_reversed > most and (is_last or crossings[order[event + 1]] > crossings[order[event]]):
            upper = epsilon + (bin_ + 1) * width if is_last else crossings[order[event + 1]]
            most, value = n_reversed, (crossings[order[event]] + upper) / 2
    return most, value


@jit
def best_weight_value(rest: Any, scores: Any, ranks: Any, epsilon: Any) -> Any:
    """The value of one weight that reverses most pairs, and how many.

    Args:
        rest: ``(m,)`` weighed sums without the task.
        scores: ``(m,)`` the task's scores.
        ranks: ``(m,)`` ranks before, ascending.
        epsilon: values are in [epsilon, 1].
    """
    gains, losses = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64)
    ends = np.empty(BINS + 1, np.int64)
    ends[0] = _count_crossings(rest, scores, ranks, epsilon, gains, losses)
    best, value = ends[0], epsilon
    width = (1 - epsilon) / BINS
    for index in range(BINS):
        ends[index + 1] = ends[index] + gains[index] - losses[index]
        if ends[index + 1] > best:
            best, value = ends[index + 1], epsilon + (index + 1) * width
    while True:
        # Inside a bin, more than at its ends is possible only where some crossings lose pairs.
        chosen: Any = INT(-1)
        for index in range(BINS):
            bound = ends[index] + gains[index] if losses[index] > 0 else 0
            if bound > best and (chosen < 0 or bound > ends[chosen] + gains[chosen]):
                chosen = index
        if chosen < 0:
            break
        n_events = gains[chosen] + losses[chosen]
        most, at = _search_bin(rest, scores, ranks, epsilon, chosen, n_events, ends[chosen])
        if most > best:
            best, value = most, at
        gains[chosen] = 0
    return value, best


@jit
def ascend_coordinates(X: Any, weights: Any, ranks: Any, epsilon: Any, max_searches: Any) -> Any:
    """Set one weight after the other to its best value until none helps; the number of reversed pairs and searches."""
    n, m = X.shape
    totals, rest = np.zeros(m), np.empty(m)
    for j in range(n):
        for i in range(m):
            totals[i] += weights[j] * X[j, i]
    best = count_reversed(totals, ranks)
    n_searches, n_unimproved = 0, 0
    j = 0
    while n_unimproved < n and n_searches < max_searches:
        for i in range(m):
            rest[i] = totals[i] - weights[j] * X[j, i]
        value, n_reversed = best_weight_value(rest, X[j], ranks, epsilon)
        n_searches += 1
        n_unimproved += 1
        if n_reversed > best:
            best = n_reversed
            weights[j] = value
            for i in range(m):
                totals[i] = rest[i] + value * X[j, i]
            n_unimproved = 1
        j = (j + 1) % n
    return best, n_searches


def single_task_starts(n_weights: int, epsilon: float) -> NDArray[np.float64]:
    """``(n_weights, n_weights)`` starts: a task at 1, all others at epsilon."""
    starts = np.full((n_weights, n_weights), epsilon)
    np.fill_diagonal(starts, 1.0)
    return starts


def ascend_smoothed(
    X: NDArray[np.float64], ranks: NDArray[np.float64], *, epsilon: float, theta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights by gradient ascent of a smooth number of reversed pairs that grows sharper step by step.

    A pair counts 1 / (1 + exp(d / blunt)), with d by how much the one ahead before is ahead now; weights are
    epsilon + (1 − epsilon) / (1 + exp(−theta)), moved by Adam (Kingma & Ba 2015) with its usual constants.

    Args:
        X: ``(n_weights, m)`` scores.
        ranks: ``(m,)`` ranks before.
        epsilon: least weight.
        theta: ``(n_weights,)`` where to start.
    """
    ahead = (ranks[:, None] < ranks[None, :]).astype(np.float64)
    momentum, second_moment = np.zeros(len(X)), np.zeros(len(X))
    for step in range(1, SMOOTH_STEPS + 1):
        share = 1 / (1 + np.exp(-theta))
        totals = (epsilon + (1 - epsilon) * share) @ X
        bluntness = (
            INITIAL_BLUNTNESS * (FINAL_BLUNTNESS / INITIAL_BLUNTNESS) ** (step / SMOOTH_STEPS) * (totals.std() or 1.0)
        )
        chance = 1 / (1 + np.exp(np.clip((totals[:, None] - totals[None, :]) / bluntness, -50, 50)))
        slope = ahead * chance * (1 - chance) / bluntness
        gradient = -(X @ (slope.sum(axis=1) - slope.sum(axis=0))) * (1 - epsilon) * share * (1 - share)
        momentum = 0.9 * momentum + 0.1 * gradient
        second_moment = 0.999 * second_moment + 0.001 * gradient**2
        theta = theta + 0.1 * (momentum / (1 - 0.9**step)) / (np.sqrt(second_moment / (1 - 0.999**step)) + 1e-12)
    return np.asarray(epsilon + (1 - epsilon) / (1 + np.exp(-theta)))


def search_weights(
    X: NDArray[np.float64],
    ranks: NDArray[np.float64],
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
        ranks: ``(m,)`` ranks before.
        epsilon: least weight; the largest is 1.
        starts: ``(n, n_weights)``.
        effort: pairs of models looked at, about; the same effort gives the same weights.
        seed: of the restarts.
    """
    n_weights, m = X.shape
    order = np.argsort(ranks, kind="stable")
    X, ranks = np.ascontiguousarray(X[:, order]), ranks[order]
    rng = generator(seed, RESTARTS)
    searches_left = int(max(min(n_weights, MIN_EFFORT / (m * m)), min(effort / (m * m), MAX_SEARCHES)))
    n_smooth = (
        min(MAX_SMOOTH_STARTS, int(effort / (SMOOTH_COST * SMOOTH_STEPS * m * m))) if n_weights >= MANY_WEIGHTS else 0
    )
    thetas = rng.normal(-1, 2, (n_smooth, n_weights))
    starts = np.vstack([starts, *(ascend_smoothed(X, ranks, epsilon=epsilon, theta=theta)[None] for theta in thetas)])
    reversed_by = np.array([count_reversed(start @ X, ranks) for start in starts])
    best, best_weights = -1, starts[0]
    for start in np.argsort(-reversed_by, kind="stable"):
        if searches_left <= 0:
            break
        weights = starts[start].copy()
        n_reversed, n_searches = ascend_coordinates(
            X, weights, ranks, epsilon, min(searches_left, MAX_SWEEPS * n_weights)
        )
        searches_left -= n_searches
        if n_reversed > best:
            best, best_weights = int(n_reversed), weights
    for _ in range(MAX_RESTARTS if n_weights > 2 else 0):
        if searches_left <= 0:
            break
        weights = best_weights.copy()
        moved = rng.random(n_weights) < max(2 / n_weights, 0.15)
        weights[moved] = np.where(rng.random(moved.sum()) < 0.5, epsilon, rng.uniform(epsilon, 1, moved.sum()))
        n_reversed, n_searches = ascend_coordinates(
            X, weights, ranks, epsilon, min(searches_left, MAX_SWEEPS * n_weights)
        )
        searches_left -= n_searches
        if n_reversed > best:
            best, best_weights = int(n_reversed), weights
    return np.asarray(best_weights)
