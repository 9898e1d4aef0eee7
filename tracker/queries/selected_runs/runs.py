"""Resolve the runs of a selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.resolution import BenchmarkKey, MetricKey
from tracker.queries.run_choice import RunRow, choose_latest
from tracker.queries.selected_runs.conditions import has_scores, run_conditions
from tracker.queries.selected_runs.empty_selection import check_runs_exist, explain_no_scores
from tracker.queries.selection import Selection, Unit
from tracker.queries.sql import tables


class SelectedRun(NamedTuple):
    """A selected run.

    Attributes:
        id: primary key.
        column: the model's name; with the run's key if the model is selected more than once.
        condition: ``full`` or ``answer_only``.
        model: the model's name.
    """

    id: int
    column: str
    condition: str
    model: str


def select_runs(
    session: Session,
    benchmark: BenchmarkKey,
    metric: MetricKey,
    unit: Unit | None,
    selection: Selection,
    *,
    every: bool = False,
) -> list[SelectedRun]:
    """Return the runs of a selection, in the order of the models' names.

    Unless runs are selected, these are one complete run of each model with scores under the metric; see
    `tracker.queries.run_choice`.

    Args:
        session: the store.
        benchmark: of the selection.
        metric: metric for which the runs must have scores.
        unit: of prompts, of tasks, or (None) of either.
        selection: models, runs, condition, variant and date.
        every: whether to return all complete runs of each model.

    Raises:
        NotFoundError: a model or run does not exist.
        SelectionError: no run is left.
    """
    rows = _find_scored_runs(session, benchmark, metric, unit, selection)
    if selection.runs:
        check_runs_exist(session, benchmark, metric.name, selection.runs, {row.id for row in rows})
    if selection.models:
        names = resolve_model_names(session, selection.models, [row.name for row in rows])
        rows = [row for row in rows if row.name in names]
    if not (selection.runs or every):
        rows = choose_latest(session, metric.id, rows, by_task=unit is None, split=selection.split)
    if not rows:
        raise explain_no_scores(session, benchmark, selection, ("prompt", "task") if unit is None else (unit,))
    return _as_columns(rows)


def select_runs_of_models(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, selection: Selection, models: Collection[str]
) -> list[SelectedRun]:
    """Return the run of each of some models that `select_runs` would return, with scores of prompts under a metric.

    Args:
        session: the store.
        benchmark: of the selection.
        metric: metric for which the runs must have scores.
        selection: condition, variant and date; it must not name runs.
        models: names.
    """
    rows = _find_scored_runs(session, benchmark, metric, "prompt", selection)
    rows = [row for row in rows if row.name in models]
    return _as_columns(choose_latest(session, metric.id, rows, by_task=False, split=selection.split))


def list_scored_runs(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, unit: Unit | None, selection: Selection
) -> list[SelectedRun]:
    """Return every complete run of a selection with scores under a metric, whatever its models.

    Args:
        session: the store.
        benchmark: of the selection.
        metric: metric for which the runs must have scores.
        unit: of prompts, of tasks, or (None) of either.
        selection: runs, condition, variant, split and date.
    """
    return _as_columns(_find_scored_runs(session, benchmark, metric, unit, selection))


def join_conditions(runs: Sequence[SelectedRun]) -> str:
    """Return the conditions of some runs: ``full``, ``answer_only`` or ``answer_only+full``."""
    return "+".join(sorted({run.condition for run in runs}))


def _find_scored_runs(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, unit: Unit | None, selection: Selection
) -> list[RunRow]:
    """Return key, model and condition of every run of a selection with scores under a metric, by key."""
    split = () if selection.runs else selection.split
    of_prompts = has_scores(session, "prompt", split, benchmark_id=benchmark.id)
    of_tasks = has_scores(session, "task")
    is_scored = {"prompt": of_prompts, "task": of_tasks}[unit] if unit else of_prompts | of_tasks
    query = (
        sa.select(tables.run.c.id, tables.model.c.name, tables.run.c.condition)
        .join(tables.model, tables.model.c.id == tables.run.c.model_id)
        .join(tables.metric, tables.metric.c.id == metric.id)
        .where(*run_conditions(benchmark.id, selection), is_scored)
        .order_by(tables.run.c.id)
    )
    return list(session.execute(query).all())


def _as_columns(rows: Sequence[RunRow]) -> list[SelectedRun]:
    """Return runs by the names of their models, then by key."""
    times = Counter(name for _, name, _ in rows)
    return [
        SelectedRun(key, name if times[name] == 1 else f"{name} (run {key})", condition, name)
        for key, name, condition in sorted(rows, key=itemgetter(1, 0))
    ]


def resolve_model_names(session: Session, selected: Sequence[str], known: Sequence[str]) -> set[str]:
    """Return the names of some models, which may be selected by an alias.

    Args:
        session: the store.
        selected: names and aliases.
        known: names of the models with scores.

    Raises:
        NotFoundError: a model has no scores.
    """
    aliases = sa.select(tables.model_alias.c.name.label("alias"), tables.model.c.name).join(
        tables.model, tables.model.c.id == tables.model_alias.c.model_id
    )
    names = {row.alias: row.name for row in session.execute(aliases)} | {name: name for name in known}
    for name in selected:
        if names.get(name) not in known:
            raise NotFoundError("model with such scores", name, sorted(set(known)))
    return {names[name] for name in selected}
