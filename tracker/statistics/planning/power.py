"""The power of a paired t-test, the differences that it detects, and the units that it needs.

Source: Miller 2024, "Adding Error Bars to Evals", section 5; the power of the t-test by the noncentral t distribution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracker.statistics.student_t import t_quantile

ALPHA, POWER = 0.05, 0.8
"""Chance of finding what is not there, and of finding what is."""
MAX_UNITS = 10**12
"""More units than anybody will ask."""


def power(noncentrality: float, degrees: float, alpha: float = ALPHA) -> float:
    """Chance that a two-sided t-test finds a difference.

    The estimated error over the true one is √(χ²/degrees); over its logarithm the trapezoid rule converges faster than
    any power of the step. (SciPy's noncentral t loses all digits far out.)

    Args:
        noncentrality: the difference over its standard error.
        degrees: of freedom, positive.
        alpha: of the test.
    """
    from scipy.special import ndtr

    critical = float(t_quantile(1 - alpha, degrees))
    step = min(0.7 / np.sqrt(degrees), 1 / max(noncentrality, 1.0)) / 4
    reach = 9 / np.sqrt(degrees)
    left, right = (-reach, reach) if degrees > 100 else (-45 / degrees - 0.5, 3.0)
    x = np.arange(left, right, step)
    weights = np.exp(degrees * (x - np.expm1(2 * x) / 2))
    cut = critical * np.exp(x)
    return float((weights * (ndtr(noncentrality - cut) + ndtr(-noncentrality - cut))).sum() / weights.sum())


def detectable_difference(stderr: float, degrees: float, *, alpha: float = ALPHA, chance: float = POWER) -> float:
    """The smallest difference that such a test finds with a chance of ``chance``; NaN where there is no error.

    Args:
        stderr: of the difference.
        degrees: of freedom.
        alpha: of the two-sided test.
        chance: in (alpha, 1).
    """
    if not degrees > 0 or not stderr > 0:
        return float("nan")
    high = 1.0
    while power(high, degrees, alpha) < chance:
        high *= 2
    return stderr * _bisected(lambda x: power(x, degrees, alpha) - chance, high / 2 if high > 1 else 0.0, high)


def units_needed(
    difference: float, stderr: float, n_units: int, degrees: float, *, alpha: float = ALPHA, chance: float = POWER
) -> float:
    """The fewest units like these with which such a test finds a difference as large as this one.

    NaN where the difference or its error is 0 or unknown; infinite beyond `MAX_UNITS`.

    Args:
        difference: to be found.
        stderr: of the difference with ``n_units`` units; it falls with their root.
        n_units: prompts, or clusters.
        degrees: of freedom with ``n_units`` units; they grow with the number of units less one.
        alpha: of the two-sided test.
        chance: of finding it.
    """
    if not abs(difference) > 0 or not stderr > 0 or n_units < 2:
        return float("nan")
    each = abs(difference) / (stderr * np.sqrt(n_units))

    def finds(units: int) -> bool:
        return power(each * np.sqrt(units), degrees * ((units - 1) / (n_units - 1)), alpha) >= chance

    low, high = 1, 2
    while not finds(high):
        if high > MAX_UNITS:
            return float("inf")
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle) else (middle, high)
    return float(high)


def _bisected(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function is 0."""
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
