"""Spherical k-means for every number of clusters at once.

A run is a chain: all directions in one cluster; then, one at a time, a new centre is set among the directions and
the assignment is improved until no direction is nearer to another centre. A direction's cosines are looked at
again only where the triangle inequality for chords leaves open that another centre has come nearer.

Source: Dhillon & Modha 2001 (the algorithm and its objective); Arthur & Vassilvitskii 2007 (choice of starts);
Hamerly 2010 (bounds).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit
from tracker.statistics.rng_kernels import fill_below
from tracker.statistics.rng_streams import STARTS

CANDIDATES = 8
"""Directions drawn for each new centre, of which the one that improves the objective most is taken."""
MARGIN = 1e-12
"""A direction changes its cluster only for a cosine larger by more than this, so that rounding moves nothing."""
SLACK = 1e-7
"""Chords are compared with this allowance for rounding, which is largest, about 1e-8, where they are 0."""
MAX_ROUNDS = 300
"""Rounds of improvement at each number of clusters; far more than any table has needed."""
BLOCK = 64
"""Directions whose cosines are made together."""
_ONE = 2**32 - 1


@jit
def _cosines(columns: Any, vector: Any, cosines: Any) -> None:
    cosines[:] = 0.0
    for j in range(vector.size):
        v = vector[j]
        for i in range(cosines.size):
            cosines[i] += columns[j, i] * v


@jit
def _set_centre(sums: Any, centres: Any, c: Any) -> Any:
    """Point a centre along its sum; returns how far it moved. Where all cancels the centre is 0."""
    length = 0.0
    for j in range(sums.shape[1]):
        length += sums[c, j] * sums[c, j]
    length = np.sqrt(length)
    moved = 0.0
    for j in range(sums.shape[1]):
        now = sums[c, j] / length if length > 0 else 0.0
        moved += (now - centres[c, j]) * (now - centres[c, j])
        centres[c, j] = now
    return np.sqrt(moved)


@jit
def _chord(cosine: float) -> Any:
    return np.sqrt(max(0.0, 2.0 - 2.0 * cosine))


@jit
def _gain(weights: Any, cosines: Any, own: Any) -> Any:
    """How much the objective rises at once with a new centre; four sums, so that none waits for another."""
    g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
    whole = own.size - own.size % 4
    for i in range(0, whole, 4):
        g0 += weights[i] * max(0.0, cosines[i] - own[i])
        g1 += weights[i + 1] * max(0.0, cosines[i + 1] - own[i + 1])
        g2 += weights[i + 2] * max(0.0, cosines[i + 2] - own[i + 2])
        g3 += weights[i + 3] * max(0.0, cosines[i + 3] - own[i + 3])
    for i in range(whole, own.size):
        g0 += weights[i] * max(0.0, cosines[i] - own[i])
    return (g0 + g1) + (g2 + g3)


@jit
def _choose(columns: Any, weights: Any, own: Any, draws: Any, best: Any, trial: Any) -> Any:
    """A new centre: drawn in proportion to weight times distance, the best of a few by the objective.

    Returns -1 where no direction is apart from its centre; else the direction, with its cosines in ``best``.
    """
    parts = np.empty(own.size)
    total = 0.0
    for i in range(own.size):
        total += weights[i] * max(0.0, 1.0 - own[i])
        parts[i] = total
    if total == 0.0:
        return INT(-1)
    chosen: Any = INT(-1)
    largest = -1.0
    for t in range(draws.size):
        drawn = np.searchsorted(parts, total * (draws[t] / _ONE), side="right")
        _cosines(columns, columns[:, drawn].copy(), trial)
        trial_gain = _gain(weights, trial, own)
        if trial_gain > largest * (1.0 + MARGIN):
            largest, chosen = trial_gain, INT(drawn)
            best[:] = trial
    return chosen


@jit
def _compare(units: Any, centres: Any, n: Any, rows: Any, labels: Any, own: Any, apart: Any, moves: Any) -> Any:
    """Look at all centres for some directions; write where each wants to go and its distance from the rest."""
    k = units.shape[1]
    block, cosines = np.zeros((k, BLOCK)), np.empty(BLOCK)
    first, second, where = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    n_moves: Any = INT(0)
    for start in range(0, rows.size, BLOCK):
        size = min(BLOCK, rows.size - start)
        for b in range(size):
            for j in range(k):
                block[j, b] = units[rows[start + b], j]
        first[:], second[:] = -2.0, -2.0
        for c in range(n):
            cosines[:] = 0.0
            for j in range(0, k, 4):
                v0, v1, v2, v3 = centres[c, j], centres[c, j + 1], centres[c, j + 2], centres[c, j + 3]
                for b in range(BLOCK):
                    cosines[b] += (block[j, b] * v0 + block[j + 1, b] * v1) + (
                        block[j + 2, b] * v2 + block[j + 3, b] * v3
                    )
            place = float(c)
            for b in range(BLOCK):
                cosine = cosines[b]
                second[b] = max(second[b], min(first[b], cosine))
                where[b] = place if cosine > first[b] else where[b]
                first[b] = max(first[b], cosine)
        for b in range(size):
            i, wanted = rows[start + b], np.int64(where[b])
            if wanted == labels[i]:
                apart[i] = _chord(second[b])
            elif first[b] <= own[i] + MARGIN:
                apart[i] = _chord(first[b])
            else:
                moves[n_moves, 0], moves[n_moves, 1] = i, wanted
                n_moves += 1
                own[i] = first[b]
                apart[i] = _chord(second[b])
    return n_moves


@jit
def _set_own(units: Any, centres: Any, labels: Any, own: Any, i: int) -> None:
    c = labels[i]
    own[i] = 0.0
    for j in range(units.shape[1]):
        own[i] += units[i, j] * centres[c, j]


@jit
def _improve(
    units: Any,
    weights: Any,
    n: Any,
    labels: Any,
    own: Any,
    apart: Any,
    sums: Any,
    centres: Any,
    counts: Any,
    drift: Any,
    rows: Any,
    moves: Any,
) -> None:
    """Move centres and directions in turn until no direction wants to move.

    A cluster left empty takes the direction with the smallest cosine to its own centre, the first of equal ones,
    from any cluster that has others.
    """
    m = labels.size
    near = np.empty(m)  # chords to the own centre, or more: cosines are made anew only where that leaves a doubt
    for i in range(m):
        near[i] = _chord(own[i])
    for _ in range(MAX_ROUNDS):
        furthest, second = 0.0, 0.0
        for c in range(n):
            drift[c] = _set_centre(sums, centres, c)
            if drift[c] > furthest:
                furthest, second = drift[c], furthest
            elif drift[c] > second:
                second = drift[c]
        n_rows: Any = INT(0)
        for i in range(m):
            c = labels[i]
            near[i] += drift[c]
            apart[i] -= second if drift[c] == furthest else furthest
            if near[i] + SLACK > apart[i]:
                _set_own(units, centres, labels, own, i)
                near[i] = _chord(own[i])
                if near[i] + SLACK > apart[i]:
                    rows[n_rows] = i
                    n_rows += 1
        n_moves = _compare(units, centres, n, rows[:n_rows], labels, own, apart, moves)
        for move in range(n_moves):
            _reassign(units, weights, labels, sums, counts, moves[move, 0], moves[move, 1])
            near[moves[move, 0]] = _chord(own[moves[move, 0]])
        settled = n_moves == 0
        for c in range(n):
            if counts[c] == 0:
                settled = False
                sums[c, :] = 0.0
                lone: Any = INT(-1)
                for i in range(m):
                    _set_own(units, centres, labels, own, i)
                    if counts[labels[i]] > 1 and (lone < 0 or own[i] < own[lone]):
                        lone = INT(i)
                _reassign(units, weights, labels, sums, counts, lone, INT(c))
                own[lone], near[lone] = 1.0, 0.0
                apart[:] = 0.0
        if settled:
            break
    for i in range(m):
        _set_own(units, centres, labels, own, i)


@jit
def _reassign(units: Any, weights: Any, labels: Any, sums: Any, counts: Any, i: Any, to: Any) -> None:
    c = labels[i]
    for j in range(units.shape[1]):
        part = weights[i] * units[i, j]
        sums[c, j] -= part
        sums[to, j] += part
    counts[c] -= 1
    counts[to] += 1
    labels[i] = to


@jit
def _chains(units: Any, columns: Any, weights: Any, most: int, n_restarts: int, key: Any, kept: Any, best: Any) -> None:
    m, k = units.shape
    labels, own, apart = np.empty(m, np.int64), np.empty(m), np.empty(m)
    fresh, trial = np.empty(m), np.empty(m)
    sums, centres, drift = np.empty((most, k)), np.empty((most, k)), np.empty(most)
    counts, rows, moves = np.empty(most, np.int64), np.empty(m, np.int64), np.empty((m, 2), np.int64)
    draws = np.empty(CANDIDATES * most, np.int64)
    for restart in range(n_restarts):
        fill_below(draws, INT(_ONE), INT(0), key, INT(STARTS), INT(0), restart)
        labels[:], counts[:], sums[:], centres[:] = 0, 0, 0.0, 0.0
        counts[0] = m
        apart[:] = 2.0
        for i in range(m):
            for j in range(k):
                sums[0, j] += weights[i] * units[i, j]
        _set_centre(sums, centres, INT(0))
        _cosines(columns, centres[0], own)
        for n in range(2, most + 1):
            chosen = _choose(columns, weights, own, draws[CANDIDATES * (n - 1) : CANDIDATES * n], fresh, trial)
            if chosen < 0:
                fresh[:], centres[n - 1] = -2.0, 0.0
            else:
                centres[n - 1] = units[chosen]
            for i in range(m):
                if fresh[i] > own[i] + MARGIN:
                    apart[i] = min(apart[i], _chord(own[i]))
                    own[i] = fresh[i]
                    _reassign(units, weights, labels, sums, counts, INT(i), INT(n - 1))
                else:
                    apart[i] = min(apart[i], _chord(fresh[i]))
            _improve(units, weights, INT(n), labels, own, apart, sums, centres, counts, drift, rows, moves)
            sums[:n] = 0.0
            for i in range(m):
                for j in range(k):
                    sums[labels[i], j] += weights[i] * units[i, j]
            objective = 0.0
            for c in range(n):
                length = 0.0
                for j in range(k):
                    length += sums[c, j] * sums[c, j]
                objective += np.sqrt(length)
            if restart == 0 or objective > best[n - 2] * (1.0 + MARGIN):
                best[n - 2] = objective
                kept[n - 2] = labels


def best_assignments(
    units: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    max_clusters: int,
    n_restarts: int,
    key: NDArray[np.uint64],
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """At each number of clusters, the assignment with the best objective among some chains.

    Args:
        units: ``(m, k)`` distinct directions.
        weights: ``(m,)`` of each.
        max_clusters: largest number of clusters, at most ``m``.
        n_restarts: number of chains.
        key: of the seed.

    Returns:
        ``(max_clusters - 1, m)`` cluster of each direction for 2, 3, ... clusters, and ``(max_clusters - 1,)`` the
        objective of each, the weighted sum of cosines to the own centre.
    """
    kept = np.zeros((max_clusters - 1, units.shape[0]), np.int32)
    objectives = np.zeros(max_clusters - 1)
    units = np.pad(units, ((0, 0), (0, -units.shape[1] % 4)))
    columns = np.ascontiguousarray(units.T)
    _chains(units, columns, weights, max_clusters, n_restarts, key, kept, objectives)
    return kept, objectives
