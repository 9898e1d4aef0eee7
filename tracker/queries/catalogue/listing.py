"""List the store's benchmarks, models and runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.errors import NotFoundError
from tracker.integrity.sealed_rows import find_moved
from tracker.queries.catalogue.model_names import find_model
from tracker.queries.resolution import benchmark_label, find_benchmark
from tracker.queries.selected_runs.conditions import MAX_KEY, has_scores
from tracker.queries.sql import tables
from tracker.run_fields import RunFields, run_values

EXCLUDED_STATUSES = ("hidden", "superseded")
"""Statuses that users give to runs to exclude them."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkRow:
    """A benchmark with its counts.

    Attributes:
        name, revision: as stored.
        n_tasks, n_prompts: number of tasks and prompts; prompts without a task are in no task.
        n_with_text: prompts with a stored text.
        n_models, n_runs: models and runs, counting complete runs.
        metrics: names of the metrics that have scores.
    """

    name: str
    revision: str
    n_tasks: int
    n_prompts: int
    n_with_text: int
    n_models: int
    n_runs: int
    metrics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """A model with its facts.

    Attributes:
        name: its name.
        aliases: its other names.
        organization, family, parameters, released, open_weights: as stored; None if unknown.
        n_runs: its complete runs.
        n_unverified: those of which the harness reports other scores than its rows give.
        benchmarks: benchmarks with complete runs of the model.
    """

    name: str
    aliases: tuple[str, ...]
    organization: str | None
    family: str | None
    parameters: int | None
    released: date | None
    open_weights: bool | None
    n_runs: int
    n_unverified: int
    benchmarks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RunKey:
    """Identification of a run.

    Attributes:
        id: its key; a larger key was ingested later.
        benchmark, model: of the run.
    """

    id: int
    benchmark: str
    model: str


@dataclass(frozen=True, kw_only=True)
class RunRow(RunFields, RunKey):
    """A run, with the fields of `RunFields` as stored; settings may be None.

    Attributes:
        status: as stored.
        superseded_by: key of the run that replaced it; None without one.
        reason: why it is not complete; '' if unknown.
        unverified: scores that its harness reports and that its rows do not give; '' if there are none.
        n_scores: scores of single prompts.
        means: mean score by metric, over prompts if there are any, else over tasks.
        ingested: time of ingestion, UTC, as is ``started``.
        sources: files it came from.
    """

    status: str
    superseded_by: int | None
    reason: str
    unverified: str
    n_scores: int
    means: Mapping[str, float]
    ingested: datetime
    sources: tuple[str, ...]

    def as_record(self) -> dict[str, Any]:
        """The run's fields by name, in the order of the commands' output: ``started`` beside ``ingested``."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        last = {name: record.pop(name) for name in ("started", "ingested", "sources")}
        return record | last


def list_benchmarks(session: Session) -> list[BenchmarkRow]:
    """List all benchmarks, by name."""
    kept = tables.benchmark.c
    tasks = _counted(
        session,
        sa.select(tables.task.c.benchmark_id, sa.func.count())
        .where(tables.task.c.name != "")
        .group_by(tables.task.c.benchmark_id),
    )
    query = (
        sa.select(tables.task.c.benchmark_id, sa.func.count(), sa.func.count(tables.prompt.c.content_hash))
        .join(tables.prompt, tables.prompt.c.task_id == tables.task.c.id)
        .group_by(tables.task.c.benchmark_id)
    )
    prompts = _counted(session, query)
    runs = _counted(
        session,
        sa.select(tables.run.c.benchmark_id, sa.func.count(), sa.func.count(tables.run.c.model_id.distinct()))
        .where(tables.run.c.status == "complete")
        .group_by(tables.run.c.benchmark_id),
    )
    pairs = (
        sa.select(tables.run.c.benchmark_id, tables.metric.c.name)
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .where(tables.run.c.status == "complete", sa.or_(has_scores(session, "prompt"), has_scores(session, "task")))
        .distinct()
    )
    metrics: dict[int, list[str]] = {}
    for key, name in session.execute(pairs):
        metrics.setdefault(key, []).append(name)
    rows = [
        BenchmarkRow(
            name=name,
            revision=revision,
            n_tasks=tasks.get(key, (0,))[0],
            n_prompts=prompts.get(key, (0, 0))[0],
            n_with_text=prompts.get(key, (0, 0))[1],
            n_models=runs.get(key, (0, 0))[1],
            n_runs=runs.get(key, (0, 0))[0],
            metrics=tuple(sorted(metrics.get(key, ()))),
        )
        for key, name, revision in session.execute(sa.select(kept.id, kept.name, kept.revision))
    ]
    return sorted(rows, key=lambda row: (row.name, row.revision))


def list_models(session: Session) -> list[ModelRow]:
    """List all models, by name."""
    aliases: dict[int, list[str]] = {}
    for name, key in session.execute(sa.select(tables.model_alias.c.name, tables.model_alias.c.model_id)):
        aliases.setdefault(key, []).append(name)
    other_names = {name for names in aliases.values() for name in names}  # of merged models too
    answered: dict[int, list[str]] = {}
    pairs = (
        sa.select(tables.run.c.model_id, tables.benchmark.c.name, tables.benchmark.c.revision)
        .join(tables.benchmark, tables.benchmark.c.id == tables.run.c.benchmark_id)
        .where(tables.run.c.status == "complete")
    )
    unverified = _counted(
        session,
        sa.select(tables.run.c.model_id, sa.func.count())
        .where(tables.run.c.status == "complete", tables.run.c.unverified.is_not(None))
        .group_by(tables.run.c.model_id),
    )
    for key, name, revision in session.execute(pairs):
        answered.setdefault(key, []).append(benchmark_label(name, revision))
    rows = [
        ModelRow(
            name=row.name,
            aliases=tuple(sorted(aliases.get(row.id, ()))),
            organization=row.organization,
            family=row.family,
            parameters=row.parameters,
            released=row.released,
            open_weights=row.open_weights,
            n_runs=len(answered.get(row.id, ())),
            n_unverified=unverified.get(row.id, (0,))[0],
            benchmarks=tuple(sorted(set(answered.get(row.id, ())))),
        )
        for row in session.execute(sa.select(tables.model))
        if row.name not in other_names
    ]
    return sorted(rows, key=lambda row: row.name)


def list_runs(
    session: Session, *, benchmark: str | None = None, model: str | None = None, keys: Collection[int] | None = None
) -> list[RunRow]:
    """List all runs of any status, or those of a benchmark, of a model or with some keys, latest first.

    Raises:
        NotFoundError: the benchmark or model does not exist.
    """
    terms: list[sa.ColumnElement[bool]] = []
    if benchmark is not None:
        terms.append(tables.run.c.benchmark_id == find_benchmark(session, benchmark).id)
    if model is not None:
        terms.append(tables.run.c.model_id == find_model(session, model).id)
    if keys is not None:
        terms.append(tables.run.c.id.in_(keys))
    return _rows_of_runs(session, terms)


def find_run(session: Session, key: int) -> RunRow:
    """Return one run.

    Raises:
        NotFoundError: no run has this key.
    """
    rows = _rows_of_runs(session, [tables.run.c.id == key]) if 0 <= key <= MAX_KEY else []
    if not rows:
        raise NotFoundError("run", key, session.scalars(sa.select(tables.run.c.id).order_by(tables.run.c.id)).all())
    return rows[0]


def to_utc(moment: datetime) -> datetime:
    """Return a stored time with its time zone, which SQLite does not store."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _rows_of_runs(session: Session, terms: Sequence[sa.ColumnElement[bool]]) -> list[RunRow]:
    query = (
        sa.select(
            tables.run,
            tables.model.c.name.label("model"),
            tables.benchmark.c.name.label("benchmark"),
            tables.benchmark.c.revision.label("revision"),
        )
        .join(tables.model, tables.model.c.id == tables.run.c.model_id)
        .join(tables.benchmark, tables.benchmark.c.id == tables.run.c.benchmark_id)
        .where(*terms)
        .order_by(tables.run.c.id.desc())
    )
    stored = session.execute(query).all()
    means = load_means_by_run(session, [row.id for row in stored])
    files: dict[int, list[str]] = {}
    pairs = (
        sa.select(tables.run_source.c.run_id, tables.source.c.path)
        .join(tables.source, tables.source.c.id == tables.run_source.c.source_id)
        .join(tables.run, tables.run.c.id == tables.run_source.c.run_id)
        .where(*terms)
        .order_by(tables.source.c.id)
    )
    for key, path in session.execute(pairs):
        files.setdefault(key, []).append(path)
    return [
        RunRow(
            id=row.id,
            benchmark=benchmark_label(row.benchmark, row.revision),
            model=row.model,
            **run_values(row) | {"started": None if row.started is None else to_utc(row.started)},
            status=row.status,
            superseded_by=row.superseded_by,
            reason=row.reason or "",
            unverified=row.unverified or "",
            n_scores=row.n_scores,
            means=means.get(row.id, {}),
            ingested=to_utc(row.ingested),
            sources=tuple(files.get(row.id, ())),
        )
        for row in stored
    ]


def load_means_by_run(session: Session, run_ids: Sequence[int]) -> dict[int, dict[str, float]]:
    """Return the mean score of each run by metric, in the order of the metrics' names."""
    names = {key: name for key, name in session.execute(sa.select(tables.metric.c.id, tables.metric.c.name))}  # noqa: C416
    means: dict[int, dict[str, float]] = {}
    sealed, in_files = tables.sealed_metric, find_moved(session.connection())
    in_store = [key for key in run_ids if key not in in_files]
    # Scores of prompts come last and override those of tasks.
    for scores, keys in ((tables.task_score, run_ids), (tables.score, in_store)):
        for part in split_keys(keys):
            terms: list[sa.ColumnElement[bool]] = [scores.c.run_id.in_(part)]
            if scores is tables.score:
                terms.append(in_partitions_of_runs(session, scores, part))
            query = (
                sa.select(scores.c.run_id, scores.c.metric_id, sa.func.avg(scores.c.value))
                .where(*terms)
                .group_by(scores.c.run_id, scores.c.metric_id)
            )
            for key, metric_id, mean in session.execute(query):
                means.setdefault(key, {})[names[metric_id]] = mean
    for part in split_keys([key for key in run_ids if key in in_files]):
        query = sa.select(sealed.c.run_id, sealed.c.metric_id, sealed.c.mean).where(sealed.c.run_id.in_(part))
        for key, metric_id, mean in session.execute(query):
            means.setdefault(key, {})[names[metric_id]] = mean
    return {key: dict(sorted(by_metric.items())) for key, by_metric in means.items()}


def _counted(session: Session, query: sa.Select[Any]) -> dict[int, tuple[int, ...]]:
    return {key: tuple(counts) for key, *counts in session.execute(query)}
