"""Cardinal sensitivity at many least weights, each helped by the others.

Weights that are allowed at a larger least weight are allowed at every smaller one. So what is reached at one epsilon is
reached at every smaller one, and what cannot be exceeded at one is not exceeded at any larger one. Besides, weights
epsilon + (1 − epsilon) · u are allowed at every epsilon for the same u in [0, 1]ⁿ: where scores are weighed as they
are, a pair with differences d and mean difference above 0 is reversed by them if and only if epsilon / (1 − epsilon) is
below −d·u / Σd, so that one good u is good along the whole path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.cardinal_sensitivity import cardinal_sensitivity
from analyses.numerics.elections.cardinal.epsilon import round_up_to_float
from analyses.numerics.elections.cardinal.pair_limits import PairLimits, pair_limits
from analyses.numerics.elections.cardinal.weighted_sums import WeightedSums, weighted_sums
from analyses.numerics.elections.diversity.ranking_distance import average_ranks, ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange, Measure
from tracker.statistics.jit import working_time

N_PAIR_DIRECTIONS = 24
"""Pairs whose own reversing weights are among the first that are tried."""

MIN_SEARCH_SECONDS = 2.0
"""Seconds below which a search with proof is not begun while others wait: it would be over before the proof."""

MIN_TIME_GROWTH = 1.25
"""What is not proven is tried again as long as each part of the time is so many times that of the last attempt."""


@dataclass(frozen=True, kw_only=True)
class SensitivityPath:
    """Sensitivity at each epsilon.

    Attributes:
        sensitivities: smallest epsilon first. Neither values nor bounds ever grow along it.
        limits: from which epsilon on each pair keeps its order.
    """

    sensitivities: tuple[CardinalSensitivity, ...]
    limits: PairLimits


def sensitivity_path(
    scores: ExactScores, *, epsilons: Sequence[Fraction], standardised: bool, time_limit: float
) -> SensitivityPath:
    """Follow the largest changes along epsilon.

    Args:
        scores: complete, at least 2 models and 1 task.
        epsilons: in (0, 1].
        standardised: whether the tasks that are weighed have standard deviation 1.
        time_limit: seconds for all of it, about. After a quick look at each, the largest epsilon, which is the easiest,
            comes first; each has an equal part of what is left.
    """
    deadline = working_time() + time_limit
    ascending = sorted(set(epsilons))
    sums = weighted_sums(scores, standardised=standardised)
    limits = pair_limits(sums)
    directions = limits.reversing_directions(N_PAIR_DIRECTIONS)
    known: dict[Fraction, CardinalSensitivity] = {}
    path: tuple[CardinalSensitivity, ...] = ()
    open_epsilons, seconds_each = ascending, 0.0
    while open_epsilons:
        for index in range(len(open_epsilons) - 1, -1, -1):
            epsilon, seconds_left = open_epsilons[index], deadline - working_time()
            if path and seconds_left <= 0:
                break
            sensitivity = cardinal_sensitivity(
                scores,
                epsilon=epsilon,
                standardised=standardised,
                time_limit=min(seconds_left, max(MIN_SEARCH_SECONDS, seconds_left / (index + 1))) if path else 0.0,
                start=[sums.task_weights(interpolate_weights(u, epsilon)) for u in directions],
            )
            known[epsilon] = sensitivity if epsilon not in known else _merge_searches(known[epsilon], sensitivity)
            directions += _new_directions(sensitivity, directions, sums)
        path = _propagate_along_path([known[epsilon] for epsilon in ascending], directions, sums)
        open_epsilons = [sensitivity.epsilon for sensitivity in path if not sensitivity.is_exact]
        last_seconds_each, seconds_each = seconds_each, max(0.0, deadline - working_time()) / max(1, len(open_epsilons))
        if seconds_each <= MIN_TIME_GROWTH * last_seconds_each:
            break
    return SensitivityPath(sensitivities=path, limits=limits)


def interpolate_weights(u: NDArray[np.float64], epsilon: Fraction) -> NDArray[np.float64]:
    """``(n,)`` floats epsilon + (1 − epsilon) · u, the least not below epsilon and the largest 1.

    Args:
        u: ``(n,)`` in [0, 1], the largest 1.
        epsilon: in (0, 1].
    """
    least = round_up_to_float(epsilon)
    return np.clip(least + (1 - least) * u, least, 1.0)


def _new_directions(
    sensitivity: CardinalSensitivity, known: Sequence[NDArray[np.float64]], sums: WeightedSums
) -> list[NDArray[np.float64]]:
    """The u of both witnesses, stretched so that their least is 0 and their largest 1, unless known."""
    weighed = sums.group >= 0
    new: list[NDArray[np.float64]] = []
    for change in (sensitivity.tau, sensitivity.mrc):
        weights = np.empty(sums.n_weights)
        weights[sums.group[weighed]] = change.witness[weighed]
        if sums.n_weights and np.ptp(weights) > 0:
            u = np.asarray((weights - weights.min()) / np.ptp(weights))
            if not any((u == direction).all() for direction in (*known, *new)):
                new.append(u)
    return new


def _merge_searches(first: CardinalSensitivity, second: CardinalSensitivity) -> CardinalSensitivity:
    """The better witness and the better bound of two searches at the same epsilon."""
    tau, mrc = (
        replace(_better_change(change, other_change), upper_bound=min(change.upper_bound, other_change.upper_bound))
        for change, other_change in ((first.tau, second.tau), (first.mrc, second.mrc))
    )
    return replace(first, tau=tau, mrc=mrc)


def _propagate_along_path(
    sensitivities: Sequence[CardinalSensitivity],
    directions: Sequence[NDArray[np.float64]],
    sums: WeightedSums,
) -> tuple[CardinalSensitivity, ...]:
    """The best of all that is known at each epsilon."""
    path = list(sensitivities)
    for index in range(len(path) - 1, -1, -1):
        sensitivity = path[index]
        tau, mrc = sensitivity.tau, sensitivity.mrc
        if index + 1 < len(path):
            larger = path[index + 1]
            tau, mrc = _better_change(tau, larger.tau), _better_change(mrc, larger.mrc)
        if not (tau.is_exact and mrc.is_exact):
            tau, mrc = _improve_with_candidates(
                tau, mrc, [interpolate_weights(u, sensitivity.epsilon) for u in directions], sums
            )
        path[index] = replace(sensitivity, tau=tau, mrc=mrc)
    tau_bound = mrc_bound = 1.0
    for index, sensitivity in enumerate(path):
        tau_bound = min(tau_bound, sensitivity.tau.upper_bound)
        mrc_bound = min(mrc_bound, sensitivity.mrc.upper_bound)
        path[index] = replace(
            sensitivity,
            tau=replace(sensitivity.tau, upper_bound=tau_bound),
            mrc=replace(sensitivity.mrc, upper_bound=mrc_bound),
        )
    return tuple(path)


def _better_change(first: LargestChange, second: LargestChange) -> LargestChange:
    """The witness that does more, with the bound of the first."""
    return first if first.value >= second.value else replace(second, upper_bound=first.upper_bound)


def _improve_with_candidates(
    tau: LargestChange, mrc: LargestChange, candidates: Sequence[NDArray[np.float64]], sums: WeightedSums
) -> tuple[LargestChange, LargestChange]:
    """The same, or with the best of some weights as the witness."""
    if not candidates:
        return tau, mrc
    X = sums.to_floats()
    distances = [ranking_distance(sums.before, average_ranks(weights @ X)) for weights in candidates]

    def best(incumbent: LargestChange, measure: Measure, values: Sequence[float]) -> LargestChange:
        index = int(np.argmax(values))
        if values[index] <= incumbent.value:
            return incumbent
        weights = candidates[index]
        change = LargestChange.between(
            sums.before,
            sums.ranks_after(weights),
            measure,
            witness=sums.task_weights(weights),
            upper_bound=incumbent.upper_bound,
        )
        return _better_change(incumbent, change)

    return best(tau, "tau", [distance.tau for distance in distances]), best(
        mrc, "mrc", [distance.mrc for distance in distances]
    )
