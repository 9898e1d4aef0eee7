"""Select the runs and metrics of an export."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.resolution import BenchmarkKey, MetricKey, find_metric
from tracker.queries.selected_runs.conditions import has_scores
from tracker.queries.selected_runs.runs import select_runs
from tracker.queries.selection import Selection, Unit
from tracker.queries.sql import tables
from tracker.run_fields import RUN_FIELDS, RunFields


@dataclass(frozen=True, kw_only=True)
class ExportedRun(RunFields):
    """An exported run.

    Attributes:
        id: its key.
        model: name of the model.
        metric_ids: keys of the metrics, ascending.
    """

    id: int
    model: str
    metric_ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ExportedRuns:
    """The runs of a selection.

    Attributes:
        runs: in the order of the models' names, then of keys.
        metrics: name of each metric by its key.
        unit: whether its scores are of prompts or of whole tasks.
        n_left_out: runs of the benchmark with such scores that are not selected.
    """

    runs: Sequence[ExportedRun]
    metrics: Mapping[int, str]
    unit: Unit
    n_left_out: int


def select_exported_runs(
    session: Session, benchmark: BenchmarkKey, selection: Selection, unit: Unit | None = None, *, every: bool = False
) -> ExportedRuns:
    """Select the runs of a selection under its metric, or under every metric with scores.

    Args:
        session: the store.
        benchmark: of the selection.
        selection: by default the latest complete run of each model, unless it names runs.
        unit: scores of prompts or of tasks; None uses those of prompts if there are any.
        every: all complete runs, of every condition and variant, instead of the most complete one of each model.

    Raises:
        NotFoundError: a model, run or metric does not exist.
        SelectionError: no run is left.
    """
    units: Sequence[Unit] = ("prompt", "task") if unit is None else (unit,)
    for kind in units:
        metrics = _list_metrics(session, benchmark, selection, kind)
        if not metrics:
            continue
        if every:
            pairs = _select_complete(session, benchmark, selection, metrics, kind)
        else:
            pairs = _select_latest(session, benchmark, selection, metrics, kind)
        runs = _describe_runs(session, pairs)
        of_benchmark = sa.select(sa.func.count(tables.run.c.id.distinct())).select_from(
            sa.join(tables.metric, tables.run, sa.true())
        )
        is_scored = has_scores(session, kind, benchmark_id=benchmark.id)
        n_runs = session.scalar(of_benchmark.where(tables.run.c.benchmark_id == benchmark.id, is_scored)) or 0
        return ExportedRuns(
            runs=runs,
            metrics={metric.id: metric.name for metric in metrics},
            unit=kind,
            n_left_out=n_runs - len(runs),
        )
    if unit == "task" and selection.metric is None:
        raise SelectionError(f"{benchmark.label} has no scores of whole tasks. Export the scores of its prompts.")
    find_metric(session, benchmark, selection, units)  # raises an error that names what is missing
    raise SelectionError(f"{benchmark.label} has no scores.")


def _list_metrics(session: Session, benchmark: BenchmarkKey, selection: Selection, unit: Unit) -> list[MetricKey]:
    metric, run = tables.metric.c, tables.run.c
    query = (
        sa.select(metric.id, metric.name, metric.higher_is_better)
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .where(run.benchmark_id == benchmark.id, has_scores(session, unit, selection.split, benchmark_id=benchmark.id))
        .distinct()
        .order_by(metric.id)
    )
    metrics = [MetricKey(*row) for row in session.execute(query)]
    return [metric for metric in metrics if selection.metric in (None, metric.name)]


def _select_latest(
    session: Session, benchmark: BenchmarkKey, selection: Selection, metrics: Sequence[MetricKey], unit: Unit
) -> dict[int, set[int]]:
    """Return the metrics by run: `select_runs` for each metric with scores."""
    pairs: dict[int, set[int]] = defaultdict(set)
    parts = [replace(selection, models=(model,)) for model in selection.models] or [selection]
    parts = [replace(part, runs=(key,)) for part in parts for key in selection.runs] or parts
    for part in parts:
        problems: list[NotFoundError | SelectionError] = []
        for metric in metrics:
            try:
                for run in select_runs(session, benchmark, metric, unit, part):
                    pairs[run.id].add(metric.id)
            except (NotFoundError, SelectionError) as problem:
                problems.append(problem)
        if len(problems) == len(metrics) and (not selection.runs or not selection.models):
            raise problems[0]
    if not pairs:
        raise problems[0]
    return pairs


def _select_complete(
    session: Session, benchmark: BenchmarkKey, selection: Selection, metrics: Sequence[MetricKey], unit: Unit
) -> dict[int, set[int]]:
    run, model = tables.run.c, tables.model.c
    query = (
        sa.select(run.id, tables.metric.c.id, model.name)
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .join(tables.model, model.id == run.model_id)
        .where(
            run.benchmark_id == benchmark.id,
            run.status == "complete",
            tables.metric.c.id.in_([metric.id for metric in metrics]),
            has_scores(session, unit, selection.split, benchmark_id=benchmark.id),
        )
    )
    rows = session.execute(query).all()
    also = sa.select(tables.model_alias.c.name, model.name).join(
        tables.model, model.id == tables.model_alias.c.model_id
    )
    aliases: dict[str, str] = {row[0]: row[1] for row in session.execute(also)}
    known = {row.name for row in rows}
    names = {name if name in known else aliases.get(name, name) for name in selection.models}
    if lacking := sorted(names - known):
        raise NotFoundError("model with such scores", lacking[0], sorted(known))
    pairs: dict[int, set[int]] = defaultdict(set)
    for run_id, metric_id, name in rows:
        if not names or name in names:
            pairs[run_id].add(metric_id)
    if not pairs:
        raise SelectionError(f"{benchmark.label} has no complete runs. Select runs with --runs.")
    return pairs


def _describe_runs(session: Session, pairs: Mapping[int, set[int]]) -> list[ExportedRun]:
    run: Any = tables.run.c
    query = sa.select(run.id, tables.model.c.name.label("model"), *(run[name] for name in RUN_FIELDS)).join(
        tables.model, tables.model.c.id == run.model_id
    )
    runs = []
    for part in split_keys(sorted(pairs)):
        for row in session.execute(query.where(run.id.in_(part))):
            runs.append(ExportedRun(**row._asdict(), metric_ids=tuple(sorted(pairs[row.id]))))
    return sorted(runs, key=lambda row: (row.model, row.id))
