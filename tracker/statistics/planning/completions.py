"""How large standard errors and variances can be, whatever the missing scores are.

The root of a sample variance, plain, clustered or stratified, is a seminorm of the scores: the error of a sum is at
most the sum of the errors. So the error of any completion is at most that of the completion with the middle of the
bounds, plus that of the deviations from it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping
from tracker.statistics.pairwise_differences import cluster_factors, stratum_factors
from tracker.statistics.standard_errors import Correction, cluster_correction

Vector = NDArray[np.float64]


def largest_stderr(
    reach: NDArray[np.float64], groups: Grouping | None = None, correction: Correction = "CR1"
) -> Vector:
    """Return a bound of the standard error of the mean of each column of deviations, ``(k,)``.

    Args:
        reach: ``(n, k)`` largest absolute deviations, not negative; n at least 2.
        groups: clusters and strata of the rows; None for independent rows.
        correction: as for `compare_all_pairs`.
    """
    n, squares = len(reach), (reach**2).sum(axis=0)
    if groups is None:
        return np.asarray(np.sqrt(squares / (n * (n - 1))))
    totals = np.zeros((groups.n_groups, reach.shape[1]))
    np.add.at(totals, groups.codes, reach)
    strata = groups.strata_of_groups
    whole, sizes = np.zeros((groups.n_strata, reach.shape[1])), np.bincount(strata, weights=groups.sizes)
    np.add.at(whole, strata, totals)
    sums = _largest_sums(totals, groups.sizes / sizes[strata], whole[strata])
    if groups.n_strata > 1:
        factor, prior = stratum_factors(groups)
        overall = squares * (n / (n - 1))
        if groups.n_groups < n:
            overall = cluster_factors(groups) @ _largest_sums(totals, groups.sizes / n, reach.sum(axis=0)) ** 2
        return np.asarray(np.sqrt(factor @ sums**2 + prior * overall) / n)
    factor = np.broadcast_to(cluster_correction(groups.sizes, groups.n_groups, n, correction), len(sums))
    return np.asarray(np.sqrt(factor @ sums**2) / n)


def _largest_sums(totals: NDArray[np.float64], share: Vector, whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound each cluster's sum of deviations from the mean of its stratum, or of all rows, by the sums of both."""
    part = share[:, None]
    return np.asarray(totals * (1 - part) + part * (whole - totals))


def largest_trial_variance(n_trials: int, bounds: tuple[float, float]) -> float:
    """Return the largest sample variance of the trials of one prompt: half of them at either bound.

    Args:
        n_trials: of the prompt, at least 2.
        bounds: smallest and largest score.
    """
    half = n_trials // 2
    return (bounds[1] - bounds[0]) ** 2 * half * (n_trials - half) / (n_trials * (n_trials - 1))


def variance_range(values: Vector, n_missing: int, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest and the largest sample variance of values of which some are missing.

    The smallest has every missing value at the mean of the others. The largest has each at one of the bounds, so that
    it is one of ``n_missing`` + 1 completions.

    Args:
        values: ``(n,)`` within the bounds, at least one.
        n_missing: missing values; at least one if n is 1.
        bounds: smallest and largest value.
    """
    n, low, high = len(values) + n_missing, min(bounds), max(bounds)
    center = float(np.clip(values.mean(), low, high))
    deviations = values - center
    at_high = np.arange(n_missing + 1)
    ends = low - center, high - center
    total = deviations.sum() + ends[0] * (n_missing - at_high) + ends[1] * at_high
    squares = (deviations**2).sum() + ends[0] ** 2 * (n_missing - at_high) + ends[1] ** 2 * at_high
    largest = float(np.maximum(squares - total**2 / n, 0.0).max() / (n - 1))
    return float((deviations**2).sum() / (n - 1)), largest
