"""Reject scores without a mean."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def check_finite(Q: NDArray[np.float64]) -> Mapping[str, bool]:
    """Return why scores have no mean, if they are infinite."""
    n_infinite = int(np.isinf(Q).sum())
    return {f"{n_infinite:,} scores are infinite. Leave out their runs, or choose another metric.": n_infinite > 0}
