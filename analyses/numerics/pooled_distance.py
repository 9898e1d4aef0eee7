"""How far the values of each of many tables are from those of all tables together.

Every table has the same standing in the pool, so the distances are one more statistic to compare under permutation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pooled_distances(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """The Kolmogorov-Smirnov distance of each row from the pool of all rows, taken at every point.

    Args:
        values: ``(n_tables, m)``, each row ascending with NaN last; NaN is no value.

    Returns:
        ``(n_tables,)`` in [0, 1]; NaN for a row without values.
    """
    counts = (~np.isnan(values)).sum(axis=1)
    pool = np.sort(values[~np.isnan(values)])
    distances = np.full(len(values), np.nan)
    for b in np.flatnonzero(counts):
        mine = values[b, : counts[b]]
        gaps = (
            np.abs(np.searchsorted(mine, mine, side) / len(mine) - np.searchsorted(pool, mine, side) / len(pool)).max()
            for side in ("left", "right")
        )
        distances[b] = max(gaps)
    return distances
