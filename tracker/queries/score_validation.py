"""Scores of which there is no mean or no standard error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

MAX_SQUARABLE = 1e140
"""Of scores whose squares are added up; one over it is the smallest largest one."""


def check_finite(Q: NDArray[np.float64]) -> Mapping[str, bool]:
    """Scores without a bound, of which there is no mean."""
    n_infinite = int(np.isinf(Q).sum())
    return {f"{n_infinite:,} scores are infinite. Leave out their runs, or choose another metric.": n_infinite > 0}


def check_squarable(Q: NDArray[np.float64]) -> Mapping[str, bool]:
    """Scores whose squares no number can hold, so that there is no standard error."""
    largest = float(np.abs(Q).max(initial=0.0, where=np.isfinite(Q)))
    size = "large" if largest > MAX_SQUARABLE else "small"
    return {
        f"The largest score is {largest:.3g}, too {size} to be squared. Rescale them, or choose another metric.": (
            largest > MAX_SQUARABLE or 0 < largest < 1 / MAX_SQUARABLE
        )
    }


def find_problem(Q: NDArray[np.float64]) -> str:
    """Why these scores have no means with errors; '' where they have."""
    problems = {**check_finite(Q), **check_squarable(Q)}
    return next((problem for problem, is_so in problems.items() if is_so), "")
