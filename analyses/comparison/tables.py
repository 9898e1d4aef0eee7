"""Two models compared, task by task and prompt by prompt, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.comparing.by_task import TaskDifference
from analyses.presentation.table_columns import number_column


def by_task(found: Sequence[TaskDifference]) -> pa.Table:
    """One row for each task; nulls where a task is too small for an error."""
    columns = ("mean_a", "mean_b", "difference", "stderr", "low", "high", "pvalue", "holm", "benjamini_hochberg")
    counts = ("n", "n_a_better", "n_b_better")
    return pa.table(
        {"task": pa.array([one.task for one in found], pa.string())}
        | {name: pa.array([getattr(one, name) for one in found], pa.int64()) for name in counts}
        | {name: number_column([getattr(one, name) for one in found]) for name in columns}
        | {"test": pa.array([one.test or None for one in found], pa.string())}
    )


def flips(
    rows: NDArray[np.int64],
    *,
    names: Sequence[str],
    prompts: Sequence[str],
    tasks: Sequence[str],
    texts: Sequence[str | None],
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    advantage: NDArray[np.float64],
) -> pa.Table:
    """One row for each prompt on which the two differ.

    Args:
        rows: which, in order.
        names: of the two models.
        prompts, tasks, texts: of every prompt compared.
        a, b: their scores.
        advantage: of the first, positive where it is better.
    """
    chosen = rows.tolist()
    return pa.table(
        {
            "better": pa.array([names[0] if advantage[row] > 0 else names[1] for row in chosen], pa.string()),
            "prompt": pa.array([prompts[row] for row in chosen], pa.string()),
            "task": pa.array([tasks[row] for row in chosen], pa.string()),
            "score_a": number_column(a[rows]),
            "score_b": number_column(b[rows]),
            "advantage_of_a": number_column(advantage[rows]),
            "text": pa.array([texts[row] for row in chosen], pa.string()),
        }
    )
