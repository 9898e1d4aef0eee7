"""The largest change of rank that weights can bring about, model by model and in both directions."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.box_search import BoxSearch, WeightInequalities
from analyses.numerics.elections.cardinal.reversals import CAN_TIE, CANNOT_PASS, build_inequalities
from analyses.numerics.elections.cardinal.weighted_sums import WeightedSums
from analyses.numerics.sorting import stable_argsort
from tracker.statistics.jit import jit, working_time

N_TRIED_MOVES = 8
"""Models for which good weights are looked for before anything is proven, the most movable first."""

N_STARTS = 3
MAX_SWEEPS = 6


@dataclass(frozen=True, kw_only=True)
class RankMove:
    """A model going down or up.

    Ranks are counted in halves: 2 for each rival ahead, 1 for each that is tied.

    Attributes:
        model: which.
        down: whether it falls.
        upper_bound: half ranks it can move, each rival by different weights.
        rows: "the rival passes", worth 2, or 1 where it can only tie.
        offset: half ranks moved = worth of the rows that hold + offset; strictly, without ties by chance.
    """

    model: int
    down: bool
    upper_bound: int
    rows: WeightInequalities | None
    offset: int


def list_rank_moves(sums: WeightedSums, possible: NDArray[np.int8]) -> list[RankMove]:
    """Every model in both directions, the most movable first; without their rows."""
    m, before = sums.n_models, sums.before
    behind_before = np.rint(2 * (m - before)).astype(np.int64)
    ahead_before = np.rint(2 * (before - 1)).astype(np.int64)
    can_pass = possible.astype(np.int64)
    np.fill_diagonal(can_pass, 0)
    moves = [
        RankMove(model=i, down=down, upper_bound=int(half_ranks - n_before), rows=None, offset=-int(n_before))
        for down, passing, half_ranks_before in (
            (True, can_pass.sum(axis=1), ahead_before),
            (False, can_pass.sum(axis=0), behind_before),
        )
        for i, (half_ranks, n_before) in enumerate(zip(passing, half_ranks_before, strict=True))
    ]
    return sorted(moves, key=lambda move: (-move.upper_bound, move.model, not move.down))


def add_inequalities(sums: WeightedSums, possible: NDArray[np.int8], move: RankMove) -> RankMove:
    """The same move with its rows; copies of the model, always tied, are part of the offset."""
    i = move.model
    can_pass = (possible[i] if move.down else possible[:, i]).copy()
    can_pass[i] = CANNOT_PASS
    copies = (sums.steps == sums.steps[:, i : i + 1]).all(axis=0)
    copies[i] = False
    rivals = np.flatnonzero((can_pass != CANNOT_PASS) & ~copies)
    model_column = np.full(len(rivals), i)
    ahead, behind = (model_column, rivals) if move.down else (rivals, model_column)
    return RankMove(
        model=i,
        down=move.down,
        upper_bound=move.upper_bound,
        rows=build_inequalities(sums, ahead, behind, can_pass[rivals], CAN_TIE) if len(rivals) else None,
        offset=move.offset + CAN_TIE * int(copies.sum()),
    )


@jit
def _ascend_rows(D: Any, worth: Any, weights: Any, epsilon: Any) -> Any:
    """Set one weight after the other to the value at which the rows that hold are worth most; that worth."""
    n, n_rows = D.shape
    order, buffer = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    best = -1
    for _ in range(MAX_SWEEPS):
        improved = False
        for j in range(n):
            crossings, steps = np.empty(n_rows), np.zeros(n_rows, np.int64)
            worth_at, n_events = 0, 0
            for row in range(n_rows):
                rest = 0.0
                for k in range(n):
                    if k != j:
                        rest += weights[k] * D[k, row]
                d = D[j, row]
                if rest + epsilon * d < 0:
                    worth_at += worth[row]
                if d != 0 and epsilon < -rest / d < 1:
                    crossings[n_events] = -rest / d
                    steps[n_events] = worth[row] if d < 0 else -worth[row]
                    n_events += 1
            stable_argsort(crossings[:n_events], order, buffer)
            if worth_at > best:
                best, weights[j], improved = worth_at, epsilon, True
            for event in range(n_events):
                worth_at += steps[order[event]]
                crossing = crossings[order[event]]
                upper = crossings[order[event + 1]] if event + 1 < n_events else 1.0
                if worth_at > best and upper > crossing:
                    best, weights[j], improved = worth_at, (crossing + upper) / 2, True
        if not improved:
            break
    return best


def _float_ranks(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = np.empty(len(totals))
    ranks[np.argsort(-totals, kind="stable")] = np.arange(1, len(totals) + 1)
    return ranks


def search_moving_weights(
    sums: WeightedSums, possible: NDArray[np.int8], *, epsilon: float, candidates: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights under which some model moves far.

    Args:
        sums: the scores.
        possible: of `possible_overtakes`.
        epsilon: least weight.
        candidates: ``(n, n_weights)`` weights to begin with.
    """
    X = sums.to_floats()
    moved = np.array([_float_ranks(weights @ X) for weights in candidates]) - sums.before
    attempts = [candidates[int(np.abs(moved).max(axis=1).argmax())]]
    for move in list_rank_moves(sums, possible)[:N_TRIED_MOVES]:
        rows = add_inequalities(sums, possible, move).rows
        if rows is None:
            continue
        progress = moved[:, move.model] if move.down else -moved[:, move.model]
        for start in np.argsort(-progress, kind="stable")[:N_STARTS]:
            weights = candidates[start].copy()
            _ascend_rows(rows.D, rows.worth, weights, epsilon)
            attempts.append(weights)
    changes = [np.abs(_float_ranks(weights @ X) - sums.before).max() for weights in attempts]
    return np.asarray(attempts[int(np.argmax(changes))])


def maximize_rank_move(
    sums: WeightedSums,
    possible: NDArray[np.int8],
    *,
    epsilon: Fraction,
    min_weight: float,
    incumbent: int,
    deadline: float,
) -> tuple[NDArray[np.float64] | None, int]:
    """Weights that move a model by more half ranks than ``incumbent``, if there are any, and what none exceeds.

    Args:
        sums: the scores.
        possible: of `possible_overtakes`.
        epsilon: least weight.
        min_weight: the same as a float.
        incumbent: half ranks to be exceeded.
        deadline: when to stop, by `working_time`.
    """
    weights: NDArray[np.float64] | None = None
    queue: list[tuple[int, int, RankMove, BoxSearch | None]] = [
        (-move.upper_bound, number, move, None) for number, move in enumerate(list_rank_moves(sums, possible))
    ]
    while queue and -queue[0][0] > incumbent and working_time() < deadline:
        _, number, move, search = heapq.heappop(queue)
        if search is None:
            move = add_inequalities(sums, possible, move)
            if move.rows is None:
                continue
            search = BoxSearch(move.rows, epsilon=epsilon, min_weight=min_weight, incumbent=incumbent - move.offset)
        search.incumbent = max(search.incumbent, incumbent - move.offset)
        next_bound = -queue[0][0] if queue else incumbent
        search.advance(deadline=deadline, target_bound=max(incumbent, next_bound - 1) - move.offset)
        if search.incumbent + move.offset > incumbent:
            incumbent, weights = search.incumbent + move.offset, search.weights
        if search.upper_bound + move.offset > incumbent:
            heapq.heappush(queue, (-search.upper_bound - move.offset, number, move, search))
    return weights, max(incumbent, -queue[0][0] if queue else incumbent)
