"""How far the values of each of many tables are from those of all tables together.

Every table has the same standing in the pool, so the distances are one more statistic to compare under permutation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.parallel.blocks import map_blocks, split_blocks

ROWS_AT_A_TIME = 64


def compute_pooled_distances(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """The Kolmogorov-Smirnov distance of each row from the pool of all rows, taken at every point.

    Args:
        values: ``(n_tables, m)``, each row ascending with NaN last; NaN is no value.

    Returns:
        ``(n_tables,)`` in [0, 1]; NaN for a row without values.
    """
    counts = (~np.isnan(values)).sum(axis=1)
    pool = values[~np.isnan(values)]
    pool.sort()  # in place: the pool is as large as all tables
    blocks = split_blocks(len(values), ROWS_AT_A_TIME)

    def task(block: int) -> list[float]:
        return [_distance(values[b, : counts[b]], pool) for b in blocks[block]]

    return np.array([distance for part in map_blocks(task, len(blocks)) for distance in part])


def _distance(values: NDArray[np.float32], pool: NDArray[np.float32]) -> float:
    """Of ascending values from the pool that holds them; just before and at each, where the gap is widest."""
    if not values.size:
        return float("nan")
    gaps = (
        np.abs(
            np.searchsorted(values, values, side) / len(values) - np.searchsorted(pool, values, side) / len(pool)
        ).max()
        for side in ("left", "right")
    )
    return float(max(gaps))
