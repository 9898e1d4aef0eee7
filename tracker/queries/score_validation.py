"""Reject scores without a mean or standard error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

MAX_SQUARABLE = 1e140
"""Bound of scores whose squares can be summed; its reciprocal is the smallest allowed maximum."""


def check_finite(Q: NDArray[np.float64]) -> Mapping[str, bool]:
    """Return why scores have no mean, if they are infinite."""
    n_infinite = int(np.isinf(Q).sum())
    return {f"{n_infinite:,} scores are infinite. Leave out their runs, or choose another metric.": n_infinite > 0}


def check_squarable(Q: NDArray[np.float64]) -> Mapping[str, bool]:
    """Return why scores have no standard error, if their squares overflow or underflow."""
    largest = float(np.abs(Q).max(initial=0.0, where=np.isfinite(Q)))
    size = "large" if largest > MAX_SQUARABLE else "small"
    return {
        f"The largest score is {largest:.3g}, too {size} to be squared in float64. Rescale the scores, or choose "
        "another metric.": (largest > MAX_SQUARABLE or 0 < largest < 1 / MAX_SQUARABLE)
    }
