"""Two models compared, task by task and prompt by prompt, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.comparison.shared_scores import SharedScores
from analyses.numerics.comparing.task_differences import TaskDifference
from analyses.presentation.table_columns import number_column
from tracker.queries.prompts import PromptTexts


def list_by_task(tasks: Sequence[TaskDifference]) -> pa.Table:
    """One row for each task; nulls where a task is too small for an error."""
    columns = ("mean_a", "mean_b", "difference", "stderr", "low", "high", "pvalue", "holm", "benjamini_hochberg")
    counts = ("n", "n_a_better", "n_b_better")
    return pa.table(
        {"task": pa.array([task.task for task in tasks], pa.string())}
        | {name: pa.array([getattr(task, name) for task in tasks], pa.int64()) for name in counts}
        | {name: number_column([getattr(task, name) for task in tasks]) for name in columns}
        | {"test": pa.array([task.test or None for task in tasks], pa.string())}
    )


def list_flips(
    shared: SharedScores, prompts: PromptTexts, advantage: NDArray[np.float64], rows: NDArray[np.int64]
) -> pa.Table:
    """One row for each prompt on which the two differ.

    Args:
        shared: scores of the two.
        prompts: names and texts.
        advantage: of the first, positive where it is better.
        rows: which prompts, in order.
    """
    places = prompts.find_rows(shared.scores.prompt_ids[rows]).tolist()
    names, tasks, order = shared.models, shared.scores.tasks, rows.tolist()
    return pa.table(
        {
            "better": pa.array([names[0] if advantage[row] > 0 else names[1] for row in order], pa.string()),
            "prompt": pa.array([prompts.names[place] for place in places], pa.string()),
            "task": pa.array([str(tasks[row]) for row in order], pa.string()),
            "score_a": number_column(shared.a[rows]),
            "score_b": number_column(shared.b[rows]),
            "advantage_of_a": number_column(advantage[rows]),
            "text": pa.array([prompts.texts[place] for place in places], pa.string()),
        }
    )
