"""What a number comes to over random draws or splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS = (0.025, 0.975)
"""Quantiles over the draws, reported beside the mean."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """A number over the draws in which it is defined; NaN if it is in none.

    Attributes:
        mean: of them.
        low, high: 2.5 % and 97.5 % quantiles.
        n: draws in which it is defined.
    """

    mean: float
    low: float
    high: float
    n: int


def summarize_spread(values: NDArray[np.float64]) -> Spread:
    """Mean and quantiles of what is not NaN."""
    known = values[~np.isnan(values)]
    if not known.size:
        return Spread(mean=float("nan"), low=float("nan"), high=float("nan"), n=0)
    low, high = map(float, np.quantile(known, LEVELS))
    return Spread(mean=float(known.mean()), low=low, high=high, n=known.size)
