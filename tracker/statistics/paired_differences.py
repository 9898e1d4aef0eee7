"""Mean differences between two models on the same prompts, with standard errors and p-values.

Source: Miller 2024, "Adding Error Bars to Evals", sections 2.2 and 3.2; Cameron and Miller 2015, section II (CR1); Bell
and McCaffrey 2002, "Bias reduction in standard errors for linear regression with multi-stage samples" (CR2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping
from tracker.statistics.intervals.design_variance import design_variance
from tracker.statistics.ranking import TIE_TOLERANCE
from tracker.statistics.standard_errors import Correction, cluster_correction
from tracker.statistics.student_t import student_interval, t_pvalues


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanDifference:
    """A mean difference with its error.

    Attributes:
        mean: in the unit of the scores; exactly 0 if only rounding is left.
        stderr: NaN below two units; exactly 0 if all units agree.
        n_units: independent prompts or clusters.
        degrees: degrees of freedom; 0 below two units.
        low, high: mean ± Student's t with these degrees, within the largest possible difference. If all units agree,
            see `agreeing_interval`. NaN without an error.
        pvalue: two-sided; see `t_pvalues`.
        largest: possible difference; infinite without bounds.
    """

    mean: float
    stderr: float
    n_units: int
    degrees: float
    low: float
    high: float
    pvalue: float
    largest: float = np.inf

    def scaled(self, exponent: int) -> MeanDifference:
        """Return the numbers in the unit of scores times 2**exponent; infinite beyond float64."""
        with np.errstate(over="ignore"):
            mean, error, low, high, largest = (
                float(np.ldexp(value, exponent))
                for value in (self.mean, self.stderr, self.low, self.high, self.largest)
            )
        return replace(self, mean=mean, stderr=error, low=low, high=high, largest=largest)


def estimate_mean(
    differences: NDArray[np.float64], *, scale: float, level: float = 0.95, largest: float = np.inf
) -> MeanDifference:
    """Estimate the mean with the error s / √n, assuming independent prompts.

    Args:
        differences: ``(n,)`` finite, at least one.
        scale: largest absolute score; an error below `TIE_TOLERANCE` of it is 0.
        level: of the interval.
        largest: possible difference, where the interval ends; infinite if scores have no bounds.
    """
    n, mean = len(differences), float(differences.mean())
    error = float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return _estimate(mean, error, n, n - 1, scale, level, largest)


def estimate_clustered_mean(
    differences: NDArray[np.float64],
    groups: Grouping,
    *,
    scale: float,
    level: float = 0.95,
    correction: Correction = "CR1",
    largest: float = np.inf,
) -> MeanDifference:
    """Estimate the mean with a clustered error, from S, the sum of deviations in each cluster.

    CR1 is √(G/(G − 1) Σ S²) / n with G − 1 degrees of freedom, for clusters of similar size. CR2 is √(Σ S² / (1 − w)) /
    n with w the cluster's share of the prompts, and Satterthwaite's degrees; for equal w it is the same. With strata
    the error is that of `design_variance`.

    Args:
        differences: ``(n,)`` finite, at least one.
        groups: their clusters and strata; below two clusters there is no error.
        scale: largest absolute score; an error below `TIE_TOLERANCE` of it is 0.
        level: of the interval.
        correction: small-sample correction for few clusters.
        largest: possible difference, where the interval ends; infinite if scores have no bounds.
    """
    n, G, mean = len(differences), groups.n_groups, float(differences.mean())
    error = np.nan
    if groups.n_strata > 1:
        variance = design_variance(differences[:, None], groups, np.full(n, 1 / n))
        return _estimate(mean, float(np.sqrt(variance[0])), G, groups.degrees, scale, level, largest)
    if G > 1:
        sums = np.bincount(groups.codes, weights=differences - mean, minlength=G)
        factor = cluster_correction(groups.sizes, G, n, correction)
        error = float(np.sqrt((factor * sums**2).sum()) / n)
    return _estimate(mean, error, G, G - 1 if correction == "CR1" else groups.degrees, scale, level, largest)


def _estimate(
    mean: float, error: float, n_units: int, degrees: float, scale: float, level: float, largest: float
) -> MeanDifference:
    if error <= TIE_TOLERANCE * scale:
        error = 0.0
    if abs(mean) <= TIE_TOLERANCE * scale:
        mean = 0.0
    if error == 0:
        low, high = agreeing_interval(mean, n_units, level, largest)
    else:
        low, high = student_interval(mean, error, degrees, level)
    return MeanDifference(
        mean=mean,
        stderr=error,
        n_units=n_units,
        degrees=float(degrees),
        low=float(np.maximum(low, -largest)),
        high=float(np.minimum(high, largest)),
        pvalue=float(t_pvalues(mean, error, n_units, scale, degrees)),
        largest=largest,
    )


def agreeing_interval(mean: float, n_units: int, level: float, largest: float) -> tuple[float, float]:
    """Return the interval of the mean where all units have the same difference.

    At most a share 1 − (1 − level)**(1 / n_units) of all units has another one: with a larger share, so many units
    would agree with a probability below 1 − level. The others can have any difference.

    Args:
        mean: the common difference.
        n_units: prompts or clusters.
        level: of the interval.
        largest: possible difference; if it is infinite there is no interval (NaN).
    """
    if not np.isfinite(largest):
        return np.nan, np.nan
    share = 1 - (1 - level) ** (1 / n_units)
    return mean - share * (largest + mean), mean + share * (largest - mean)


def unpaired_stderr(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the error of the difference if the two had different prompts, √(se_a² + se_b²); NaN below two prompts.

    On the same prompts it gives no test: how often it is exceeded depends on the correlation of the two models.

    Args:
        a, b: finite scores.
    """
    if min(len(a), len(b)) < 2:
        return np.nan
    error = float(np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))
    return 0.0 if error <= TIE_TOLERANCE * max(float(np.abs(a).max()), float(np.abs(b).max())) else error
