"""Means and rankings of a growing benchmark as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.growth.trajectories import Trajectories, Trajectory


def growth(
    sizes: NDArray[np.int64],
    informative: Trajectory,
    random: Trajectories,
    permuted: Trajectories | None,
    models: Sequence[str],
) -> pa.Table:
    """One row for each size and model: means in informative order, in random orders, on shuffled tables."""
    n_sizes, k = informative.means.shape
    columns: dict[str, Any] = {
        "size": np.repeat(sizes, k),
        "model": pa.array([*models] * n_sizes, pa.string()),
        "informative": informative.means.ravel(),
    }
    for name, many in (("random", random), ("permuted", permuted)):
        if many:
            low, middle, high = (band.ravel() for band in many.band(many.means))
            columns |= {f"{name}_low": low, f"{name}_median": middle, f"{name}_high": high}
    return pa.table(columns)


def distance(
    sizes: NDArray[np.int64],
    informative: Trajectory,
    random: Trajectories,
    permuted: Trajectories | None,
    within: float,
) -> pa.Table:
    """One row for each size: Kendall distance from the final ranking, and the share of random orders within."""
    columns: dict[str, Any] = {"size": sizes, "informative": informative.distances[sizes - 1]}
    for name, many in (("random", random), ("permuted", permuted)):
        if many:
            low, middle, high = many.band(many.distances)
            columns |= {f"{name}_low": low, f"{name}_median": middle, f"{name}_high": high}
    return pa.table(columns | {"random_share_within": random.share_within(within)})
