"""Rankings by a few tasks, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from analyses.numerics.elections.subsets.task_subsets import HoldoutDistances
from analyses.presentation.table_columns import number_column
from analyses.task_subsets.method import MEASURES, QUANTILES, TaskSubsets, quantiles

TASK_SEPARATOR = " + "
"""Between the tasks of a set."""


def list_distances_by_size(finding: TaskSubsets) -> pa.Table:
    """One row for each size."""
    sizes, tasks = finding.sizes, finding.tasks
    samples = [subsets.sample for subsets in sizes]
    columns: dict[str, Any] = {
        "size": [sample.size for sample in samples],
        "n_subsets": [float(sample.n_subsets) for sample in samples],
        "n_examined": [sample.n_examined for sample in samples],
        "examined": ["all" if sample.is_exhaustive else "sample" for sample in samples],
    }
    for measure in MEASURES:
        levels = [quantiles(subsets.distances, measure) for subsets in sizes]
        columns |= {f"{measure}_{name}": number_column([level[name] for level in levels]) for name in QUANTILES}
    columns["nearest"] = [TASK_SEPARATOR.join(tasks[task] for task in subsets.nearest) for subsets in sizes]
    columns["n_nearest"] = [subsets.n_nearest for subsets in sizes]
    columns["nearest_by_mrc"] = [TASK_SEPARATOR.join(tasks[task] for task in subsets.nearest_mrc) for subsets in sizes]
    return pa.table(columns)


def list_greedy_steps(finding: TaskSubsets) -> pa.Table:
    """One row for each task, in the order in which they are added."""
    greedy, holdout = finding.greedy, finding.holdout
    n_tasks = len(greedy.order)
    columns: dict[str, Any] = {
        "size": np.arange(1, n_tasks + 1),
        "task": [finding.tasks[task] for task in greedy.order],
    }
    columns |= {measure: number_column(getattr(greedy.distances, measure)) for measure in MEASURES}
    for name in HoldoutDistances.CURVES:
        means = [] if holdout is None else holdout.curves[name].mean(axis=0).tolist()
        columns[f"holdout_{name}"] = pa.array([*means, *[None] * (n_tasks - len(means))], pa.float64())
    return pa.table(columns)


def list_greedy_positions(finding: TaskSubsets) -> Mapping[str, float]:
    """Position of each task in the greedy order, from 1."""
    return {finding.tasks[task]: float(position) for position, task in enumerate(finding.greedy.order, 1)}
