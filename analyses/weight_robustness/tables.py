"""Rankings under random weights as tables; models are in the order of the ranking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.weighting.random_weights import RandomWeights


def list_by_model(models: Sequence[str], rank: NDArray[np.float64], u: RandomWeights) -> pa.Table:
    """List one row for each model."""
    columns = ("mean", "sd", "low", "high", "range_low", "range_high", "least", "most")
    return pa.table(
        {"model": models, "rank": rank}
        | {name: getattr(u, name) for name in columns}
        | {name: getattr(u, name) for name in ("expected_rank", "rank_low", "rank_high")}
        | {"p_first": u.places[:, 0]}
    )


def list_by_pair(models: Sequence[str], u: RandomWeights) -> pa.Table:
    """List one row for each two models, the one with the better mean first."""
    i, j = np.triu_indices(len(models), 1)
    relation = np.where(u.better[j, i] == 0, "never worse", np.where(u.better[i, j] == 0, "never better", ""))
    names = np.array(models, dtype=object)
    return pa.table(
        {
            "model": pa.array(names[i], pa.string()),
            "other": pa.array(names[j], pa.string()),
            "p_beats": u.beats[i, j],
            "p_beaten": u.beats[j, i],
            "p_normal": u.p_normal[i, j],
            "mean_difference": u.gap[i, j],
            "paired_se": u.gap_error[i, j],
            "n_better": u.better[i, j],
            "n_worse": u.better[j, i],
            "relation": pa.array(np.where(u.is_identical[i, j], "identical", relation).tolist(), pa.string()),
        }
    )
