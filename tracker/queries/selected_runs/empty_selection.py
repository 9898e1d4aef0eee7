"""Explain why a selection holds no scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.selected_runs.conditions import MAX_KEY, has_scores
from tracker.queries.selection import Selection, Unit
from tracker.queries.sql import tables


class BenchmarkName(Protocol):
    """A benchmark as stored: its key, and its name with the revision."""

    @property
    def id(self) -> int:
        """Return the primary key."""

    @property
    def label(self) -> str:
        """Return the name, or name@revision."""


def check_runs_exist(
    session: Session, benchmark: BenchmarkName, metric: str, run_ids: Sequence[int], scored_ids: set[int]
) -> None:
    """Reject selected runs that are not of a benchmark, or have no scores.

    Args:
        session: the store.
        benchmark: of the selection.
        metric: name of the metric.
        run_ids: the selected runs.
        scored_ids: those with scores under the metric.

    Raises:
        NotFoundError: the benchmark has no such run.
        SelectionError: a run has no scores.
    """
    for key in sorted(set(run_ids) - scored_ids):
        looked_up = sa.select(tables.run).where(tables.run.c.id == key)
        run = session.execute(looked_up).first() if key <= MAX_KEY else None
        if run is None or run.benchmark_id != benchmark.id:
            known = session.scalars(
                sa.select(tables.run.c.id).where(tables.run.c.benchmark_id == benchmark.id).order_by(tables.run.c.id)
            )
            raise NotFoundError(f"run of {benchmark.label}", key, known.all())
        raise SelectionError(f"Run {key} has no scores under {metric}. Leave it out, or choose another metric.")


def explain_no_scores(
    session: Session, benchmark: BenchmarkName, selection: Selection, units: Sequence[Unit]
) -> NotFoundError | SelectionError:
    """Return why a selection is empty: the first of its conditions that nothing stored meets."""
    if selection.runs:
        check_runs_exist(session, benchmark, selection.metric or "any metric", selection.runs, set())
    every = (
        sa.select(tables.metric.c.name, tables.run.c.condition, tables.run.c.variant)
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .where(tables.run.c.benchmark_id == benchmark.id, tables.run.c.status == "complete")
        .distinct()
    )
    scored = session.execute(
        every.where(sa.or_(*(has_scores(session, unit, benchmark_id=benchmark.id) for unit in units)))
    ).all()
    if not scored:
        if units == ("prompt",) and session.execute(every.where(has_scores(session, "task"))).first():
            return SelectionError(
                f"{benchmark.label} has scores of whole tasks only, but scores per prompt are needed. Analyses of "
                "tasks are social-choice, voting-rules, task-subsets and sensitivity-sweep."
            )
        count = sa.select(sa.func.count()).where(tables.run.c.benchmark_id == benchmark.id)
        n = session.scalar(count) or 0
        if n and not session.scalar(count.where(tables.run.c.status == "complete")):
            return SelectionError(
                f"{benchmark.label} has no complete runs: its {n} runs are hidden, superseded or partial (damaged or "
                "being evaluated), and can be selected only with --runs. "
                f"List them: suffrage runs list --all --benchmark {benchmark.label}"
            )
        return SelectionError(f"{benchmark.label} has no scores yet. Ingest results: suffrage ingest PATH")
    metrics = sorted({row.name for row in scored})
    if selection.metric is not None and selection.metric not in metrics:
        return NotFoundError(f"metric with scores in {benchmark.label}", selection.metric, metrics)
    if (selection.condition, selection.variant) not in {(row.condition, row.variant) for row in scored}:
        stored = sorted({row.condition + (f" ({row.variant})" if row.variant else "") for row in scored})
        selected = selection.condition + (f" ({selection.variant})" if selection.variant else "")
        return SelectionError(
            f"{benchmark.label} has no run that is {selected}. Stored: {', '.join(stored)}. Select with --condition "
            "and --variant."
        )
    if selection.as_of is not None:
        return SelectionError(f"{benchmark.label} has no runs stored by {selection.as_of}. Choose a later date.")
    where = f" under {selection.metric}" if selection.metric else ""
    where += f" in split {', '.join(selection.split)}" if selection.split else ""
    return SelectionError(f"No run of {benchmark.label} has scores{where} under the condition {selection.condition}.")
