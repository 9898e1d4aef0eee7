"""Mean, percentiles, variance and KS distance of a distribution given as counts of ascending values."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_sqrt import ExactSqrtSum
from analyses.numerics.similarity.lattices import Lattice
from tracker.statistics.jit import jit
from tracker.statistics.ranking import TIE_TOLERANCE

STATISTICS = ("mean", "p75", "p95", "variance")
ATOMIC = ("p75", "p95")
"""Those that take the value of one or two pairs, and so often the same one in every table."""
PERCENTILES = ((3, 4), (19, 20))
"""The two percentiles as fractions."""

COMPARISON_TOLERANCE = 1e-9
"""Closer than this, two statistics are compared without rounding. Floating sums of up to 2.4e6 terms in
[0, 1] are good to 3e-10, so nothing farther apart can be a tie or in the wrong order."""


KsDistances = tuple[float, NDArray[np.float64], NDArray[np.int8]]
"""The observed table's distance from the pool, those of drawn tables, and the signs of the differences."""


@jit
def describe(counts: Any, values: Any, statistics: Any, ranks: Any) -> None:
    """Describe each row of ``counts``.

    Args:
        counts: ``(n, m)`` int64.
        values: ``(m,)`` float64, ascending.
        statistics: ``(n, 4)`` float64, filled with mean, 75th and 95th percentile (linear between the two
            nearest ranks) and variance (divided by the number of pairs); NaN where a row counts nothing.
        ranks: ``(n, 2, 3)`` int64, filled for each percentile with the positions of the two values it lies
            between and how far, in quarters or twentieths: equal ranks mean equal percentiles.
    """
    for b in range(counts.shape[0]):
        total = 0
        for i in range(values.size):
            total += counts[b, i]
        if total == 0:
            statistics[b, :] = np.nan
            ranks[b, :, :] = -1
            continue
        first = 0.0
        for i in range(values.size):
            first += counts[b, i] * values[i]
        mean = first / total
        second = 0.0
        for i in range(values.size):
            second += counts[b, i] * (values[i] - mean) ** 2
        statistics[b, 0] = mean
        statistics[b, 3] = second / total
        for p in range(2):
            numerator, denominator = PERCENTILES[p]
            place = (total - 1) * numerator
            low, part = place // denominator, place % denominator
            i = -1
            passed = 0
            while passed <= low:
                i += 1
                passed += counts[b, i]
            j = i
            while part > 0 and passed <= low + 1:
                j += 1
                passed += counts[b, j]
            if i == j:
                part = 0
            ranks[b, p, 0], ranks[b, p, 1], ranks[b, p, 2] = i, j, part
            statistics[b, 1 + p] = values[i] + (values[j] - values[i]) * part / denominator


def exact_statistic(lattice: Lattice, counts: NDArray[np.int64], statistic: int) -> ExactSqrtSum:
    """One of `STATISTICS` without rounding; ``counts`` is ``(m,)`` and counts something."""
    total = int(counts.sum())
    if statistic in (1, 2):
        _, ranks = describe_counts(counts[None, :], lattice.values)
        i, j, part = (int(x) for x in ranks[0, statistic - 1])
        weight = Fraction(part, PERCENTILES[statistic - 1][1])
        return lattice.exact_value(i) * (1 - weight) + lattice.exact_value(j) * weight
    first, second = ExactSqrtSum({}), Fraction(0)
    for at in np.flatnonzero(counts):
        value, number = lattice.exact_value(int(at)), int(counts[at])
        first = first + value * number
        if statistic == 3:
            second += (value * value).terms.get(1, Fraction(0)) * number
    mean = first * Fraction(1, total)
    return mean if statistic == 0 else ExactSqrtSum.from_number(second / total) - mean * mean


def describe_counts(
    counts: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The results of `describe`."""
    statistics = np.empty((counts.shape[0], len(STATISTICS)))
    ranks = np.empty((counts.shape[0], len(PERCENTILES), 3), np.int64)
    describe(counts, values, statistics, ranks)
    return statistics, ranks


def decide_signs(
    near: NDArray[np.bool_], difference: NDArray[np.float64], exact: Callable[[int], int]
) -> NDArray[np.int8]:
    """Signs of differences, from ``exact(row)`` where they are near; NaN has sign 0."""
    signs = np.where(np.isnan(difference), 0.0, np.sign(difference)).astype(np.int8)
    for row in np.flatnonzero(near):
        signs[row] = exact(int(row))
    return signs


def compare_exactly(
    lattice: Lattice, observed: NDArray[np.int64], counts: NDArray[np.int64], known_equal: frozenset[str] = frozenset()
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Statistics of each row of ``counts``, and the signs of their differences from the observed ones.

    Far differences are decided by floats, near ones by integers, so ties are ties and nothing else is.

    Args:
        lattice: of the similarity.
        observed: ``(m,)`` counts of the observed table.
        counts: ``(n, m)`` counts of drawn tables.
        known_equal: statistics that are equal by proof; they are not compared.

    Returns:
        ``(n, 4)`` float64 statistics and ``(n, 4)`` int8 signs.
    """
    observed_statistics, observed_ranks = describe_counts(observed[None, :], lattice.values)
    statistics, ranks = describe_counts(counts, lattice.values)
    signs = np.zeros(statistics.shape, np.int8)
    same = (counts == observed).all(axis=1)
    for s, name in enumerate(STATISTICS):
        if name in known_equal:
            continue
        difference = statistics[:, s] - observed_statistics[0, s]
        equal = same.copy()
        if s in (1, 2):
            equal |= (ranks[:, s - 1] == observed_ranks[0, s - 1]).all(axis=1)
        difference[equal] = 0.0
        reference = cache(lambda s=s: exact_statistic(lattice, observed, s))

        def exact(row: int, s: int = s, reference: Callable[[], ExactSqrtSum] = reference) -> int:
            return (exact_statistic(lattice, counts[row], s) - reference()).sign()

        signs[:, s] = decide_signs((np.abs(difference) < COMPARISON_TOLERANCE) & ~equal, difference, exact)
    return statistics, signs


@jit
def distances(counts: Any, pool: Any, result: Any) -> None:
    """KS distance of each row of ``counts`` from ``pool``; NaN for a row that counts nothing.

    Args:
        counts: ``(n, m)`` int64.
        pool: ``(m,)`` int64, counts of all tables together.
        result: ``(n,)`` float64, filled.
    """
    everything = 0
    for i in range(pool.size):
        everything += pool[i]
    for b in range(counts.shape[0]):
        total = 0
        for i in range(pool.size):
            total += counts[b, i]
        if total == 0:
            result[b] = np.nan
            continue
        passed = 0
        all_passed = 0
        largest = 0.0
        for i in range(pool.size):
            passed += counts[b, i]
            all_passed += pool[i]
            largest = max(largest, abs(passed / total - all_passed / everything))
        result[b] = largest


def exact_distance(counts: NDArray[np.int64], pool: NDArray[np.int64]) -> Fraction:
    """KS distance of one row of counts without rounding."""
    passed, all_passed = np.cumsum(counts), np.cumsum(pool)
    total, everything = int(passed[-1]), int(all_passed[-1])
    gap = np.abs(passed / total - all_passed / everything)
    largest = max(
        abs(int(passed[i]) * everything - int(all_passed[i]) * total)
        for i in np.flatnonzero(gap > gap.max() - TIE_TOLERANCE)
    )
    return Fraction(largest, total * everything)


def compare_distances(observed: NDArray[np.int64], counts: NDArray[np.int64], pool: NDArray[np.int64]) -> KsDistances:
    """The observed KS distance from the pool, each draw's, and the signs of the exact differences."""
    distance, null = np.empty(1), np.empty(counts.shape[0])
    distances(observed[None, :], pool, distance)
    distances(counts, pool, null)
    difference = null - distance[0]
    same = (counts == observed).all(axis=1)
    difference[same] = 0.0
    reference = cache(lambda: exact_distance(observed, pool))

    def exact(row: int) -> int:
        drawn = exact_distance(counts[row], pool)
        return (drawn > reference()) - (drawn < reference())

    return (
        float(distance[0]),
        null,
        decide_signs((np.abs(difference) < COMPARISON_TOLERANCE) & ~same, difference, exact),
    )


def join_distances(parts: list[KsDistances]) -> KsDistances:
    """The distances of several blocks of draws as one."""
    return parts[0][0], np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])
