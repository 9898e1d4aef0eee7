"""P-values and quantiles of Student's t, including estimates with an error of 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tracker.statistics.ranking import TIE_TOLERANCE

MIN_DEGREES = 1.0
"""Minimum degrees of freedom of an error of two units or more, except for rounding."""


def t_quantile(level: float, degrees: Any) -> Any:
    """Return how many standard errors to either side hold ``level`` of Student's t; NaN without degrees of freedom.

    Args:
        level: in (0, 1).
        degrees: number or array.
    """
    known = np.maximum(np.asarray(degrees, dtype=np.float64), MIN_DEGREES)
    return np.where(np.asarray(degrees) > 0, special.stdtrit(known, (1 + level) / 2), np.nan)[()]


def student_interval(mean: Any, error: Any, degrees: Any, level: float) -> tuple[Any, Any]:
    """Return mean ± t · error, for numbers without bounds and for differences; NaN without an error.

    Means of bounded scores have `tracker.statistics.intervals`.

    Args:
        mean, error, degrees: numbers or arrays.
        level: in (0, 1).
    """
    reach = t_quantile(level, degrees) * error
    return mean - reach, mean + reach


def t_pvalues(differences: Any, errors: Any, n_units: Any, scale: float, degrees: Any = None) -> NDArray[np.float64]:
    """Return two-sided p-values of Student's t.

    If the error is 0 because all units agree, t is undefined. A difference of 0 then has p = 1. Any other one has the
    p-value of the exact sign-flip test of whole units, 2 / 2**n_units. Fewer than two units have none (NaN).

    Args:
        differences, errors: of equal shapes; NaN without an error.
        n_units: prompts or clusters behind each.
        scale: largest absolute score; values below `TIE_TOLERANCE` of it are 0.
        degrees: degrees of freedom; ``n_units - 1`` by default.

    Returns:
        Of the same shape, in [0, 1].
    """
    d, se = np.asarray(differences, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    units = np.broadcast_to(np.asarray(n_units, dtype=np.float64), d.shape)
    slack = TIE_TOLERANCE * scale
    flat, same = se <= slack, np.abs(d) <= slack
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(d) / np.where(flat, 1.0, se)
    freedom = units - 1 if degrees is None else np.asarray(degrees, dtype=np.float64)
    p = 2 * special.stdtr(np.maximum(freedom, MIN_DEGREES), -t)
    p = np.where(flat, np.where(same, 1.0, np.exp2(1 - units)), p)
    return np.asarray(np.where((units >= 2) & ~np.isnan(se), np.minimum(p, 1.0), np.nan))
