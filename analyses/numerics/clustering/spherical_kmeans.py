"""Spherical k-means for every number of clusters at once.

A run is a chain: all directions in one cluster; then, one at a time, a new centre is set among the directions and
the assignment is improved until no direction is nearer to another centre. A direction's cosines are looked at
again only where the triangle inequality for chords leaves open that another centre has come nearer.

Source: Dhillon & Modha 2001 (the algorithm and its objective); Arthur & Vassilvitskii 2007 (choice of starts);
Hamerly 2010 (bounds).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.sorting import first_above
from tracker.statistics.jit import INT, jit
from tracker.statistics.parallel.blocks import split_blocks
from tracker.statistics.parallel.time_limits import LoopTimer
from tracker.statistics.ranking import TIE_TOLERANCE
from tracker.statistics.rng_kernels import fill_below
from tracker.statistics.rng_streams import STARTS

CANDIDATES = 8
"""WeightedUnits drawn for each new centre, of which the one that improves the objective most is taken."""
SLACK = 1e-7
"""Chords are compared with this allowance for rounding, which is largest, about 1e-8, where they are 0."""
MAX_ROUNDS = 300
"""Rounds of improvement at each number of clusters; far more than any table has needed."""
CALL_SIZE = 1 << 25
"""Numbers of all directions, times numbers of clusters that one call of the compiled code tries, about."""
BLOCK = 64
"""WeightedUnits whose cosines are made together."""
_MAX_DRAW = 2**32 - 1


class WeightedUnits(NamedTuple):
    """What is clustered.

    Attributes:
        units: ``(m, k)`` float64, of length 1; ``k`` is a multiple of 4.
        columns: their transpose.
        weights: ``(m,)`` float64.
    """

    units: Any
    columns: Any
    weights: Any


class Assignment(NamedTuple):
    """Clusters in the making.

    Attributes:
        labels: ``(m,)`` int64, the cluster of each direction.
        cosines: ``(m,)``, with its own centre.
        chords: ``(m,)``, to any other centre at least.
        sums, centres: ``(max_clusters, k)``.
        counts: ``(max_clusters,)`` int64.
    """

    labels: Any
    cosines: Any
    chords: Any
    sums: Any
    centres: Any
    counts: Any


class Workspace(NamedTuple):
    """Memory of `_improve`.

    Attributes:
        own_chords: ``(m,)``, to the own centre, or more: cosines are made anew only where that leaves a doubt.
        drift: ``(max_clusters,)``, how far each centre moved.
        rows: ``(m,)`` int64, directions that are compared with all centres.
        moves: ``(m, 2)`` int64, directions and where they move.
    """

    own_chords: Any
    drift: Any
    rows: Any
    moves: Any


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
def _gain(weights: Any, new: Any, cosines: Any) -> Any:
    """How much the objective rises at once with a new centre; four sums, so that none waits for another."""
    g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
    whole = cosines.size - cosines.size % 4
    for i in range(0, whole, 4):
        g0 += weights[i] * max(0.0, new[i] - cosines[i])
        g1 += weights[i + 1] * max(0.0, new[i + 1] - cosines[i + 1])
        g2 += weights[i + 2] * max(0.0, new[i + 2] - cosines[i + 2])
        g3 += weights[i + 3] * max(0.0, new[i + 3] - cosines[i + 3])
    for i in range(whole, cosines.size):
        g0 += weights[i] * max(0.0, new[i] - cosines[i])
    return (g0 + g1) + (g2 + g3)


@jit
def _choose(directions: Any, cosines: Any, draws: Any, best: Any, trial: Any) -> Any:
    """A new centre: drawn in proportion to weight times distance, the best of a few by the objective.

    Returns -1 where every direction is at its centre; else the direction, with its cosines in ``best``.
    """
    parts = np.empty(cosines.size)
    total = 0.0
    for i in range(cosines.size):
        total += directions.weights[i] * max(0.0, 1.0 - cosines[i])
        parts[i] = total
    if total == 0.0:
        return INT(-1)
    chosen: Any = INT(-1)
    largest = -1.0
    for t in range(draws.size):
        drawn = first_above(parts, total * (draws[t] / _MAX_DRAW))
        _cosines(directions.columns, directions.units[drawn], trial)
        trial_gain = _gain(directions.weights, trial, cosines)
        if trial_gain > largest * (1.0 + TIE_TOLERANCE):
            largest, chosen = trial_gain, drawn
            for i in range(trial.size):
                best[i] = trial[i]
    return chosen


@jit
def _compare(units: Any, n: Any, rows: Any, state: Any, moves: Any) -> Any:
    """Compare some directions with all centres; write where each moves and its distance from the rest."""
    k = units.shape[1]
    labels, own_cosines, chords, centres = state.labels, state.cosines, state.chords, state.centres
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
            i, nearest = rows[start + b], np.int64(where[b])
            if nearest == labels[i]:
                chords[i] = _chord(second[b])
            elif first[b] <= own_cosines[i] + TIE_TOLERANCE:
                chords[i] = _chord(first[b])
            else:
                moves[n_moves, 0], moves[n_moves, 1] = i, nearest
                n_moves += 1
                own_cosines[i] = first[b]
                chords[i] = _chord(second[b])
    return n_moves


@jit
def _set_cosine(units: Any, state: Any, i: int) -> None:
    c = state.labels[i]
    state.cosines[i] = 0.0
    for j in range(units.shape[1]):
        state.cosines[i] += units[i, j] * state.centres[c, j]


@jit
def _move_centres(n: Any, state: Any, drift: Any) -> tuple[float, float]:
    """Point all centres along their sums; the two largest distances by which one moved."""
    furthest, second = 0.0, 0.0
    for c in range(n):
        drift[c] = _set_centre(state.sums, state.centres, c)
        if drift[c] > furthest:
            furthest, second = drift[c], furthest
        elif drift[c] > second:
            second = drift[c]
    return furthest, second


@jit
def _fill_cluster(directions: Any, state: Any, own_chords: Any, c: int) -> None:
    """Give an empty cluster the direction with the smallest cosine to its centre, from a cluster that has others."""
    state.sums[c, :] = 0.0
    lone: Any = INT(-1)
    for i in range(state.labels.size):
        _set_cosine(directions.units, state, i)
        if state.counts[state.labels[i]] > 1 and (lone < 0 or state.cosines[i] < state.cosines[lone]):
            lone = INT(i)
    _reassign(directions, state, lone, INT(c))
    state.cosines[lone], own_chords[lone] = 1.0, 0.0
    state.chords[:] = 0.0


@jit
def _improve(directions: Any, n: Any, state: Any, space: Any) -> None:
    """Move centres and directions in turn until no direction moves.

    A cluster left empty takes the direction with the smallest cosine to its own centre, the first of equal ones,
    from any cluster that has others.
    """
    units, labels, cosines, chords = directions.units, state.labels, state.cosines, state.chords
    own_chords, drift, rows, moves = space.own_chords, space.drift, space.rows, space.moves
    m = labels.size
    for i in range(m):
        own_chords[i] = _chord(cosines[i])
    for _ in range(MAX_ROUNDS):
        furthest, second = _move_centres(n, state, drift)
        n_rows: Any = INT(0)
        for i in range(m):
            c = labels[i]
            own_chords[i] += drift[c]
            chords[i] -= second if drift[c] == furthest else furthest
            if own_chords[i] + SLACK > chords[i]:
                _set_cosine(units, state, i)
                own_chords[i] = _chord(cosines[i])
                if own_chords[i] + SLACK > chords[i]:
                    rows[n_rows] = i
                    n_rows += 1
        n_moves = _compare(units, n, rows[:n_rows], state, moves)
        for move in range(n_moves):
            _reassign(directions, state, moves[move, 0], moves[move, 1])
            own_chords[moves[move, 0]] = _chord(cosines[moves[move, 0]])
        is_stable = n_moves == 0
        for c in range(n):
            if state.counts[c] == 0:
                is_stable = False
                _fill_cluster(directions, state, own_chords, c)
        if is_stable:
            break
    for i in range(m):
        _set_cosine(units, state, i)


@jit
def _reassign(directions: Any, state: Any, i: Any, to: Any) -> None:
    c = state.labels[i]
    for j in range(directions.units.shape[1]):
        part = directions.weights[i] * directions.units[i, j]
        state.sums[c, j] -= part
        state.sums[to, j] += part
    state.counts[c] -= 1
    state.counts[to] += 1
    state.labels[i] = to


@jit
def _start_chain(directions: Any, state: Any) -> None:
    """Put all directions in one cluster."""
    m, k = directions.units.shape
    state.labels[:], state.counts[:], state.sums[:], state.centres[:] = 0, 0, 0.0, 0.0
    state.counts[0] = m
    state.chords[:] = 2.0
    for i in range(m):
        for j in range(k):
            state.sums[0, j] += directions.weights[i] * directions.units[i, j]
    _set_centre(state.sums, state.centres, INT(0))
    _cosines(directions.columns, state.centres[0], state.cosines)


@jit
def _objective(directions: Any, n: int, state: Any) -> float:
    """The weighted sum of cosines to the own centre, from sums made anew."""
    m, k = directions.units.shape
    state.sums[:n] = 0.0
    for i in range(m):
        for j in range(k):
            state.sums[state.labels[i], j] += directions.weights[i] * directions.units[i, j]
    objective = 0.0
    for c in range(n):
        length = 0.0
        for j in range(k):
            length += state.sums[c, j] * state.sums[c, j]
        objective += np.sqrt(length)
    return objective


@jit
def _extend_chain(
    directions: Any, first: Any, last: Any, draws: Any, state: Any, space: Any, is_first: Any, kept: Any, best: Any
) -> None:
    """Extend a chain from ``first - 1`` to ``last`` clusters.

    Args:
        draws: ``(CANDIDATES * max_clusters,)`` of the chain.
        is_first: whether it is the first chain, so that ``best`` is unset.
        kept, best: see `find_best_assignments`; set where the chain is better.
    """
    m = state.labels.size
    cosines, chords = state.cosines, state.chords
    new, trial = np.empty(m), np.empty(m)
    for n in range(first, last + 1):
        chosen = _choose(directions, cosines, draws[CANDIDATES * (n - 1) : CANDIDATES * n], new, trial)
        if chosen < 0:
            new[:] = -2.0
        for j in range(directions.units.shape[1]):
            state.centres[n - 1, j] = directions.units[chosen, j] if chosen >= 0 else 0.0
        for i in range(m):
            if new[i] > cosines[i] + TIE_TOLERANCE:
                chords[i] = min(chords[i], _chord(cosines[i]))
                cosines[i] = new[i]
                _reassign(directions, state, INT(i), INT(n - 1))
            else:
                chords[i] = min(chords[i], _chord(new[i]))
        _improve(directions, INT(n), state, space)
        objective = _objective(directions, n, state)
        if is_first or objective > best[n - 2] * (1.0 + TIE_TOLERANCE):
            best[n - 2] = objective
            for i in range(m):
                kept[n - 2, i] = state.labels[i]


@jit
def _draw_starts(draws: Any, key: Any, restart: Any) -> None:
    fill_below(draws, INT(_MAX_DRAW), INT(0), key, INT(STARTS), INT(0), restart)


def find_best_assignments(
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
    directions = WeightedUnits(units, np.ascontiguousarray(units.T), weights)
    m, k = units.shape
    state = Assignment(
        np.empty(m, np.int64), np.empty(m), np.empty(m), np.empty((max_clusters, k)), np.empty((max_clusters, k)),
        np.empty(max_clusters, np.int64),
    )  # fmt: skip
    space = Workspace(np.empty(m), np.empty(max_clusters), np.empty(m, np.int64), np.empty((m, 2), np.int64))
    draws = np.empty(CANDIDATES * max_clusters, np.int64)
    parts = split_blocks(max_clusters - 1, max(CALL_SIZE // max(units.size, 1), 1))
    timer = LoopTimer(n_restarts * (max_clusters - 1))
    for restart in range(n_restarts):
        _draw_starts(draws, key, restart)
        _start_chain(directions, state)
        for part in parts:
            _extend_chain(
                directions, part.start + 2, part.stop + 1, draws, state, space, restart == 0, kept, objectives
            )
            timer.count(len(part))
    return kept, objectives
