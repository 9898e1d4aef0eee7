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
from analyses.numerics.elections.cardinal.epsilon import round_up
from analyses.numerics.elections.cardinal.rank_moves import list_rank_moves, maximize_rank_move, search_moving_weights
from analyses.numerics.elections.cardinal.reversals import (
    count_reversible_pairs,
    possible_overtakes,
    reversal_inequalities,
)
from analyses.numerics.elections.cardinal.weight_programs import solve_weight_program
from analyses.numerics.elections.cardinal.weight_search import search_weights, single_task_starts
from analyses.numerics.elections.cardinal.weighted_sums import WeightedSums, weighted_sums
from analyses.numerics.elections.diversity.ranking_distance import max_half_rank_change, ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange, Measure

QUICK_EFFORT, THOROUGH_EFFORT = 2e6, 1e7
"""Effort of the search for good weights: without and with time for a proof."""

MIN_HARD_WEIGHTS, EFFORT_PER_SECOND = 20, 2e7
"""From so many weights on the proof will hardly end, and the search gets so much effort for each second allowed."""

MRC_TIME_SHARE = 0.3
"""Of the time, for the largest change of rank; what it leaves is for reversals."""

TIME_SHARE_BEFORE_PROGRAM, PROGRAM_TIME_SHARE = 0.1, 0.2
"""Of the time for reversals: after the first, an integer program looks for better weights, at most the second long."""

MAX_ENTRIES = 2**24
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
    sums = weighted_sums(scores, standardised=standardised)
    if sums.n_weights < 2:
        return _unchanged(sums, epsilon)
    floor = round_up(epsilon)
    given = [_weights_of_groups(sums, one) for one in start]
    starts = np.vstack([single_task_starts(sums.n_weights, floor), np.ones((1, sums.n_weights)), *given])
    effort = QUICK_EFFORT if time_limit <= 0 else THOROUGH_EFFORT
    if sums.n_weights >= MIN_HARD_WEIGHTS:
        effort = max(effort, EFFORT_PER_SECOND * min(time_limit, 60))
    weights = search_weights(sums.to_floats(), sums.before, epsilon=floor, starts=starts, effort=effort)
    possible = possible_overtakes(sums, epsilon)
    n_reversed, most_reversed = _measure_change(sums, weights, "tau"), count_reversible_pairs(sums, possible)

    candidates = np.vstack([starts, weights])
    moving = search_moving_weights(sums, possible, epsilon=floor, candidates=candidates)
    moved = _measure_change(sums, moving, "mrc")
    most_moved = max(moved, list_rank_moves(sums, possible)[0].upper_bound)
    if time_limit > 0 and most_moved > moved:
        until = monotonic() + MRC_TIME_SHARE * max(0.0, began + time_limit - monotonic())
        further, most_moved = maximize_rank_move(sums, possible, epsilon=epsilon, floor=floor, best=moved, until=until)
        moving = _better_weights(sums, moving, further, "mrc")

    if time_limit > 0 and n_reversed < most_reversed <= MAX_ENTRIES // sums.n_weights:
        rows = reversal_inequalities(sums, possible)
        search = BoxSearch(rows, epsilon=epsilon, floor=floor, best=n_reversed)
        left = began + time_limit - monotonic()
        search.advance(until=monotonic() + TIME_SHARE_BEFORE_PROGRAM * left)
        if search.upper_bound > search.best:
            offered = solve_weight_program(rows, floor=floor, time_limit=PROGRAM_TIME_SHARE * left)
            if offered is not None:
                search.offer(offered)
            search.advance(until=began + time_limit)
        weights, most_reversed = _better_weights(sums, weights, search.weights, "tau"), search.upper_bound
    m = sums.n_models
    return CardinalSensitivity(
        tau=_change(sums, weights, floor, most_reversed / (m * (m - 1) // 2), "tau"),
        mrc=_change(sums, moving, floor, most_moved / 2 / (m - 1), "mrc"),
        before=sums.before,
        epsilon=epsilon,
        scale=sums.scale,
    )


def _measure_change(sums: WeightedSums, weights: NDArray[np.float64], measure: Measure) -> int:
    """Pairs reversed, or by how many half ranks a model moves."""
    after = sums.after(weights)
    if measure == "tau":
        return ranking_distance(sums.before, after).n_reversed
    return max_half_rank_change(sums.before, after)


def _weights_of_groups(sums: WeightedSums, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """One weight for all tasks that share it: the first of them; NaN as 1."""
    first = [int(np.flatnonzero(sums.group == place)[0]) for place in range(sums.n_weights)]
    return np.nan_to_num(weights[first], nan=1.0)


def _better_weights(
    sums: WeightedSums, known: NDArray[np.float64], found: NDArray[np.float64] | None, measure: Measure
) -> NDArray[np.float64]:
    if found is None or _measure_change(sums, found, measure) <= _measure_change(sums, known, measure):
        return known
    return found


def _change(
    sums: WeightedSums, weights: NDArray[np.float64], floor: float, upper_bound: float, measure: Measure
) -> LargestChange:
    """The result for these weights, with as few decimals as do the same."""
    goal = _measure_change(sums, weights, measure)
    for digits in DIGITS:
        rounded = np.clip(np.round(weights, digits), floor, 1.0)
        if _measure_change(sums, rounded, measure) >= goal:
            weights = rounded
            break
    return LargestChange.between(
        sums.before, sums.after(weights), measure, witness=sums.task_weights(weights), upper_bound=upper_bound
    )


def _unchanged(sums: WeightedSums, epsilon: Fraction) -> CardinalSensitivity:
    """Where there is at most one weight, every ranking is that by the mean."""
    witness = sums.task_weights(np.ones(sums.n_weights))
    none = LargestChange.between(sums.before, sums.before, "tau", witness=witness, upper_bound=0.0)
    return CardinalSensitivity(tau=none, mrc=none, before=sums.before, epsilon=epsilon, scale=sums.scale)
