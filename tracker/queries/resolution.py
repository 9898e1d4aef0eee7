"""Resolve the names of a selection to keys: benchmark, metric, tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import AmbiguousError, NotFoundError
from tracker.name_lists import join_names
from tracker.queries.notices import add_notice, set_default_metric
from tracker.queries.selected_runs.conditions import has_scores, run_conditions
from tracker.queries.selected_runs.empty_selection import explain_no_scores
from tracker.queries.selection import Selection, Unit
from tracker.queries.sql import tables
from tracker.queries.sql.kept_reads import read_once

UNITS: tuple[Unit, ...] = ("prompt", "task")

MAX_RANKED_RUNS = 1000
"""Runs whose benchmarks `find_ranking` looks at."""

MAX_NAMES = 8


@dataclass(frozen=True)
class BenchmarkKey:
    """A benchmark as stored.

    Attributes:
        id: primary key.
        label: its name, or name@revision.
        default_metric_id: key of the metric of selections that name none; None if the first stored one is used.
    """

    id: int
    label: str
    default_metric_id: int | None = None


CONFIDENCE = "gold_probability", "label_probability"
"""Prefix of metrics that measure a model's confidence; they are not used for rankings by default."""


@dataclass(frozen=True)
class MetricKey:
    """A metric as stored.

    Attributes:
        id: primary key.
        name: its name.
        higher_is_better: whether larger scores are better.
        lower, upper: smallest and largest possible score; None where unbounded or unknown.
    """

    id: int
    name: str
    higher_is_better: bool
    lower: float | None = None
    upper: float | None = None

    @property
    def worst(self) -> float | None:
        """The worst possible score."""
        return self.lower if self.higher_is_better else self.upper

    @property
    def best(self) -> float | None:
        """The best possible score."""
        return self.upper if self.higher_is_better else self.lower


def benchmark_label(name: str, revision: str) -> str:
    """Return the label of a benchmark: its name, with the revision if there is one."""
    return f"{name}@{revision}" if revision else name


def find_benchmark(session: Session, name: str) -> BenchmarkKey:
    """Return the benchmark of that name, or name@revision.

    Raises:
        NotFoundError: the benchmark does not exist.
        AmbiguousError: the benchmark has several revisions, and none is the default.
    """
    columns = (tables.benchmark.c[column] for column in ("id", "name", "revision", "default_metric_id"))
    stored = read_once(session, "benchmarks", lambda: session.execute(sa.select(*columns)).all())
    by_label = {benchmark_label(name, revision): (key, metric) for key, name, revision, metric in stored}
    if name in by_label:
        key, metric = by_label[name]
        return BenchmarkKey(key, name, metric)
    revisions = sorted(
        benchmark_label(stored_name, revision) for _, stored_name, revision, _ in stored if stored_name == name
    )
    if len(revisions) > 1:
        raise AmbiguousError(f"Benchmark {name!r} has several revisions. Name one: {', '.join(revisions)}.")
    if not revisions:
        hint = ""
        if session.execute(sa.select(tables.model.c.id).where(tables.model.c.name == name)).first():
            hint = f"{name!r} is a model: `suffrage history {name}` shows its scores."
        raise NotFoundError("benchmark", name, sorted(by_label), hint)
    key, metric = by_label[revisions[0]]
    return BenchmarkKey(key, revisions[0], metric)


def find_metric(
    session: Session,
    benchmark: BenchmarkKey,
    selection: Selection,
    units: Sequence[Unit],
    *,
    option: str = "--metric NAME",
) -> tuple[MetricKey, Unit]:
    """Return the metric of a selection, and the unit of its scores.

    A selection that names none gets the default metric of the benchmark: the chosen one, else the first that was stored
    besides the probabilities of reference answers. If there are several, a notice reports it.

    Args:
        session: the store.
        benchmark: of the selection.
        selection: names a metric, or none.
        units: accepted units; the first with any scores under the metric is used.
        option: option that names another metric, for the notice.

    Raises:
        NotFoundError: the benchmark has no scores under the metric.
        SelectionError: the benchmark has no scores.
    """
    by_unit = {unit: list_metrics(session, benchmark, selection, unit) for unit in units}
    for unit, metrics in by_unit.items():
        for metric in metrics:
            if selection.metric == metric.name:
                return metric, unit
    if selection.metric is None:
        metrics = [metric for unit in units for metric in by_unit[unit]]
        main = {metric.id for metric in metrics if not metric.name.startswith(CONFIDENCE)}
        default = min(metrics, key=lambda metric: default_order(benchmark, metric.id, metric.name), default=None)
        if default is not None:
            if len(main) > 1:
                _report_default(session, benchmark, default, metrics, option)
            return default, next(unit for unit in units if default in by_unit[unit])
    raise explain_no_scores(session, benchmark, selection, units)


def default_order(benchmark: BenchmarkKey, metric_id: int, name: str) -> tuple[bool, bool]:
    """Return a key that sorts the metrics of a benchmark, the default first; ties stay in the order of storage.

    Args:
        benchmark: with the chosen default, if there is one.
        metric_id: key of the metric.
        name: name of the metric.
    """
    return metric_id != benchmark.default_metric_id, name.startswith(CONFIDENCE)


def find_ranking(session: Session, run_ids: Sequence[int]) -> str | None:
    """Return the label of the first benchmark of some runs that can be ranked; None without one."""
    run, benchmark = tables.run.c, tables.benchmark.c
    stored = session.execute(
        sa.select(benchmark.id, benchmark.name, benchmark.revision)
        .where(benchmark.id.in_(sa.select(run.benchmark_id).where(run.id.in_(run_ids[:MAX_RANKED_RUNS]))))
        .order_by(benchmark.id)
    )
    for key, name, revision in stored.all():
        label = benchmark_label(name, revision)
        selection = Selection(benchmark=label)
        if any(list_metrics(session, BenchmarkKey(key, label), selection, unit) for unit in UNITS):
            return label
    return None


def list_metrics(session: Session, benchmark: BenchmarkKey, selection: Selection, unit: Unit) -> list[MetricKey]:
    """Return the metrics with scores in a selection, in the order in which they were stored first."""
    names = "id", "name", "higher_is_better", "lower", "upper"
    is_scored = *run_conditions(benchmark.id, selection), has_scores(session, unit, benchmark_id=benchmark.id)
    first_run = sa.select(tables.run.c.id).where(*is_scored).order_by(tables.run.c.id).limit(1)
    columns = *(tables.metric.c[name] for name in names), first_run.correlate(tables.metric).label("first_run")
    metric = sa.select(*columns).subquery().c
    query = sa.select(*(metric[name] for name in names)).where(metric.first_run.is_not(None))
    query = query.order_by(metric.first_run, metric.id)
    chosen = selection.runs, selection.condition, selection.variant, selection.as_of
    rows = read_once(session, ("metrics", benchmark.id, unit, *chosen), lambda: session.execute(query).all())
    return [MetricKey(*row) for row in rows]


def _report_default(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, metrics: Sequence[MetricKey], option: str
) -> None:
    names = join_names(sorted({known.name for known in metrics} - {metric.name}), MAX_NAMES)
    text = f"Metric of {benchmark.label}: {metric.name}, its default. Choose another with {option}: {names}"
    add_notice(session, text)
    set_default_metric(session, benchmark.id, metric.name)


def select_tasks(session: Session, benchmark: BenchmarkKey, selection: Selection) -> dict[int, str]:
    """Return the name of each task of a selection by its key, in the order of the names.

    Tasks may be selected by an alias.

    Raises:
        NotFoundError: the benchmark has no task of that name.
    """
    task, alias = tables.task.c, tables.task_alias.c
    task_query = sa.select(task.id, task.name).where(task.benchmark_id == benchmark.id)
    alias_query = sa.select(alias.name, alias.task_id).where(alias.benchmark_id == benchmark.id)
    stored = read_once(session, ("tasks", benchmark.id), lambda: session.execute(task_query).all())
    names = {row.name for row in stored}
    if selection.tasks:
        rows = read_once(session, ("task_aliases", benchmark.id), lambda: session.execute(alias_query).all())
        aliases = {row.name: row.task_id for row in rows if row.name in selection.tasks}
        for name in selection.tasks:
            if name not in names and name not in aliases:
                raise NotFoundError("task", name, sorted(names))
        by_name = {row.id for row in stored if row.name in selection.tasks and row.name not in aliases}
        chosen = by_name | {*aliases.values()}
        stored = [row for row in stored if row.id in chosen]
    return {row.id: row.name for row in sorted(stored, key=lambda row: row.name)}
