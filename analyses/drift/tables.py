"""Runs of models in their order, and the prompts that changed between them, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analyses.numerics.comparing.run_steps import RunStep, score_changes
from analyses.presentation.table_columns import number_column
from tracker.queries.comparing.run_means import RunMean
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.history import RunHistory


def list_by_run(history: RunHistory, steps: Sequence[RunStep], means: Sequence[RunMean]) -> pa.Table:
    """One row for each run; what changed since the run before it is null for the first of a model."""
    steps_by_column = {step.after: step for step in steps}
    before = [steps_by_column.get(column) for column in range(len(history.runs))]
    floats = ("change", "stderr", "low", "high", "pvalue", "holm")
    whole = {"n": "n_shared", "n_better": "n_better", "n_worse": "n_worse"}
    return pa.table(
        {
            "model": pa.array([run.model for run in history.runs], pa.string()),
            "run": pa.array([run.id for run in history.runs], pa.int64()),
            "label": pa.array([run.label for run in history.runs], pa.string()),
            "when": pa.array([run.when for run in history.runs], pa.timestamp("us", tz="UTC")),
            "is_dated": pa.array([run.is_dated for run in history.runs], pa.bool_()),
            "n_prompts": pa.array([mean.n for mean in means], pa.int64()),
            "mean": number_column([mean.mean for mean in means]),
            "mean_low": number_column([mean.low for mean in means]),
            "mean_high": number_column([mean.high for mean in means]),
            "since": pa.array([None if step is None else history.runs[step.before].id for step in before], pa.int64()),
        }
        | {
            title: pa.array([None if step is None else getattr(step, name) for step in before], pa.int64())
            for name, title in whole.items()
        }
        | {name: number_column([np.nan if step is None else getattr(step, name) for step in before]) for name in floats}
    )


def list_changed_prompts(history: RunHistory, steps: Sequence[RunStep], prompts: PromptTexts) -> pa.Table:
    """One row for each prompt whose score changed in a step; the largest changes of each step first."""
    positions = prompts.find_rows(history.scores.prompt_ids).tolist()
    names = [prompts.names[position] for position in positions]
    texts = [prompts.texts[position] for position in positions]
    Q, tasks = history.scores.Q, history.scores.tasks
    parts = []
    for step in steps:
        change = score_changes(Q, step, higher_is_better=history.scores.higher_is_better)
        size = np.abs(np.nan_to_num(change))
        rows = np.argsort(-size, kind="stable")
        parts.append((step, rows[size[rows] > 0], change))
    places = [(step, row) for step, rows, _ in parts for row in rows.tolist()]
    runs = history.runs
    return pa.table(
        {
            "model": pa.array([runs[step.after].model for step, _ in places], pa.string()),
            "run": pa.array([runs[step.after].id for step, _ in places], pa.int64()),
            "since": pa.array([runs[step.before].id for step, _ in places], pa.int64()),
            "prompt": pa.array([names[row] for _, row in places], pa.string()),
            "task": pa.array([str(tasks[row]) for _, row in places], pa.string()),
            "before": number_column([Q[row, step.before] for step, row in places]),
            "after": number_column([Q[row, step.after] for step, row in places]),
            "change": number_column(np.concatenate([change[rows] for _, rows, change in parts] or [np.empty(0)])),
            "text": pa.array([texts[row] for _, row in places], pa.string()),
        }
    )
