"""Build the MLflow run of a model's run on a benchmark, with the mean of each task."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partition
from tracker.errors import NotFoundError
from tracker.queries.resolution import benchmark_label
from tracker.queries.sql import tables
from tracker.recording.mlflow.run_spec import (
    LAYOUT,
    MAX_METRICS,
    MlflowRunSpec,
    allowed_names,
    build_names_file,
    format_parameter,
)
from tracker.run_fields import run_values
from tracker.schema import Benchmark, Metric, Model, Run

MAX_SETTINGS = 80
RUNS_EXPERIMENT = "suffrage/runs/"
"""The name of an experiment with the runs of a benchmark begins with it."""
SHOWN_ELSEWHERE = ("label", "settings", "started")
"""Fields of a run that are part of its name, separate parameters, or its time."""


@dataclass(frozen=True, kw_only=True)
class _Column:
    """A run under one metric.

    Attributes:
        metric: its name.
        higher_is_better: whether larger scores are better.
        is_default: whether it is the benchmark's default metric.
        n_expected: number of the benchmark's prompts; of tasks, if only those are published.
        tasks: name of each task, number of its scores, and their mean.
    """

    metric: str
    higher_is_better: bool
    is_default: bool
    n_expected: int
    tasks: Sequence[tuple[str, int, float]]

    @property
    def n(self) -> int:
        return sum(n for _, n, _ in self.tasks)

    @property
    def overall(self) -> dict[str, float]:
        return {
            self.metric: sum(n * mean for _, n, mean in self.tasks) / self.n,
            f"{self.metric}.n": float(self.n),
            f"{self.metric}.coverage": self.n / self.n_expected,
        }

    @property
    def by_task(self) -> dict[str, float]:
        ordered = sorted(self.tasks, key=lambda task: (-task[1], task[0])) if len(self.tasks) > 1 else []
        # MLflow draws metrics with a slash in sections before all others. Without one, the overall mean comes first.
        return {f"{self.metric}: {name.replace('/', '_') or 'other'}": mean for name, _, mean in ordered}


def run_versions(session: Session, keys: Collection[int] | None = None) -> dict[int, str]:
    """Return the version of each complete run's MLflow run.

    It changes with the scores and the model of the run, and with the benchmark's prompts.
    """
    run, task, task_score = tables.run, tables.task, tables.task_score
    prompt_counts = (
        sa.select(task.c.benchmark_id, sa.func.count().label("n"))
        .join(tables.prompt, tables.prompt.c.task_id == task.c.id)
        .group_by(task.c.benchmark_id)
        .subquery()
    )
    published = (
        sa.select(task_score.c.run_id, sa.func.count().label("n"), sa.func.sum(task_score.c.value).label("total"))
        .group_by(task_score.c.run_id)
        .subquery()
    )
    query = (
        sa.select(run.c.id, run.c.checksum, run.c.model_id, prompt_counts.c.n, published.c.n, published.c.total)
        .outerjoin(prompt_counts, prompt_counts.c.benchmark_id == run.c.benchmark_id)
        .outerjoin(published, published.c.run_id == run.c.id)
        .where(run.c.status == "complete")
        .order_by(run.c.id)
    )
    if keys is not None:
        query = query.where(run.c.id.in_(keys))
    return {
        row[0]: "-".join([LAYOUT, *(str(part) for part in row[1:] if part is not None)])
        for row in session.execute(query)
    }


def build_model_run_spec(session: Session, run_id: int) -> MlflowRunSpec:
    """Build the MLflow run of a run: mean, number and coverage under each metric, and the mean of each task.

    Raises:
        NotFoundError: no complete run has this key.
    """
    versions = run_versions(session, [run_id])
    if run_id not in versions:
        raise NotFoundError("run that is complete", run_id, run_versions(session))
    run = session.get_one(Run, run_id)
    model, stored = session.get_one(Model, run.model_id), session.get_one(Benchmark, run.benchmark_id)
    benchmark = benchmark_label(stored.name, stored.revision)
    columns = sorted(_columns(session, run), key=lambda column: (not column.is_default, -column.n, column.metric))
    every: dict[str, float] = {}
    for part in [*(column.overall for column in columns), *(column.by_task for column in columns)]:
        every |= part
    metrics = dict(list(every.items())[:MAX_METRICS])
    parameters = _parameters(run, model) | _sources(session, run_id)
    metric_names, parameter_names = allowed_names(metrics), allowed_names(parameters)
    primary = columns[0] if columns else None
    settings = run.settings or {}
    tags = {"suffrage.benchmark": benchmark, "suffrage.model": model.name, "suffrage.checksum": run.checksum}
    if not_shown := list(every)[MAX_METRICS:]:
        tags["suffrage.left_out"] = f"{len(not_shown)} of {len(every)} metrics are only in the store: {not_shown}"
    return MlflowRunSpec(
        kind="run",
        ref_id=run_id,
        version=versions[run_id],
        experiment=f"{RUNS_EXPERIMENT}{benchmark}",
        about_experiment=f"Models on {benchmark}: mean, number of scores, coverage, and the mean of each task.",
        primary_metric=metric_names[primary.metric] if primary else "",
        higher_is_better=primary.higher_is_better if primary else True,
        n_models=_count_runs(session, run.benchmark_id),
        run_name=" ".join(
            part
            for part in (model.name, run.condition if run.condition != "full" else "", run.variant, run.label)
            if part
        ),
        started=run.started or run.ingested,
        ended=run.ingested,
        parameters={parameter_names[name]: format_parameter(value) for name, value in parameters.items()},
        metrics={metric_names[name]: value for name, value in metrics.items()},
        tags=tags,
        description=f"**{model.name}** on {benchmark}: {run.n_scores:,} scores. Run {run_id} of the store.",
        page=f"/run/{run_id}",
        experiment_page=f"/benchmark/{run.benchmark_id}",
        files=build_names_file(metric_names | parameter_names)
        | ({"settings.json": json.dumps(settings, indent=2, sort_keys=True).encode()} if settings else {}),
    )


def _count_runs(session: Session, benchmark_id: int) -> int:
    run = tables.run.c
    of_benchmark = (run.benchmark_id == benchmark_id, run.status == "complete")
    return session.scalar(sa.select(sa.func.count(run.id)).where(*of_benchmark)) or 0


def _columns(session: Session, run: Run) -> list[_Column]:
    default = session.get_one(Benchmark, run.benchmark_id).default_metric_id
    prompt, score, task, task_score = tables.prompt, tables.score, tables.task, tables.task_score
    of_benchmark = task.c.benchmark_id == run.benchmark_id
    n_prompts = session.scalar(
        sa.select(sa.func.count()).select_from(prompt).join(task, task.c.id == prompt.c.task_id).where(of_benchmark)
    )
    task_counts: dict[int | None, int] = dict(
        session.execute(
            sa.select(task_score.c.metric_id, sa.func.count(sa.distinct(task_score.c.task_id)))
            .join(task, task.c.id == task_score.c.task_id)
            .where(of_benchmark)
            .group_by(task_score.c.metric_id)
        ).all()
    )
    averaged = (  # over trials
        sa.select(score.c.metric_id, score.c.prompt_id, sa.func.avg(score.c.value).label("value"))
        .where(score.c.run_id == run.id, in_partition(session, score, run.benchmark_id))
        .group_by(score.c.metric_id, score.c.prompt_id)
        .subquery()
    )
    by_prompt = session.execute(
        sa.select(averaged.c.metric_id, task.c.name, sa.func.count(), sa.func.avg(averaged.c.value))
        .join(prompt, prompt.c.id == averaged.c.prompt_id)
        .join(task, task.c.id == prompt.c.task_id)
        .group_by(averaged.c.metric_id, task.c.name)
    ).all()
    published = session.execute(
        sa.select(task_score.c.metric_id, task.c.name, sa.literal(1), task_score.c.value)
        .join(task, task.c.id == task_score.c.task_id)
        .where(task_score.c.run_id == run.id)
    ).all()
    columns = []
    for metric in session.scalars(sa.select(Metric)):
        fine = [(name, n, mean) for key, name, n, mean in by_prompt if key == metric.id]
        tasks = fine or [(name, n, mean) for key, name, n, mean in published if key == metric.id]
        if tasks:
            columns.append(
                _Column(
                    metric=metric.name,
                    higher_is_better=metric.higher_is_better,
                    is_default=metric.id == default,
                    n_expected=(n_prompts or 0) if fine else task_counts[metric.id],
                    tasks=tasks,
                )
            )
    return columns


def _parameters(run: Run, model: Model) -> dict[str, Any]:
    facts = {
        "model": model.name,
        "organization": model.organization,
        "family": model.family,
        "parameters": model.parameters,
    }
    fields = run_values(run).items()
    facts |= {name: value for name, value in fields if name not in SHOWN_ELSEWHERE and value is not False}
    settings = dict(list(_flat(run.settings or {}, "settings").items())[:MAX_SETTINGS])
    return {name: value for name, value in (facts | settings).items() if value not in (None, "")}


def _flat(settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in sorted(settings.items()):
        flat |= _flat(value, f"{prefix}.{name}") if isinstance(value, Mapping) else {f"{prefix}.{name}": value}
    return flat


def _sources(session: Session, run_id: int) -> dict[str, str]:
    source, run_source = tables.source, tables.run_source
    files = session.execute(
        sa.select(source.c.path, source.c.harness)
        .join(run_source, run_source.c.source_id == source.c.id)
        .where(run_source.c.run_id == run_id)
    ).all()
    parameters = {"source": ", ".join(sorted(file.path for file in files))}
    if harness := sorted({file.harness for file in files if file.harness}):
        parameters["harness"] = ", ".join(harness)
    return parameters if files else {}
