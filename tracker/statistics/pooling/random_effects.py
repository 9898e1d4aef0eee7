"""Overall difference of several benchmarks by random effects, with equal weights.

The true difference varies between benchmarks with variance τ². Benchmarks have equal weights, which is the limit of
random effects for a large τ². The error of Hartung and Knapp is then s / √k, and the test statistic is Student's t.
Student's distribution holds for equal errors of the benchmarks; with unequal ones its level is at most nominal, and as
low as 0.6 % at 5 %. So t has its distribution under the known errors, see `unequal_variances`. With weights
1 / (v + τ²), v the squared standard error, levels are too high: weights depend on the differences through τ², and one
exact benchmark outweighs the others. That mean stands beside. `statsmodels.stats.meta_analysis.combine_effects` is not
used: it loads pandas, which would slow the start of the command. Tests compare the two.

Source: Hartung and Knapp 2001, "On tests of the overall treatment effect in meta-analysis with normally distributed
responses"; Ibragimov and Müller 2010, "t-statistic based correlation and heterogeneity robust inference"; Paule and
Mandel 1982 (τ²); Higgins, Thompson and Spiegelhalter 2009, section 3.2 (prediction interval).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.pooling.unequal_variances import agree_too_closely, pool_interval, pool_pvalues
from tracker.statistics.student_t import t_quantile

N_HALVINGS = 200
MIN_STUDIES = 3
"""Fewest benchmarks with an overall difference."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PooledDifference:
    """The mean of the true differences of benchmarks like these.

    Attributes:
        n_studies: benchmarks.
        mean: of their differences, with equal weights.
        stderr: of it, by Hartung and Knapp: s / √n_studies.
        low, high, pvalue: by the distribution of mean / stderr under the errors of the benchmarks. If the differences
            agree too closely, by Student's t with the error that follows from those of the benchmarks.
        tau: standard deviation of the true differences between benchmarks.
        weighted_mean: with ``weights``, which are proportional to 1 / (v + τ²).
        weighted_low, weighted_high: its interval by Hartung and Knapp, which can be too narrow.
        predicted_low, predicted_high: interval of the true difference on one more benchmark like these.
        weights: ``(n_studies,)`` share of each benchmark in ``weighted_mean``.
    """

    n_studies: int
    mean: float
    stderr: float
    low: float
    high: float
    pvalue: float
    tau: float
    weighted_mean: float
    weighted_low: float
    weighted_high: float
    predicted_low: float
    predicted_high: float
    weights: NDArray[np.float64]


def pool_differences(
    differences: NDArray[np.float64], errors: NDArray[np.float64], *, level: float = 0.95, largest: float = np.inf
) -> PooledDifference:
    """Pool the differences of several benchmarks.

    Args:
        differences: ``(k,)``, at least `MIN_STUDIES`, in one unit.
        errors: ``(k,)`` standard errors, positive.
        level: of the intervals.
        largest: possible difference, where intervals end; infinite if scores have no bounds.

    Raises:
        ValueError: there are too few differences, or an error is not positive.
    """
    k = len(differences)
    if k < MIN_STUDIES or not (errors > 0).all():
        raise ValueError(f"{k} differences; at least {MIN_STUDIES} with positive errors are needed")
    tau2 = between_variance(differences, errors**2)
    weights = 1 / (errors**2 + tau2)
    weights /= weights.sum()
    mean, weighted = float(differences.mean()), float(weights @ differences)
    stderr = float(np.std(differences, ddof=1)) / math.sqrt(k)
    reach = float(t_quantile(level, k - 1))
    weighted_reach = reach * math.sqrt(float(weights @ (differences - weighted) ** 2) / (k - 1))
    error = stderr
    if agree_too_closely(differences[None], errors[None] ** 2)[0]:
        error = math.sqrt(float((errors**2).sum())) / k
        weighted_reach = reach / math.sqrt(float((1 / errors**2).sum()))
    low, high = pool_interval(differences, errors**2, level=level)
    pvalue = float(pool_pvalues(differences[None], errors[None] ** 2)[0])
    spread = float(t_quantile(level, k - 2)) * math.sqrt(tau2 + error**2)
    ends = [low, high, weighted - weighted_reach, weighted + weighted_reach, mean - spread, mean + spread]
    low, high, weighted_low, weighted_high, predicted_low, predicted_high = np.clip(ends, -largest, largest).tolist()
    return PooledDifference(
        n_studies=k,
        mean=mean,
        stderr=stderr,
        low=low,
        high=high,
        pvalue=pvalue,
        tau=math.sqrt(tau2),
        weighted_mean=weighted,
        weighted_low=weighted_low,
        weighted_high=weighted_high,
        predicted_low=predicted_low,
        predicted_high=predicted_high,
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
