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
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.cardinal_sensitivity import cardinal_sensitivity
from analyses.numerics.elections.cardinal.epsilon import round_up
from analyses.numerics.elections.cardinal.pair_limits import PairLimits, pair_limits
from analyses.numerics.elections.cardinal.weighted_sums import WeightedSums, weighted_sums
from analyses.numerics.elections.diversity.ranking_distance import average_ranks, ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange, Measure

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
    until = monotonic() + time_limit
    ascending = sorted(set(epsilons))
    sums = weighted_sums(scores, standardised=standardised)
    limits = pair_limits(sums)
    directions = limits.reversing_directions(N_PAIR_DIRECTIONS)
    known: dict[Fraction, CardinalSensitivity] = {}
    path: tuple[CardinalSensitivity, ...] = ()
    open_still, part = ascending, 0.0
    while open_still:
        for place in range(len(open_still) - 1, -1, -1):
            epsilon, left = open_still[place], until - monotonic()
            if path and left <= 0:
                break
            here = cardinal_sensitivity(
                scores,
                epsilon=epsilon,
                standardised=standardised,
                time_limit=min(left, max(MIN_SEARCH_SECONDS, left / (place + 1))) if path else 0.0,
                start=[sums.task_weights(interpolate_weights(u, epsilon)) for u in directions],
            )
            known[epsilon] = here if epsilon not in known else _merge_searches(known[epsilon], here)
            directions += _new_directions(here, directions, sums)
        path = _propagate_along_path([known[epsilon] for epsilon in ascending], directions, sums)
        open_still = [here.epsilon for here in path if not here.is_exact]
        last_part, part = part, max(0.0, until - monotonic()) / max(1, len(open_still))
        if part <= MIN_TIME_GROWTH * last_part:
            break
    return SensitivityPath(sensitivities=path, limits=limits)


def interpolate_weights(u: NDArray[np.float64], epsilon: Fraction) -> NDArray[np.float64]:
    """``(n,)`` floats epsilon + (1 − epsilon) · u, the least not below epsilon and the largest 1.

    Args:
        u: ``(n,)`` in [0, 1], the largest 1.
        epsilon: in (0, 1].
    """
    least = round_up(epsilon)
    return np.clip(least + (1 - least) * u, least, 1.0)


def _new_directions(
    found: CardinalSensitivity, known: Sequence[NDArray[np.float64]], sums: WeightedSums
) -> list[NDArray[np.float64]]:
    """The u of both witnesses, stretched so that their least is 0 and their largest 1, unless known."""
    weighed = sums.group >= 0
    new: list[NDArray[np.float64]] = []
    for change in (found.tau, found.mrc):
        weights = np.empty(sums.n_weights)
        weights[sums.group[weighed]] = change.witness[weighed]
        if sums.n_weights and np.ptp(weights) > 0:
            u = np.asarray((weights - weights.min()) / np.ptp(weights))
            if not any((u == other).all() for other in (*known, *new)):
                new.append(u)
    return new


def _merge_searches(one: CardinalSensitivity, other: CardinalSensitivity) -> CardinalSensitivity:
    """The better witness and the better bound of two searches at the same epsilon."""
    tau, mrc = (
        replace(_better_change(mine, its), upper_bound=min(mine.upper_bound, its.upper_bound))
        for mine, its in ((one.tau, other.tau), (one.mrc, other.mrc))
    )
    return replace(one, tau=tau, mrc=mrc)


def _propagate_along_path(
    found: Sequence[CardinalSensitivity],
    directions: Sequence[NDArray[np.float64]],
    sums: WeightedSums,
) -> tuple[CardinalSensitivity, ...]:
    """The best of all that is known at each epsilon."""
    path = list(found)
    for place in range(len(path) - 1, -1, -1):
        here = path[place]
        tau, mrc = here.tau, here.mrc
        if place + 1 < len(path):
            larger = path[place + 1]
            tau, mrc = _better_change(tau, larger.tau), _better_change(mrc, larger.mrc)
        if not (tau.is_exact and mrc.is_exact):
            tau, mrc = _improve_with_candidates(
                tau, mrc, [interpolate_weights(u, here.epsilon) for u in directions], sums
            )
        path[place] = replace(here, tau=tau, mrc=mrc)
    most_tau = most_mrc = 1.0
    for place, here in enumerate(path):
        most_tau = min(most_tau, here.tau.upper_bound)
        most_mrc = min(most_mrc, here.mrc.upper_bound)
        path[place] = replace(
            here, tau=replace(here.tau, upper_bound=most_tau), mrc=replace(here.mrc, upper_bound=most_mrc)
        )
    return tuple(path)


def _better_change(one: LargestChange, other: LargestChange) -> LargestChange:
    """The witness that does more, with the bound of the first."""
    return one if one.value >= other.value else replace(other, upper_bound=one.upper_bound)


def _improve_with_candidates(
    tau: LargestChange, mrc: LargestChange, candidates: Sequence[NDArray[np.float64]], sums: WeightedSums
) -> tuple[LargestChange, LargestChange]:
    """The same, or with the best of some weights as the witness."""
    if not candidates:
        return tau, mrc
    X = sums.to_floats()
    about = [ranking_distance(sums.before, average_ranks(weights @ X)) for weights in candidates]

    def best(known: LargestChange, measure: Measure, values: Sequence[float]) -> LargestChange:
        place = int(np.argmax(values))
        if values[place] <= known.value:
            return known
        weights = candidates[place]
        found = LargestChange.between(
            sums.before, sums.after(weights), measure, witness=sums.task_weights(weights), upper_bound=known.upper_bound
        )
        return _better_change(known, found)

    return best(tau, "tau", [one.tau for one in about]), best(mrc, "mrc", [one.mrc for one in about])
