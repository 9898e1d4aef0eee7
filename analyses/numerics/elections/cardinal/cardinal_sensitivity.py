"""How far can weights of tasks move the ranking by means? The exact answer, or an interval, and the weights that do it.

Source: Zhang & Hardt 2024, equations 6 to 8. A task in which a share 1 − α of the labels is random counts α times as
much, so the sensitivity is the largest distance of the ranking by Σ α_j s_j from that by Σ s_j.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.box_search import BoxSearch
from analyses.numerics.elections.cardinal.least_weight import as_float
from analyses.numerics.elections.cardinal.rank_moves import furthest_move, moves, widely_moving_weights
from analyses.numerics.elections.cardinal.reversals import n_reversible, reversal_rows, what_is_possible
from analyses.numerics.elections.cardinal.weight_programs import weights_by_program
from analyses.numerics.elections.cardinal.weight_search import good_weights, one_task_each
from analyses.numerics.elections.cardinal.weighted_sums import WeighedSums, weighed_sums
from analyses.numerics.elections.diversity.ranking_distance import half_ranks_moved, ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange, Measure

QUICK, THOROUGH = 2e6, 1e7
"""Effort of the search for good weights: without and with time for a proof."""

MANY_WEIGHTS, PER_SECOND = 20, 2e7
"""From so many weights on the proof will hardly end, and the search gets so much effort for each second allowed."""

SHARE_OF_MRC = 0.3
"""Of the time, for the largest change of rank; what it leaves is for reversals."""

SHARE_BEFORE_PROGRAM, SHARE_OF_PROGRAM = 0.1, 0.2
"""Of the time for reversals: after the first, an integer program looks for better weights, at most the second long."""

MOST_ENTRIES = 2**24
"""Weights times pairs that branch and bound is tried on."""

DIGITS = (2, 3, 4, 6, 9)
"""Weights are given with as few decimals as do the same."""


def cardinal_sensitivity(
    scores: ExactScores,
    *,
    epsilon: Fraction,
    standardised: bool,
    time_limit: float,
    start: Sequence[NDArray[np.float64]] = (),
) -> CardinalSensitivity:
    """The largest tau and, on its own, the largest MRC over weights in [epsilon, 1].

    Good weights are found by search; that nothing exceeds them is proven by branch and bound over boxes of weights.
    Without time for the proof the bound counts what each pair of models allows by itself. The distances of the
    weights returned are evaluated in integers; bounds hold in spite of rounding.

    Args:
        scores: complete; at least one task and two models.
        epsilon: in (0, 1].
        standardised: whether a weight applies to scores over their standard deviation, or to scores as they are.
        time_limit: seconds for both proofs, about; 0 leaves them out.
        start: ``(n_tasks,)`` weights to begin with besides a task alone, each in [epsilon, 1]; NaN counts as 1.
    """
    began = monotonic()
    sums = weighed_sums(scores, standardised=standardised)
    if sums.n_weights < 2:
        return _unmovable(sums, epsilon)
    floor = as_float(epsilon)
    given = [_by_weight(sums, one) for one in start]
    starts = np.vstack([one_task_each(sums.n_weights, floor), np.ones((1, sums.n_weights)), *given])
    effort = QUICK if time_limit <= 0 else THOROUGH
    if sums.n_weights >= MANY_WEIGHTS:
        effort = max(effort, PER_SECOND * min(time_limit, 60))
    weights = good_weights(sums.as_floats(), sums.before, epsilon=floor, starts=starts, effort=effort)
    possible = what_is_possible(sums, epsilon)
    n_reversed, most_reversed = _how_far(sums, weights, "tau"), n_reversible(sums, possible)

    candidates = np.vstack([starts, weights])
    moving = widely_moving_weights(sums, possible, epsilon=floor, candidates=candidates)
    moved = _how_far(sums, moving, "mrc")
    most_moved = max(moved, moves(sums, possible)[0].at_most)
    if time_limit > 0 and most_moved > moved:
        until = monotonic() + SHARE_OF_MRC * max(0.0, began + time_limit - monotonic())
        further, most_moved = furthest_move(sums, possible, epsilon=epsilon, floor=floor, best=moved, until=until)
        moving = _better(sums, moving, further, "mrc")

    if time_limit > 0 and n_reversed < most_reversed <= MOST_ENTRIES // sums.n_weights:
        rows = reversal_rows(sums, possible)
        search = BoxSearch(rows, epsilon=epsilon, floor=floor, best=n_reversed)
        left = began + time_limit - monotonic()
        search.advance(until=monotonic() + SHARE_BEFORE_PROGRAM * left)
        if search.at_most > search.best:
            offered = weights_by_program(rows, floor=floor, time_limit=SHARE_OF_PROGRAM * left)
            if offered is not None:
                search.offer(offered)
            search.advance(until=began + time_limit)
        weights, most_reversed = _better(sums, weights, search.weights, "tau"), search.at_most
    m = sums.n_models
    return CardinalSensitivity(
        tau=_change(sums, weights, floor, most_reversed / (m * (m - 1) // 2), "tau"),
        mrc=_change(sums, moving, floor, most_moved / 2 / (m - 1), "mrc"),
        before=sums.before,
        epsilon=epsilon,
        scale=sums.scale,
    )


def _how_far(sums: WeighedSums, weights: NDArray[np.float64], measure: Measure) -> int:
    """Pairs reversed, or by how many half ranks a model moves."""
    after = sums.after(weights)
    if measure == "tau":
        return ranking_distance(sums.before, after).n_reversed
    return half_ranks_moved(sums.before, after)


def _by_weight(sums: WeighedSums, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """One weight for all tasks that share it: the first of them; NaN as 1."""
    first = [int(np.flatnonzero(sums.group == place)[0]) for place in range(sums.n_weights)]
    return np.nan_to_num(weights[first], nan=1.0)


def _better(
    sums: WeighedSums, known: NDArray[np.float64], found: NDArray[np.float64] | None, measure: Measure
) -> NDArray[np.float64]:
    if found is None or _how_far(sums, found, measure) <= _how_far(sums, known, measure):
        return known
    return found


def _change(
    sums: WeighedSums, weights: NDArray[np.float64], floor: float, at_most: float, measure: Measure
) -> LargestChange:
    """The result for these weights, with as few decimals as do the same."""
    goal = _how_far(sums, weights, measure)
    for digits in DIGITS:
        rounded = np.clip(np.round(weights, digits), floor, 1.0)
        if _how_far(sums, rounded, measure) >= goal:
            weights = rounded
            break
    return LargestChange.between(
        sums.before, sums.after(weights), measure, witness=sums.by_task(weights), at_most=at_most
    )


def _unmovable(sums: WeighedSums, epsilon: Fraction) -> CardinalSensitivity:
    """Where there is at most one weight, every ranking is that by the mean."""
    witness = sums.by_task(np.ones(sums.n_weights))
    none = LargestChange.between(sums.before, sums.before, "tau", witness=witness, at_most=0.0)
    return CardinalSensitivity(tau=none, mrc=none, before=sums.before, epsilon=epsilon, scale=sums.scale)
