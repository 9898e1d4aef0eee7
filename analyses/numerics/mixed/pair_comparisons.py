"""Differences of all pairs of models on other tasks, with each pair's own spread over tasks.

The mixed model has one variance of model × task. Where models differ in it, errors from that variance are too small for
some pairs. Here a pair's difference is estimated in each task, without shrinkage; the spread of these estimates is its
error (CR2, degrees of freedom by Satterthwaite). The mixed model only weighs the tasks. From `MIN_POOLED` degrees of
freedom on, variances of pairs are pooled as far as they agree, which adds degrees of freedom.

Source: Bell & McCaffrey 2002, "Bias reduction in standard errors for linear regression with multi-stage samples"; Smyth
2004, "Linear models and empirical Bayes methods for assessing differential expression in microarray experiments",
section 6, for the pooling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from analyses.numerics.mixed.elimination import MODEL_TASK, solve_tasks
from analyses.numerics.mixed.fit import MixedFit
from tracker.statistics.ranking import TIE_TOLERANCE
from tracker.statistics.student_t import t_pvalues

Square = NDArray[np.float64]

MIN_POOLED = 5
"""Least degrees of freedom of a variance that is pooled: with fewer, differences between variances do not show."""

LEAST_EXCESS = 1e-6
"""Least variance of the logarithms beyond chance; below it all pairs have one variance."""
MAX_PRIOR = 1e9
"""Degrees of freedom of a variance that all pairs share."""
ONE_TASK = 1e-9
"""With a sum of squared shares this close to 1, one task has all the weight."""
TINY = 1e-300


@dataclass(frozen=True, kw_only=True, slots=True)
class PairComparisons:
    """Differences of all pairs on other tasks; NaN without two tasks in common.

    Attributes:
        n_tasks: ``(k, k)`` tasks with scores of both.
        difference: ``(k, k)`` row minus column, in units of ``scale``.
        variance: ``(k, k)`` of the difference, in squared units of ``scale``.
        degrees: ``(k, k)`` degrees of freedom of the variance; 0 without one.
        size: largest level of a model on a task, in units of ``scale``.
    """

    n_tasks: NDArray[np.int64]
    difference: Square
    variance: Square
    degrees: Square
    size: float

    @property
    def pvalues(self) -> Square:
        """``(k, k)`` two-sided p-values by Student's t; 1 without a variance."""
        errors = np.sqrt(self.variance)
        return np.nan_to_num(t_pvalues(self.difference, errors, self.n_tasks, self.size, self.degrees), nan=1.0)


def compare_on_other_tasks(fit: MixedFit) -> PairComparisons:
    """Compare every two models on other tasks like these.

    Args:
        fit: the fitted model, with two tasks or more; logistic scores enter by their working response.
    """
    r = fit.equations.w * fit.solution.eta + fit.weighted_residual
    levels, covariances = solve_tasks(fit.equations, r, fit.solution.phi[fit.design.n_models :])
    between = 2 * float(fit.equations.sd[MODEL_TASK] ** 2)
    weights = [_weigh_pairs(level, cov, between) for level, cov in zip(levels, covariances, strict=True)]
    total = np.sum(weights, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        products = (weight * _differences(level) for weight, level in zip(weights, levels, strict=True))
        mean = sum(products, np.zeros_like(total)) / total
        variance, squares, parts, parts_squared = (np.zeros_like(total) for _ in range(4))
        for weight, level in zip(weights, levels, strict=True):
            share = weight / total
            part = share**2 / (1 - share)
            variance += part * (_differences(level) - mean) ** 2
            squares, parts, parts_squared = squares + share**2, parts + part, parts_squared + part**2
        degrees = 1 / (squares + parts**2 - parts_squared)
    has_two = np.nan_to_num(squares, nan=1.0) < 1 - ONE_TASK
    np.fill_diagonal(has_two, False)
    size = float(np.nanmax(np.abs(levels)))
    variance = np.where(has_two, np.where(np.sqrt(variance) > TIE_TOLERANCE * size, variance, 0.0), np.nan)
    degrees = np.where(has_two, degrees, 0.0)
    max_degrees = (levels.shape[1] - 1) * (len(levels) - 1)
    pooled, degrees = pool_variances(variance * total, degrees, max_degrees)
    return PairComparisons(
        n_tasks=np.sum([weight > 0 for weight in weights], axis=0),
        difference=np.where(has_two, mean, np.nan),
        variance=np.fmax(variance, pooled / total),
        degrees=degrees,
        size=size,
    )


def _weigh_pairs(level: NDArray[np.float64], cov: Square, between: float) -> Square:
    """Return the weight of one task in the difference of each pair; 0 where a model has no score."""
    sampling = np.diagonal(cov)[:, None] + np.diagonal(cov) - 2 * cov
    known = ~np.isnan(level)
    return np.where(known[:, None] & known, 1 / np.maximum(between + sampling, TINY), 0.0)


def _differences(level: NDArray[np.float64]) -> Square:
    """Return row minus column; 0 where a model has no score."""
    return np.nan_to_num(level[:, None] - level)


def pool_variances(variance: Square, degrees: Square, max_degrees: float) -> tuple[Square, Square]:
    """Return variances shrunk towards a common value, and their degrees of freedom.

    Variances are drawn from a scaled inverse χ² distribution, whose parameters come from the mean and the variance of
    the logarithms: the more they differ beyond chance, the less they are shrunk. Each degree of freedom is a task, so
    no variance has more than ``max_degrees``.

    Args:
        variance: ``(k, k)`` symmetric; NaN without one.
        degrees: ``(k, k)`` degrees of freedom.
        max_degrees: of the pooled variance.

    Returns:
        Unchanged where degrees are below `MIN_POOLED`.
    """
    i, j = np.triu_indices(len(variance), 1)
    is_pooled = degrees >= MIN_POOLED
    chosen = is_pooled[i, j] & (variance[i, j] > 0)
    if chosen.sum() < 2:
        return variance, degrees
    half, values = degrees[i, j][chosen] / 2, variance[i, j][chosen]
    logs = np.log(values) - digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    prior_degrees, prior = MAX_PRIOR, float(np.exp(logs.mean()))
    if excess > LEAST_EXCESS:
        prior_degrees = 2 * _invert_trigamma(excess)
        prior *= float(np.exp(digamma(prior_degrees / 2))) / (prior_degrees / 2)
    pooled = (prior_degrees * prior + degrees * variance) / (prior_degrees + degrees)
    limited = np.maximum(np.minimum(prior_degrees + degrees, max_degrees), degrees)
    return np.where(is_pooled, pooled, variance), np.where(is_pooled, limited, degrees)


def _invert_trigamma(value: float) -> float:
    """Return x with trigamma(x) = ``value`` > 0, by Newton's method on 1 / trigamma, which is convex (Smyth 2004)."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) <= 1e-10 * x:
            break
    return x
