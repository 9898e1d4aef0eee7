"""Rows of a table brought to lengths near 1, and the inverse norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import jit

MAX_EXPONENT = 1000
"""Powers of two below this are numbers, and so are their inverses."""
SQUARES = 2.0**-400, 2.0**400
"""Numbers between these have squares, and sums of squares, with all digits."""


@jit
def scale_row(scores: Any, scaled: Any) -> None:
    """Multiply a row by the power of two that brings its largest magnitude to [0.5, 1), so that squares are normal.

    Cosines do not change, not even in the last digit.

    Args:
        scores: ``(k,)`` float64.
        scaled: ``(k,)`` float64, filled.
    """
    largest = even = odd = 0.0
    for column in range(0, scores.size - 1, 2):
        even, odd = max(even, abs(scores[column])), max(odd, abs(scores[column + 1]))
    largest = max(max(even, odd), abs(scores[scores.size - 1]))
    exponent = math.frexp(largest)[1]
    if abs(exponent) < MAX_EXPONENT:
        factor = math.ldexp(1.0, -exponent)
        for column in range(scores.size):
            scaled[column] = scores[column] * factor
    else:  # the factor itself may be too large for a number
        for column in range(scores.size):
            scaled[column] = math.ldexp(scores[column], -exponent)


@jit
def _fill_scaled(scores: Any, scaled: Any) -> None:
    for i in range(scores.shape[0]):
        scale_row(scores[i], scaled[i])


def scale_rows(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row of a ``(n, k)`` table from `scale_row`."""
    scaled = np.empty_like(scores)
    _fill_scaled(scores, scaled)
    return scaled


@jit
def needs_scaling(scores: Any) -> bool:
    """Whether a row of some scores, ``(n,)``, may have squares that are too small or too large for a number."""
    n_extreme = 0
    for score in scores:
        n_extreme += score != 0.0 and not SQUARES[0] <= abs(score) <= SQUARES[1]
    return n_extreme > 0


@jit
def invert_norm(scores: Any) -> float:
    """The inverse norm of a ``(k,)`` row; 0 for zeros. Under a pattern, `bin_cosines` has the same bytes."""
    total = 0.0
    for column in range(scores.size):
        total += scores[column] * scores[column]
    return 1.0 / np.sqrt(total) if total > 0.0 else 0.0
