"""Intervals of the mean of independent scores without bounds.

Source: Hall 1992, "On the removal of skewness by transformation": a cubic of Student's t whose skewness vanishes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.student_t import t_quantile

MIN_SKEWNESS = 1e-6
"""Below this skewness, the interval is that of Student's t."""


def skewed_intervals(Q: NDArray[np.float64], level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the interval of the mean of each column; NaN below two scores, or where all are equal.

    Args:
        Q: ``(n, k)`` finite scores.
        level: in (0, 1).
    """
    n, mean = len(Q), Q.mean(axis=0)
    if n < 2:
        return np.full(len(mean), np.nan), np.full(len(mean), np.nan)
    deviations = Q - mean
    scale = np.abs(deviations).max(axis=0)
    scale[scale == 0] = np.nan
    deviations /= scale
    sd = np.sqrt((deviations**2).sum(axis=0) / (n - 1))
    third = (deviations**3).mean(axis=0) / sd**3
    t = float(t_quantile(level, n - 1))
    step = scale * sd / np.sqrt(n)
    return mean - step * _transform(t, third, n), mean - step * _transform(-t, third, n)


def _transform(t: float, skewness: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the studentized mean at which Hall's transformation is ``t``."""
    a = np.where(np.abs(skewness) < MIN_SKEWNESS, MIN_SKEWNESS, skewness) / np.sqrt(n)
    cubed = 1 + a * (t - a / 6 * np.ones_like(a))
    curved = (np.cbrt(cubed) - 1) * 3 / a
    return np.where(np.abs(skewness) < MIN_SKEWNESS, t, curved)
