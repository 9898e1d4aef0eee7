"""The scores of one run by task."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.queries.selected_runs.conditions import has_scores
from tracker.queries.selection import Unit
from tracker.queries.sql import tables


def load_task_scores(session: Session, run_id: int) -> list[dict[str, Any]]:
    """Return the mean of each task of a run under each metric, with the number of scored prompts.

    A task without scores of its prompts has its published score.
    """
    prompts = (
        sa.select(
            tables.task.c.name.label("task"),
            tables.metric.c.name.label("metric"),
            sa.func.avg(tables.score.c.value).label("mean"),
            sa.func.count(tables.score.c.prompt_id.distinct()).label("n_prompts"),
        )
        .join(tables.prompt, tables.prompt.c.id == tables.score.c.prompt_id)
        .join(tables.task, tables.task.c.id == tables.prompt.c.task_id)
        .join(tables.metric, tables.metric.c.id == tables.score.c.metric_id)
        .where(tables.score.c.run_id == run_id, in_partitions_of_runs(session, tables.score, [run_id]))
        .group_by(tables.task.c.name, tables.metric.c.name)
    )
    published = (
        sa.select(
            tables.task.c.name.label("task"),
            tables.metric.c.name.label("metric"),
            tables.task_score.c.value.label("mean"),
            tables.task_score.c.n_prompts.label("n_prompts"),
        )
        .join(tables.task, tables.task.c.id == tables.task_score.c.task_id)
        .join(tables.metric, tables.metric.c.id == tables.task_score.c.metric_id)
        .where(tables.task_score.c.run_id == run_id)
    )
    rows = {
        (row.metric, row.task): {"task": row.task, "metric": row.metric, "mean": row.mean, "n_prompts": row.n_prompts}
        for query in (published, prompts)
        for row in session.execute(query)
    }
    return [rows[key] for key in sorted(rows)]


def load_metrics_of_run(session: Session, run_id: int, unit: Unit) -> list[str]:
    """Return the names of the metrics under which a run has scores of prompts or of whole tasks."""
    metric, run = tables.metric.c, tables.run.c
    joined = sa.join(tables.metric, tables.run, sa.true())
    benchmark_id = session.scalar(sa.select(run.benchmark_id).where(run.id == run_id))
    terms = run.id == run_id, has_scores(session, unit, benchmark_id=benchmark_id)
    return list(session.scalars(sa.select(metric.name).select_from(joined).where(*terms).order_by(metric.id)))
