"""List the metrics of the store's benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.resolution import CONFIDENCE, BenchmarkKey, benchmark_label, has_scores
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
            sa.func.min(run.id).label("first_run"),
            sa.func.min(sa.case((run.status == "complete", 0), else_=1)).label("excluded"),
        )
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .join(tables.benchmark, benchmark.id == run.benchmark_id)
        .where(sa.or_(has_scores("prompt"), has_scores("task")))
        .group_by(*(benchmark[name] for name in ("id", "name", "revision", "default_metric_id")))
        .group_by(*(metric[name] for name in ("id", "name", "higher_is_better", "lower", "upper")))
    )
    rows = sorted(session.execute(query).all(), key=_default_order)
    first: dict[int, int] = {}
    for row in rows:
        first.setdefault(row.id, row.metric_id)
    return [
        BenchmarkMetric(
            benchmark=benchmark_label(row.benchmark, row.revision),
            metric=row.name,
            default=first[row.id] == row.metric_id,
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
    scored = sa.or_(has_scores("prompt"), has_scores("task"))
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


def _default_order(row: sa.Row[*tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the place of a metric in a benchmark, as in `tracker.queries.resolution.find_metric`."""
    is_default = row.metric_id == row.default_metric_id
    is_confidence = str(row.name).startswith(CONFIDENCE)
    return (row.benchmark, row.revision, not is_default, row.excluded, is_confidence, row.first_run, row.metric_id)
