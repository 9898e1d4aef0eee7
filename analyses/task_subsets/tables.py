"""Rankings by a few tasks, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analyses.numerics.elections.diversity.distance_counts import RankingDistances
from analyses.numerics.elections.subsets.task_subsets import GreedyOrder, HoldoutDistances, SubsetDistances
from analyses.presentation.table_columns import number_column

MEASURES = ("tau", "tau_paper", "tau_b", "mrc")
"""Distances, as their columns are named."""
LEVELS = {"best": 0.0, "lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75, "worst": 1.0}
"""What is told of the distances of all sets of a size."""
BETWEEN = " + "
"""Between the tasks of a set."""


def quantiles(found: RankingDistances, measure: str) -> dict[str, float]:
    """Best, quartiles and worst; rankings for which a distance does not exist are passed over, NaN where all are."""
    values = getattr(found, measure)
    values = values[~np.isnan(values)]
    if not values.size:
        return dict.fromkeys(LEVELS, np.nan)
    return dict(zip(LEVELS, np.quantile(values, list(LEVELS.values())).tolist(), strict=True))


def by_size(sizes: Sequence[SubsetDistances], tasks: Sequence[str]) -> pa.Table:
    """One row for each size."""
    columns: dict[str, Any] = {
        "size": [size.sets.size for size in sizes],
        "n_subsets": [float(size.sets.n_subsets) for size in sizes],
        "n_examined": [size.sets.n_examined for size in sizes],
        "examined": ["all" if size.sets.is_exhaustive else "sample" for size in sizes],
    }
    for measure in MEASURES:
        told = [quantiles(size.distances, measure) for size in sizes]
        columns |= {f"{measure}_{level}": number_column([one[level] for one in told]) for level in LEVELS}
    columns["nearest"] = [BETWEEN.join(tasks[task] for task in size.nearest) for size in sizes]
    columns["n_nearest"] = [size.n_nearest for size in sizes]
    columns["nearest_by_mrc"] = [BETWEEN.join(tasks[task] for task in size.nearest_mrc) for size in sizes]
    return pa.table(columns)


def one_by_one(greedy: GreedyOrder, held: HoldoutDistances | None, tasks: Sequence[str]) -> pa.Table:
    """One row for each task, in the order in which they are added."""
    n = len(greedy.order)
    columns: dict[str, Any] = {"size": np.arange(1, n + 1), "task": [tasks[task] for task in greedy.order]}
    columns |= {measure: number_column(getattr(greedy.distances, measure)) for measure in MEASURES}
    for name in ("chosen", "judged", "unchosen"):
        means = [] if held is None else getattr(held, name).mean(axis=0).tolist()
        columns[f"holdout_{name}"] = pa.array([*means, *[None] * (n - len(means))], pa.float64())
    return pa.table(columns)
