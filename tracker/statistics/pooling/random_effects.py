"""Overall difference of several benchmarks by random effects.

The true difference varies between benchmarks with variance τ². A benchmark has the weight 1 / (v + τ²), v its squared
standard error. The error of Hartung and Knapp finds differences in up to 9 % of null tables if the errors of the
benchmarks differ greatly. The test is therefore by CR2, each benchmark a cluster, with Satterthwaite's degrees of
freedom, which keeps its level; Hartung and Knapp's interval stands beside it.
`statsmodels.stats.meta_analysis.combine_effects` is not used: it loads pandas, which would slow the start of the
command. Tests compare the two.

Source: Paule and Mandel 1982 (τ²); Hartung and Knapp 2001, "On tests of the overall treatment effect in meta-analysis
with normally distributed responses"; Tipton 2015, "Small sample adjustments for robust variance estimation with
meta-regression" (CR2); Higgins, Thompson and Spiegelhalter 2009, section 3.2 (prediction interval).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.student_t import t_pvalues, t_quantile

N_HALVINGS = 200
MIN_STUDIES = 3
"""Fewest benchmarks with an overall difference."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PooledDifference:
    """The mean of the true differences of benchmarks like these.

    Attributes:
        n_studies: benchmarks.
        mean: weighted by 1 / (v + τ²).
        stderr, degrees, low, high, pvalue: of it, by CR2 and Student's t.
        knapp: its interval by Hartung and Knapp, with n_studies − 1 degrees of freedom.
        tau: standard deviation of the true differences between benchmarks.
        predicted_low, predicted_high: interval of the true difference on one more benchmark like these.
        weights: ``(n_studies,)`` share of each benchmark; they add up to 1.
    """

    n_studies: int
    mean: float
    stderr: float
    degrees: float
    low: float
    high: float
    pvalue: float
    knapp: tuple[float, float]
    tau: float
    predicted_low: float
    predicted_high: float
    weights: NDArray[np.float64]


def pool_differences(
    differences: NDArray[np.float64], errors: NDArray[np.float64], *, level: float = 0.95
) -> PooledDifference:
    """Pool the differences of several benchmarks.

    Args:
        differences: ``(k,)``, at least `MIN_STUDIES`, in one unit.
        errors: ``(k,)`` standard errors, positive.
        level: of the intervals.

    Raises:
        ValueError: there are too few differences, or an error is not positive.
    """
    k = len(differences)
    if k < MIN_STUDIES or not (errors > 0).all():
        raise ValueError(f"{k} differences; at least {MIN_STUDIES} with positive errors are needed")
    variances = errors**2
    tau2 = between_variance(differences, variances)
    weights = 1 / (variances + tau2)
    weights /= weights.sum()
    mean = float(weights @ differences)
    deviations = (differences - mean) ** 2
    parts = weights**2 / (1 - weights)
    stderr = math.sqrt(float(parts @ deviations))
    degrees = float(1 / ((weights**2).sum() + parts.sum() ** 2 - (parts**2).sum()))
    reach = float(t_quantile(level, degrees)) * stderr
    knapp = float(t_quantile(level, k - 1)) * math.sqrt(float(weights @ deviations) / (k - 1))
    spread = float(t_quantile(level, k - 2)) * math.sqrt(tau2 + stderr**2)
    return PooledDifference(
        n_studies=k,
        mean=mean,
        stderr=stderr,
        degrees=degrees,
        low=mean - reach,
        high=mean + reach,
        pvalue=float(t_pvalues(mean, stderr, k, float(np.abs(differences).max()), degrees)),
        knapp=(mean - knapp, mean + knapp),
        tau=math.sqrt(tau2),
        predicted_low=mean - spread,
        predicted_high=mean + spread,
        weights=weights,
    )


def between_variance(differences: NDArray[np.float64], variances: NDArray[np.float64]) -> float:
    """Return τ² by Paule and Mandel: the weighted sum of squares equals its k − 1 degrees of freedom, or τ² is 0.

    Args:
        differences: ``(k,)``.
        variances: ``(k,)`` positive.
    """

    def excess(tau2: float) -> float:
        weights = 1 / (variances + tau2)
        mean = weights @ differences / weights.sum()
        return float(weights @ (differences - mean) ** 2) - (len(differences) - 1)

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, float(np.ptp(differences)) ** 2
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2
