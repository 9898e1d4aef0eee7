"""How far can weights of tasks move the ranking by means? The exact answer, or an interval, and the weights that do it.

Source: Zhang & Hardt 2024, equations 6 to 8. A task in which a share 1 − α of the labels is random counts α times as
much, so the sensitivity is the largest distance of the ranking by Σ α_j s_j from that by Σ s_j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.box_search import BoxSearch
from analyses.numerics.elections.cardinal.boxes.clique_search import CliqueSearch
from analyses.numerics.elections.cardinal.epsilon import round_up_to_float
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
from tracker.statistics.jit import working_time

QUICK_EFFORT, THOROUGH_EFFORT = 2e6, 1e7
"""Effort of the search for good weights: without and with time for a proof."""

MIN_HARD_WEIGHTS, EFFORT_PER_SECOND = 20, 1e7
"""From so many weights on the proof will hardly end, and the search gets so much effort for each second allowed."""

MRC_TIME_SHARE = 0.15
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
    start_time = working_time()
    sums = weighted_sums(scores, standardised=standardised)
    if sums.n_weights < 2:
        return _unchanged(sums, epsilon)
    problem = _WeightProblem(
        sums=sums,
        possible=possible_overtakes(sums, epsilon),
        epsilon=epsilon,
        time_limit=time_limit,
        deadline=start_time + time_limit,
    )
    explicit_starts = [_weights_of_groups(sums, weights) for weights in start]
    single_starts = single_task_starts(sums.n_weights, problem.min_weight)
    starts = np.vstack([single_starts, np.ones((1, sums.n_weights)), *explicit_starts])
    weights = search_weights(
        sums.to_floats(), sums.before, epsilon=problem.min_weight, starts=starts, effort=problem.effort
    )
    mrc_weights, mrc_bound = _maximize_mrc(problem, np.vstack([starts, weights]))
    tau_weights, tau_bound = _maximize_tau(problem, weights)
    m = sums.n_models
    return CardinalSensitivity(
        tau=_change(sums, tau_weights, problem.min_weight, tau_bound / (m * (m - 1) // 2), "tau"),
        mrc=_change(sums, mrc_weights, problem.min_weight, mrc_bound / 2 / (m - 1), "mrc"),
        before=sums.before,
        epsilon=epsilon,
        scale=sums.scale,
    )


@dataclass(frozen=True, kw_only=True)
class _WeightProblem:
    """The scores, which models can pass which, and the limits of the search."""

    sums: WeightedSums
    possible: NDArray[np.int8]
    epsilon: Fraction
    time_limit: float
    deadline: float

    @property
    def min_weight(self) -> float:
        """The least weight as a float."""
        return round_up_to_float(self.epsilon)

    @property
    def effort(self) -> float:
        """Effort of the search for good weights."""
        effort = QUICK_EFFORT if self.time_limit <= 0 else THOROUGH_EFFORT
        if self.sums.n_weights >= MIN_HARD_WEIGHTS:
            effort = max(effort, EFFORT_PER_SECOND * min(self.time_limit, 60))
        return effort


def _maximize_mrc(problem: _WeightProblem, candidates: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Weights under which a model moves far, and a bound in half ranks.

    Args:
        problem: the scores and limits.
        candidates: ``(n, n_weights)`` weights to begin with.
    """
    sums, possible, min_weight = problem.sums, problem.possible, problem.min_weight
    weights = search_moving_weights(sums, possible, epsilon=min_weight, candidates=candidates)
    moved = _measure_change(sums, weights, "mrc")
    upper_bound = max(moved, list_rank_moves(sums, possible)[0].upper_bound)
    if problem.time_limit > 0 and upper_bound > moved:
        now = working_time()
        better, upper_bound = maximize_rank_move(
            sums,
            possible,
            epsilon=problem.epsilon,
            min_weight=min_weight,
            incumbent=moved,
            deadline=now + MRC_TIME_SHARE * max(0.0, problem.deadline - now),
        )
        weights = _better_weights(sums, weights, better, "mrc")
    return weights, upper_bound


def _maximize_tau(problem: _WeightProblem, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Weights that reverse many pairs, and a bound of their number.

    Args:
        problem: the scores and limits.
        weights: ``(n_weights,)`` good weights.
    """
    sums, possible, min_weight = problem.sums, problem.possible, problem.min_weight
    n_reversed, upper_bound = _measure_change(sums, weights, "tau"), count_reversible_pairs(sums, possible)
    if problem.time_limit <= 0 or not n_reversed < upper_bound <= MAX_ENTRIES // sums.n_weights:
        return weights, upper_bound
    rows = reversal_inequalities(sums, possible)
    search = BoxSearch(rows, epsilon=problem.epsilon, min_weight=min_weight, incumbent=n_reversed)
    seconds_left = problem.deadline - working_time()
    search.advance(deadline=working_time() + TIME_SHARE_BEFORE_PROGRAM * seconds_left)
    if search.upper_bound > search.incumbent:
        proposal = solve_weight_program(rows, min_weight=min_weight, time_limit=PROGRAM_TIME_SHARE * seconds_left)
        if proposal is not None:
            search.propose(proposal)
        if CliqueSearch.suits(rows):
            search = CliqueSearch.follow(search)
        search.advance(deadline=problem.deadline)
    return _better_weights(sums, weights, search.weights, "tau"), search.upper_bound


def _measure_change(sums: WeightedSums, weights: NDArray[np.float64], measure: Measure) -> int:
    """Pairs reversed, or by how many half ranks a model moves."""
    after = sums.ranks_after(weights)
    if measure == "tau":
        return ranking_distance(sums.before, after).n_reversed
    return max_half_rank_change(sums.before, after)


def _weights_of_groups(sums: WeightedSums, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """One weight for all tasks that share it: the first of them; NaN as 1."""
    first = [int(np.flatnonzero(sums.group == index)[0]) for index in range(sums.n_weights)]
    return np.nan_to_num(weights[first], nan=1.0)


def _better_weights(
    sums: WeightedSums, incumbent: NDArray[np.float64], candidate: NDArray[np.float64] | None, measure: Measure
) -> NDArray[np.float64]:
    if candidate is None or _measure_change(sums, candidate, measure) <= _measure_change(sums, incumbent, measure):
        return incumbent
    return candidate


def _change(
    sums: WeightedSums, weights: NDArray[np.float64], min_weight: float, upper_bound: float, measure: Measure
) -> LargestChange:
    """The result for these weights, with as few decimals as do the same."""
    change = _measure_change(sums, weights, measure)
    for digits in DIGITS:
        rounded = np.clip(np.round(weights, digits), min_weight, 1.0)
        if _measure_change(sums, rounded, measure) >= change:
            weights = rounded
            break
    return LargestChange.between(
        sums.before, sums.ranks_after(weights), measure, witness=sums.task_weights(weights), upper_bound=upper_bound
    )


def _unchanged(sums: WeightedSums, epsilon: Fraction) -> CardinalSensitivity:
    """Where there is at most one weight, every ranking is that by the mean."""
    witness = sums.task_weights(np.ones(sums.n_weights))
    no_change = LargestChange.between(sums.before, sums.before, "tau", witness=witness, upper_bound=0.0)
    return CardinalSensitivity(tau=no_change, mrc=no_change, before=sums.before, epsilon=epsilon, scale=sums.scale)
