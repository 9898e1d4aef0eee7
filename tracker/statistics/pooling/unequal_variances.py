"""Student's t of values with unequal variances: its distribution, where the variances are known up to a common part.

Values are normal with mean μ and variances v + τ²: v is known, τ² is not. With k equal variances, mean / (s / √k) has
Student's distribution. With unequal ones large values of t are rarer, so Student's quantiles are too large (Bakirov and
Székely). Here t has its distribution under the variances v + τ², with the τ² that the hypothesis implies.

By chance, differences can agree far more closely than their errors allow. An interval from their spread would then be
absurdly narrow. In such tables, `EVEN` of those without variance between values, the error is that of the known
variances.

Source: Imhof 1961, "Computing the distribution of quadratic forms in normal variables"; Bakirov and Székely 2006,
"Student's t-test for Gaussian scale mixtures".
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, stdtr

from tracker.statistics.student_t import student_interval

EVEN = 5e-5
"""Share of the tables of values with equal means in which they count as agreeing too closely."""
N_NODES = 200
MAX_STEPS = 100
N_HALVINGS = 50

_nodes, _node_weights = np.polynomial.legendre.leggauss(N_NODES)
_COSINES = np.cos(np.pi / 4 * (_nodes + 1)) ** 2
"""Squared cosines of the nodes in (0, π / 2)."""


def student_pvalues(t: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of a t at least as large, to either side, for normal values with mean 0.

    t² ≥ c² means that a quadratic form with one positive eigenvalue p and negative ones −r p is positive. The contour
    integral of its characteristic function, bent around the branch cut, is (2 / π) ∫ Π (1 + r / cos² φ)^(−1/2) dφ over
    (0, π / 2).

    Args:
        t: ``(m,)``, not negative.
        variances: ``(m, k)`` of the values, positive.
    """
    k = variances.shape[1]
    scaled = variances / variances.max(axis=1, keepdims=True)
    root = np.sqrt(scaled)
    mean = np.full((k, k), 1 / k)
    form = (k - 1) * mean - t[:, None, None] ** 2 * (np.eye(k) - mean)
    negative = np.maximum(-np.linalg.eigvalsh(root[:, :, None] * form * root[:, None, :])[:, :-1], 0.0)
    tails = np.ones(len(t))
    for row in np.flatnonzero((t > 0) & (negative > 0).all(axis=1)):
        # The positive eigenvalue from the determinant: a large t would leave it no digits.
        logs = np.log(negative[row])
        positive = np.log(scaled[row]).sum() + math.log(k - 1) + 2 * (k - 1) * math.log(t[row]) - logs.sum()
        ratios = np.exp(logs - positive)
        log_values = 0.5 * (np.log(_COSINES)[:, None] - np.log(_COSINES[:, None] + ratios)).sum(axis=1)
        tails[row] = 0.5 * _node_weights @ np.exp(log_values)
    return np.minimum(tails, 1.0)


def hypothesized_variances(residuals: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return τ² with Σ residual² / (v + τ²) = k − 1, or 0.

    Residuals are those from the hypothesis, not from the estimated mean. So there are k degrees of freedom; k − 1 makes
    τ² a little larger, which keeps the level of a test where τ² happens to be estimated as 0.

    Args:
        residuals: ``(m, k)``.
        variances: ``(m, k)`` v, positive.
    """
    squares, goal = residuals**2, residuals.shape[1] - 1
    tau2 = np.zeros(len(residuals))
    for _ in range(MAX_STEPS):
        total = variances + tau2[:, None]
        excess = (squares / total).sum(axis=1) / goal
        # Newton's steps on the reciprocal rise to the solution and never pass it.
        step = np.where(excess > 1, excess * (excess - 1) * goal / (squares / total**2).sum(axis=1).clip(1e-300), 0.0)
        tau2 = tau2 + step
        if (step <= 1e-12 * tau2).all():
            break
    return tau2


def agree_too_closely(values: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether values differ less than in all but a share `EVEN` of tables with equal means (Cochran's Q).

    Args:
        values: ``(m, k)``.
        variances: ``(m, k)`` known, positive.
    """
    weights = 1 / variances
    means = (weights * values).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    return np.asarray((weights * (values - means) ** 2).sum(axis=1) < chdtri(values.shape[1] - 1, 1 - EVEN))


def pool_pvalues(
    values: NDArray[np.float64], variances: NDArray[np.float64], hypothesis: float = 0.0
) -> NDArray[np.float64]:
    """Return two-sided p-values that the mean of the true values is ``hypothesis``; all values have equal weights.

    Args:
        values: ``(m, k)``.
        variances: ``(m, k)`` squared errors of the values, positive.
        hypothesis: the mean.
    """
    k = values.shape[1]
    residuals = values - hypothesis
    even, distances = agree_too_closely(values, variances), np.abs(residuals.mean(axis=1))
    known = np.sqrt(variances.sum(axis=1)) / k
    t = distances / np.where(even, known, values.std(axis=1, ddof=1) / math.sqrt(k))
    pvalues = student_pvalues(t, variances + hypothesized_variances(residuals, variances)[:, None])
    return np.where(even, 2 * stdtr(k - 1, -t), pvalues)


def pool_interval(values: NDArray[np.float64], variances: NDArray[np.float64], *, level: float) -> tuple[float, float]:
    """Return the ends of the interval of hypotheses that `pool_pvalues` does not reject.

    Args:
        values: ``(k,)``.
        variances: ``(k,)`` positive.
        level: in (0, 1).
    """
    if agree_too_closely(values[None], variances[None])[0]:
        known = math.sqrt(float(variances.sum())) / len(values)
        low, high = student_interval(float(values.mean()), known, len(values) - 1, level)
        return float(low), float(high)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))

    def is_rejected(hypothesis: float) -> bool:
        return float(pool_pvalues(values[None], variances[None], hypothesis)[0]) <= 1 - level

    return _find_end(is_rejected, mean, -error), _find_end(is_rejected, mean, error)


def _find_end(is_rejected: Callable[[float], bool], mean: float, step: float) -> float:
    """Return where rejection begins, from the mean in the direction of ``step``."""
    inside, outside = 0.0, 1.0
    while not is_rejected(mean + outside * step):
        inside, outside = outside, 2 * outside
    for _ in range(N_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if is_rejected(mean + middle * step) else (middle, outside)
    return mean + (inside + outside) / 2 * step
