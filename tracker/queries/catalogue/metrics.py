"""List the metrics of the store's benchmarks."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.resolution import UNITS, BenchmarkKey, benchmark_label, default_order, list_metrics
from tracker.queries.selected_runs.conditions import has_scores
from tracker.queries.selection import Selection
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class BenchmarkMetric:
    """A metric with scores in a benchmark.

    Attributes:
        benchmark, metric: names.
        default: whether commands use it that name no metric.
        better: ``higher`` or ``lower``.
        lower, upper: smallest and largest possible score; None where unbounded or unknown.
        n_runs: runs with scores under it, of any status.
    """

    benchmark: str
    metric: str
    default: bool
    better: str
    lower: float | None
    upper: float | None
    n_runs: int


def list_benchmark_metrics(session: Session) -> list[BenchmarkMetric]:
    """List the metrics with scores, by benchmark, the default metric first."""
    benchmark, metric, run = tables.benchmark.c, tables.metric.c, tables.run.c
    query = (
        sa.select(
            *(benchmark.id, benchmark.name.label("benchmark"), benchmark.revision, benchmark.default_metric_id),
            *(metric.id.label("metric_id"), metric.name, metric.higher_is_better, metric.lower, metric.upper),
            sa.func.count(run.id).label("n_runs"),
        )
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .join(tables.benchmark, benchmark.id == run.benchmark_id)
        .where(sa.or_(has_scores(session, "prompt"), has_scores(session, "task")))
        .group_by(*(benchmark[name] for name in ("id", "name", "revision", "default_metric_id")))
        .group_by(*(metric[name] for name in ("id", "name", "higher_is_better", "lower", "upper")))
        .order_by(sa.func.min(run.id), metric.id)
    )
    rows = session.execute(query).all()
    benchmarks = {
        row.id: BenchmarkKey(row.id, benchmark_label(row.benchmark, row.revision), row.default_metric_id)
        for row in rows
    }
    defaults = {key: _find_default(session, kept) for key, kept in benchmarks.items()}
    rows = sorted(rows, key=lambda row: (row.benchmark, row.revision, row.metric_id != defaults[row.id]))
    return [
        BenchmarkMetric(
            benchmark=benchmarks[row.id].label,
            metric=row.name,
            default=defaults[row.id] == row.metric_id,
            better="higher" if row.higher_is_better else "lower",
            lower=row.lower,
            upper=row.upper,
            n_runs=row.n_runs,
        )
        for row in rows
    ]


def find_metric_id(session: Session, benchmark: BenchmarkKey, name: str) -> int:
    """Return the key of a metric with scores in a benchmark, of runs of any status.

    Raises:
        NotFoundError: the benchmark has no scores under it.
    """
    scored = sa.or_(has_scores(session, "prompt", benchmark_id=benchmark.id), has_scores(session, "task"))
    query = (
        sa.select(tables.metric.c.name, tables.metric.c.id)
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .where(tables.run.c.benchmark_id == benchmark.id, scored)
        .distinct()
    )
    metrics = dict(session.execute(query).all())
    if name not in metrics:
        raise NotFoundError(f"metric with scores in {benchmark.label}", name, sorted(metrics))
    return int(metrics[name])


def _find_default(session: Session, benchmark: BenchmarkKey) -> int | None:
    """Return the key of the metric that `find_metric` chooses for leaderboards; None without complete runs."""
    selection = Selection(benchmark=benchmark.label)
    metrics = [metric for unit in UNITS for metric in list_metrics(session, benchmark, selection, unit)]
    default = min(metrics, key=lambda metric: default_order(benchmark, metric.id, metric.name), default=None)
    return None if default is None else default.id
