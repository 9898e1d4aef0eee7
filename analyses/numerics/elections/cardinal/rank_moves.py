"""The largest change of rank that weights can bring about, model by model and in both directions."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.box_search import BoxSearch, WeightInequalities
from analyses.numerics.elections.cardinal.reversals import CAN_TIE, CANNOT_PASS, build_inequalities
from analyses.numerics.elections.cardinal.weighted_sums import WeightedSums
from tracker.statistics.jit import jit

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
        upper_bound: half ranks it can move, each rival by weights of its own.
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
    found = [
        RankMove(model=i, down=down, upper_bound=int(most - had), rows=None, offset=-int(had))
        for down, passing, had_before in (
            (True, can_pass.sum(axis=1), ahead_before),
            (False, can_pass.sum(axis=0), behind_before),
        )
        for i, (most, had) in enumerate(zip(passing, had_before, strict=True))
    ]
    return sorted(found, key=lambda move: (-move.upper_bound, move.model, not move.down))


def add_inequalities(sums: WeightedSums, possible: NDArray[np.int8], move: RankMove) -> RankMove:
    """The same move with its rows; copies of the model, always tied, are part of the offset."""
    i = move.model
    can_pass = (possible[i] if move.down else possible[:, i]).copy()
    can_pass[i] = CANNOT_PASS
    copies = (sums.steps == sums.steps[:, i : i + 1]).all(axis=0)
    copies[i] = False
    rivals = np.flatnonzero((can_pass != CANNOT_PASS) & ~copies)
    me = np.full(len(rivals), i)
    ahead, behind = (me, rivals) if move.down else (rivals, me)
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
    best = -1
    for _ in range(MAX_SWEEPS):
        improved = False
        for j in range(n):
            crossings, steps = np.empty(n_rows), np.zeros(n_rows, np.int64)
            at, n_events = 0, 0
            for row in range(n_rows):
                rest = 0.0
                for other in range(n):
                    if other != j:
                        rest += weights[other] * D[other, row]
                d = D[j, row]
                if rest + epsilon * d < 0:
                    at += worth[row]
                if d != 0 and epsilon < -rest / d < 1:
                    crossings[n_events] = -rest / d
                    steps[n_events] = worth[row] if d < 0 else -worth[row]
                    n_events += 1
            order = np.argsort(crossings[:n_events])
            if at > best:
                best, weights[j], improved = at, epsilon, True
            for turn in range(n_events):
                at += steps[order[turn]]
                here = crossings[order[turn]]
                upper = crossings[order[turn + 1]] if turn + 1 < n_events else 1.0
                if at > best and upper > here:
                    best, weights[j], improved = at, (here + upper) / 2, True
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
        possible: of `what_is_possible`.
        epsilon: least weight.
        candidates: ``(n, n_weights)`` weights to begin with.
    """
    X = sums.to_floats()
    moved = np.array([_float_ranks(weights @ X) for weights in candidates]) - sums.before
    tried = [candidates[int(np.abs(moved).max(axis=1).argmax())]]
    for move in list_rank_moves(sums, possible)[:N_TRIED_MOVES]:
        rows = add_inequalities(sums, possible, move).rows
        if rows is None:
            continue
        along = moved[:, move.model] if move.down else -moved[:, move.model]
        for start in np.argsort(-along, kind="stable")[:N_STARTS]:
            weights = candidates[start].copy()
            _ascend_rows(rows.D, rows.worth, weights, epsilon)
            tried.append(weights)
    changes = [np.abs(_float_ranks(weights @ X) - sums.before).max() for weights in tried]
    return np.asarray(tried[int(np.argmax(changes))])


def maximize_rank_move(
    sums: WeightedSums, possible: NDArray[np.int8], *, epsilon: Fraction, floor: float, best: int, until: float
) -> tuple[NDArray[np.float64] | None, int]:
    """Weights that move a model by more half ranks than ``best``, if there are any, and what none exceeds.

    Args:
        sums: the scores.
        possible: of `what_is_possible`.
        epsilon: least weight.
        floor: the same as a float.
        best: half ranks to be exceeded.
        until: when to stop, by the monotonic clock.
    """
    weights: NDArray[np.float64] | None = None
    waiting: list[tuple[int, int, RankMove, BoxSearch | None]] = [
        (-move.upper_bound, number, move, None) for number, move in enumerate(list_rank_moves(sums, possible))
    ]
    while waiting and -waiting[0][0] > best and monotonic() < until:
        _, number, move, search = heapq.heappop(waiting)
        if search is None:
            move = add_inequalities(sums, possible, move)
            if move.rows is None:
                continue
            search = BoxSearch(move.rows, epsilon=epsilon, floor=floor, best=best - move.offset)
        search.best = max(search.best, best - move.offset)
        next_bound = -waiting[0][0] if waiting else best
        search.advance(until=until, enough=max(best, next_bound - 1) - move.offset)
        if search.best + move.offset > best:
            best, weights = search.best + move.offset, search.weights
        if search.upper_bound + move.offset > best:
            heapq.heappush(waiting, (-search.upper_bound - move.offset, number, move, search))
    return weights, max(best, -waiting[0][0] if waiting else best)
