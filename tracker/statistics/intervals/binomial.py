"""Intervals of a proportion: Blaker's from counts, and one from an effective number of scores.

Source: Blaker 2000, "Confidence curves and improved exact confidence intervals for discrete distributions"; Klaschka
2010, "BlakerCI: an algorithm and R package for the Blaker's binomial confidence limits calculation"; Korn and Graubard
1998, "Confidence intervals for proportions with small expected number of positive counts estimated from survey data".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

HALVINGS = 55
"""Steps of a bisection in [0, 1]."""

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]


def blaker_interval(successes: NDArray[np.int64], n: NDArray[np.int64] | int, level: float = 0.95) -> Interval:
    """Return the connected hull of Blaker's confidence set for each count of successes.

    Its coverage is at least ``level`` for every probability, and it lies within the interval of Clopper and Pearson.

    Args:
        successes: ``(k,)`` in ``0 .. n``.
        n: number of scores, at least 1.
        level: in (0, 1).
    """
    counts, numbers = np.broadcast_arrays(np.asarray(successes, np.int64), np.asarray(n, np.int64))
    pairs, places = np.unique(np.stack([counts, numbers]), axis=1, return_inverse=True)
    x, total = pairs
    low = _blaker_lower(x, total, 1 - level)
    high = 1 - _blaker_lower(total - x, total, 1 - level)
    places = places.ravel()
    return low[places], high[places]


def beta_interval(mean: NDArray[np.float64], n: NDArray[np.float64], level: float = 0.95) -> Interval:
    """Return Clopper and Pearson's interval for an effective number of scores, which need not be an integer.

    Args:
        mean: ``(k,)`` in [0, 1].
        n: ``(k,)`` positive.
        level: in (0, 1).
    """
    return _clopper_pearson_lower(n * mean, n, 1 - level), 1 - _clopper_pearson_lower(n * (1 - mean), n, 1 - level)


def _clopper_pearson_lower(x: NDArray[np.float64], n: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    positive = x > 0
    ends = special.betaincinv(np.where(positive, x, 1.0), np.maximum(n - x, 0.0) + 1, alpha / 2)
    return np.asarray(np.where(positive, ends, 0.0))


def _blaker_lower(x: NDArray[np.int64], n: NDArray[np.int64], alpha: float) -> NDArray[np.float64]:
    """Return the smallest p whose acceptability, P(X ≥ x) + P(X ≤ j), exceeds ``alpha``.

    Here j is the largest count with P(X ≤ j) ≤ P(X ≥ x). At the lower end of Clopper and Pearson, P(X ≥ x) is alpha /
    2. Up to the p at which j + 1 takes the place of j, the acceptability exceeds alpha from one point on, if at all; at
    that p it is more than alpha.
    """
    low = _clopper_pearson_lower(x.astype(np.float64), n.astype(np.float64), alpha)
    j = _largest_tail(low, n, alpha / 2)
    # P(X ≤ j + 1) falls and P(X ≥ x) rises with p, so they are equal at one p.
    jump = _bisect(low, np.ones(len(x)), lambda p: special.bdtr(j + 1.0, n, p) <= _upper_tail(x, n, p))
    crossing = _bisect(low, jump, lambda p: _upper_tail(x, n, p) + _lower_tail(j, n, p) > alpha)
    return np.asarray(np.where(x > 0, crossing, 0.0))


def _largest_tail(p: NDArray[np.float64], n: NDArray[np.int64], tail: float) -> NDArray[np.int64]:
    """Return the largest j with P(X ≤ j) ≤ ``tail``; −1 if there is none."""
    j = np.ceil(np.nan_to_num(special.bdtrik(tail, n, p), nan=0.0)).astype(np.int64) + 1
    slack = tail * (1 + 1e-12)
    while (too_large := (j >= 0) & (_lower_tail(j, n, p) > slack)).any():
        j = np.where(too_large, j - 1, j)
    return np.asarray(j)


def _lower_tail(j: NDArray[np.int64], n: NDArray[np.int64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.where(j >= 0, special.bdtr(np.maximum(j, 0).astype(np.float64), n, p), 0.0))


def _upper_tail(x: NDArray[np.int64], n: NDArray[np.int64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.where(x > 0, special.bdtrc(np.maximum(x, 1) - 1.0, n, p), 1.0))


def _bisect(
    low: NDArray[np.float64], high: NDArray[np.float64], is_above: Callable[[NDArray[np.float64]], NDArray[np.bool_]]
) -> NDArray[np.float64]:
    """Return the smallest point in ``[low, high]`` from which on a condition holds; ``high`` if it does not."""
    low, high = low.copy(), high.copy()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = is_above(middle)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return low
