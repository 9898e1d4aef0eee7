"""Intervals of the mean of scores in a bounded range, with weights, from any distribution.

The lower end is a quantile of Σ V x, where V are Dirichlet shares of the scores and of one further score at the lower
bound; the upper end adds one at the upper bound. For scores of 0 and 1 this is the interval of Clopper and Pearson.

A Dirichlet share is a gamma variable over the sum of all, so that Σ V x ≤ t means Σ G (x − t) ≤ 0, whose probability
the saddlepoint approximation gives. With y the distance from the bound, the saddlepoints are one family: for each c > 0
t lies 1 / mean(1 / (c + y)) − c above the bound.

Source: Gaffke 2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable"; Learned-Miller and Thomas 2019, "A new confidence interval for the mean of a bounded random variable";
Lugannani and Rice 1980, "Saddle point approximation for the distribution of the sum of independent random variables".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

MAX_VALUES = 512
"""Scores above this number are replaced by the means of as many bins, which leaves their mean unchanged."""
MAX_CELLS = 1 << 20
"""Scores of columns that are processed together."""
HALVINGS = 48
SPAN = 35.0
"""The saddlepoint lies between exp(−SPAN) and exp(SPAN) times the range of the scores."""

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]


def bounded_intervals(Y: NDArray[np.float64], shapes: NDArray[np.float64], level: float = 0.95) -> Interval:
    """Return the interval of the mean of each column.

    Args:
        Y: ``(n, k)`` scores in [0, 1].
        shapes: ``(n, k)`` Dirichlet shapes: 1 for independent scores of equal weight; in general the weight of a score,
            scaled to a sum of the effective number of scores. 0 excludes the score.
        level: in (0, 1).
    """
    z = float(special.ndtri((1 + level) / 2))
    low, high = np.empty(Y.shape[1]), np.empty(Y.shape[1])
    step = max(1, MAX_CELLS // max(len(Y), 1))
    for start in range(0, Y.shape[1], step):
        columns = slice(start, start + step)
        y, alpha = _bin_scores(np.clip(Y[:, columns], 0.0, 1.0), shapes[:, columns])
        low[columns], high[columns] = _lower_ends(y, alpha, z), 1 - _lower_ends(1 - y, alpha, z)
    return low, high


def _bin_scores(Y: NDArray[np.float64], shapes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores and shapes, ``(n, k)``; more than `MAX_VALUES` rows are binned."""
    n, k = Y.shape
    if n <= MAX_VALUES:
        return Y, shapes
    lowest, width = Y.min(axis=0), np.maximum(np.ptp(Y, axis=0), 1e-300)
    bins = np.minimum(((Y - lowest) / width * MAX_VALUES).astype(np.int64), MAX_VALUES - 1)
    codes = (bins + MAX_VALUES * np.arange(k)).ravel()
    alpha = np.bincount(codes, weights=shapes.ravel(), minlength=MAX_VALUES * k).astype(np.float64)
    sums = np.bincount(codes, weights=(shapes * Y).ravel(), minlength=MAX_VALUES * k)
    means = np.divide(sums, alpha, out=np.zeros(len(alpha)), where=alpha > 0)
    return np.asarray(means.reshape(k, MAX_VALUES).T), np.asarray(alpha.reshape(k, MAX_VALUES).T)


def _lower_ends(Y: NDArray[np.float64], shapes: NDArray[np.float64], z: float) -> NDArray[np.float64]:
    """Return t in [0, 1] of each column, at which the normal quantile of P(Σ V y ≤ t) is −z."""
    k = Y.shape[1]
    Y, shapes = np.vstack([Y, np.zeros(k)]), np.vstack([shapes, np.ones(k)])
    low, high = np.full(k, -SPAN), np.full(k, SPAN)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = _quantiles(np.exp(middle), Y, shapes)[1] > -z
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    ends = _quantiles(np.exp(low), Y, shapes)[0]
    return np.asarray(np.where((Y * shapes).max(axis=0) > 0, np.clip(ends, 0.0, 1.0), 0.0))


def _quantiles(c: NDArray[np.float64], Y: NDArray[np.float64], shapes: NDArray[np.float64]) -> Interval:
    """Return t and the normal quantile of P(Σ V y ≤ t) at a saddlepoint of each column, by Lugannani and Rice."""
    shifted = c + Y
    rate = (shapes / shifted).sum(axis=0) / shapes.sum(axis=0)
    t = 1 / rate - c
    shifted *= rate
    half = (shapes * np.log(shifted)).sum(axis=0)
    curvature = rate**2 * (shapes * ((Y - t) / shifted) ** 2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        w, u = np.sqrt(2 * half), np.sqrt(curvature)
        return t, np.where(half > 1e-12, -w - np.log(u / w) / w, 0.0)
