"""Mean, percentiles, variance and KS distance of a distribution given as weights of ascending values.

Weights are sums of floats, so nothing is compared without rounding here: statistics that are close
enough count as ties, which can only make a p-value larger.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.distributions import PERCENTILES, STATISTICS, KsDistances
from tracker.statistics.jit import jit

STATISTIC_TOLERANCE = 1e-10
"""Statistics closer than this are ties, as a share of their terms: the mean of 1 - similarity for means
and percentiles, its square for variances. Above `TIE_TOLERANCE`, as they are quotients of long sums: rounding
then never makes a p-value smaller, and tables whose similarities are all near 1 remain distinct."""
LAST_DIGIT = 1e-15
"""What rounding does to a similarity."""
REACHED = 1e-10
"""A share of the weight this little below a percentile has reached it: what rounding does to sums of weights."""


def compute_tie_tolerances(observed: NDArray[np.float64], null: NDArray[np.float64]) -> NDArray[np.float64]:
    """How close each of `STATISTICS` must be to be a tie; the same whichever table is called the observed one."""
    means = np.append(null[:, 0], observed[0])
    spread = float(1 - means[np.isfinite(means)].min(initial=1.0))
    near = STATISTIC_TOLERANCE * spread + LAST_DIGIT
    return np.array([near, near, near, near * spread])


def signs_within(difference: NDArray[np.float64], near: NDArray[np.float64] | float) -> NDArray[np.int8]:
    """Signs of differences; 0 where they are closer than ``near``, and where there is none (NaN)."""
    difference = np.nan_to_num(difference)
    return np.where(np.abs(difference) < near, 0, np.sign(difference)).astype(np.int8)


@jit
def _describe(masses: Any, values: Any, statistics: Any) -> None:
    for b in range(masses.shape[0]):
        total = first = 0.0
        for i in range(values.size):
            total += masses[b, i]
            first += masses[b, i] * (1.0 - values[i])
        if total == 0.0:
            statistics[b, :] = np.nan
            continue
        mean = 1.0 - first / total
        second = 0.0
        for i in range(values.size):
            second += masses[b, i] * (values[i] - mean) ** 2
        statistics[b, 0] = mean
        statistics[b, 3] = second / total
        for p in range(2):
            numerator, denominator = PERCENTILES[p]
            share = (numerator / denominator - REACHED) * total
            i = 0
            passed = masses[b, 0]
            while passed < share:
                i += 1
                passed += masses[b, i]
            statistics[b, 1 + p] = values[i]


def describe_masses(masses: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`STATISTICS` of each row of ``masses``.

    Args:
        masses: ``(n, m)`` float64, not negative.
        values: ``(m,)`` float64, ascending, at most 1.

    Returns:
        ``(n, 4)`` float64: weighted mean, 75th and 95th percentile (the smallest value at or below which lies that
        share of the weight) and variance (divided by the weight); NaN where a row weighs nothing.
    """
    statistics = np.empty((masses.shape[0], len(STATISTICS)))
    _describe(np.ascontiguousarray(masses), values, statistics)
    return statistics


@jit
def _distances(masses: Any, pool: Any, result: Any) -> None:
    everything = pool.sum()
    for b in range(masses.shape[0]):
        total = masses[b].sum()
        if total == 0.0:
            result[b] = np.nan
            continue
        passed = all_passed = largest = 0.0
        for i in range(pool.size):
            passed += masses[b, i]
            all_passed += pool[i]
            largest = max(largest, abs(passed / total - all_passed / everything))
        result[b] = largest


def compare_weighted_distances(
    observed: NDArray[np.float64], masses: NDArray[np.float64], pool: NDArray[np.float64]
) -> KsDistances:
    """The observed KS distance from the pool, each draw's, and the signs of differences past `STATISTIC_TOLERANCE`."""
    distance, null = np.empty(1), np.empty(masses.shape[0])
    _distances(observed[None, :], pool, distance)
    _distances(np.ascontiguousarray(masses), pool, null)
    return float(distance[0]), null, signs_within(null - distance[0], STATISTIC_TOLERANCE)
