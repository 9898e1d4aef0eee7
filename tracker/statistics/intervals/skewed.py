"""Intervals of the mean of independent scores without bounds: bootstrap-t.

The scores are drawn again with replacement, and the mean of the drawn scores is studentized with their own error. With
few or many scores, or where too many draws have equal or nearly equal scores, Hall's transformation takes the place of
bootstrap-t: both correct for skewness to the same order.

Source: Efron 1981, "Nonparametric standard errors and confidence intervals" (bootstrap-t); Hall 1992, "On the removal
of skewness by transformation" (a cubic of Student's t whose skewness vanishes).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.ranking import TIE_TOLERANCE
from tracker.statistics.student_t import t_quantile

N_DRAWS = 999
SEED = 0
"""Of the draws, so that the same scores have the same interval."""
MIN_DRAWN, MAX_DRAWN = 10, 2000
"""Below and above these numbers of scores, no scores are drawn."""
MAX_RATIO = 4.0
"""Quantiles of drawn scores beyond so many times Hall's stem from draws of nearly equal scores."""
MAX_COLUMNS = 1000
"""Columns that are processed together."""
NEGLIGIBLE = 1e-13
"""Variance of drawn scores, in units of the largest deviation, that is rounding."""
MIN_SKEWNESS = 1e-6
"""Below this skewness, Hall's transformation is Student's t."""

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]


def skewed_intervals(Q: NDArray[np.float64], level: float = 0.95) -> Interval:
    """Return the interval of the mean of each column; NaN below two scores, or where all are equal but for rounding.

    Args:
        Q: ``(n, k)`` finite scores.
        level: in (0, 1).
    """
    n, mean = len(Q), Q.mean(axis=0)
    if n < 2:
        return np.full(len(mean), np.nan), np.full(len(mean), np.nan)
    deviations = Q - mean
    scale = np.abs(deviations).max(axis=0)
    scale[scale <= TIE_TOLERANCE * np.abs(Q).max(axis=0)] = np.nan
    deviations /= scale
    sd = np.sqrt((deviations**2).sum(axis=0) / (n - 1))
    lower, upper = _hall_quantiles(deviations, sd, level)
    if MIN_DRAWN <= n <= MAX_DRAWN:
        drawn = _drawn_quantiles(deviations, level)
        with np.errstate(invalid="ignore"):
            is_usable = (drawn[0] >= MAX_RATIO * lower) & (drawn[1] <= MAX_RATIO * upper)  # False for NaN
        lower, upper = np.where(is_usable, drawn[0], lower), np.where(is_usable, drawn[1], upper)
    step = scale * sd / np.sqrt(n)
    return mean - step * upper, mean - step * lower


def _drawn_quantiles(deviations: NDArray[np.float64], level: float) -> Interval:
    """Return the lower and the upper quantile of the studentized mean of drawn scores, by column.

    They are not finite where more than (1 − level) / 2 of the draws have equal scores on one side of the mean, or where
    that chance is too small for `N_DRAWS`.
    """
    n, k = deviations.shape
    lower, upper = np.full(k, np.nan), np.full(k, np.nan)
    rank = int((1 - level) / 2 * (N_DRAWS + 1) + 1e-9)
    if rank == 0:
        return lower, upper
    drawn = np.random.default_rng(SEED).integers(0, n, (N_DRAWS, n)) + n * np.arange(N_DRAWS)[:, None]
    shares = np.bincount(drawn.ravel(), minlength=N_DRAWS * n).reshape(N_DRAWS, n) / n
    for start in range(0, k, MAX_COLUMNS):
        columns = slice(start, start + MAX_COLUMNS)
        means = shares @ deviations[:, columns]
        variances = shares @ deviations[:, columns] ** 2 - means**2
        errors = np.sqrt(np.where(variances > NEGLIGIBLE, variances, 0) / (n - 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            studentized = np.sort(means / errors, axis=0)  # NaN last
        lower[columns], upper[columns] = studentized[rank - 1], studentized[-rank]
    return lower, upper


def _hall_quantiles(deviations: NDArray[np.float64], sd: NDArray[np.float64], level: float) -> Interval:
    """Return the lower and the upper quantile of the studentized mean by Hall's transformation, by column."""
    n = len(deviations)
    third = (deviations**3).mean(axis=0) / sd**3
    t = float(t_quantile(level, n - 1))
    return _transform(-t, third, n), _transform(t, third, n)


def _transform(t: float, skewness: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the studentized mean at which Hall's transformation is ``t``."""
    a = np.where(np.abs(skewness) < MIN_SKEWNESS, MIN_SKEWNESS, skewness) / np.sqrt(n)
    cubed = 1 + a * (t - a / 6 * np.ones_like(a))
    curved = (np.cbrt(cubed) - 1) * 3 / a
    return np.where(np.abs(skewness) < MIN_SKEWNESS, t, curved)
