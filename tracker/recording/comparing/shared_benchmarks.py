"""Compare two models on every benchmark that both have scores for, and pool the differences.

Each benchmark has the numbers of `suffrage compare BENCHMARK MODEL_A MODEL_B`. Differences are pooled over benchmarks
whose metrics have the same finite bounds, so that a difference means the same on each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import transaction
from tracker.errors import SuffrageError
from tracker.queries.resolution import benchmark_label, find_benchmark, find_metric
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.pipeline import compute_report
from tracker.recording.record import make_metric_rows
from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.pooling.random_effects import MIN_STUDIES, PooledDifference, pool_differences

ANALYSIS = "comparison"


@dataclass(frozen=True, kw_only=True)
class SharedBenchmark:
    """The comparison of two models on one benchmark.

    Attributes:
        benchmark, metric: of the scores.
        n: shared prompts.
        mean_a, mean_b: means as stored.
        difference: positive if the first model is better.
        stderr: of the difference; None if undefined.
        low, high, pvalue: of the difference, for every value of missing scores; None if undefined.
        extremes: the difference and its error with every missing score set against the first model, and for it; None if
            no score is missing.
        holm: the p-value adjusted for all benchmarks; None without one.
        bounds: smallest and largest possible score; None if either is unknown.
        unpooled: why the difference is not in an overall one; '' if it is.
    """

    benchmark: str
    metric: str
    n: int
    mean_a: float
    mean_b: float
    difference: float
    stderr: float | None
    low: float | None
    high: float | None
    pvalue: float | None
    holm: float | None = None
    bounds: tuple[float, float] | None = None
    unpooled: str = ""
    extremes: tuple[tuple[float, float], tuple[float, float]] | None = None


@dataclass(frozen=True, kw_only=True)
class SharedBenchmarks:
    """The comparison of two models on all shared benchmarks.

    Attributes:
        models: the two names.
        rows: one per benchmark, by name.
        pooled: overall differences by the bounds of the scores.
        failed: why other benchmarks with runs of both models are not compared, by name.
    """

    models: tuple[str, str]
    rows: tuple[SharedBenchmark, ...]
    pooled: Mapping[tuple[float, float], PooledDifference]
    failed: Mapping[str, str]


def compare_on_shared_benchmarks(
    engine: sa.Engine, models: tuple[str, str], selection: Selection, parameters: Mapping[str, Any]
) -> SharedBenchmarks:
    """Compare two models on every benchmark with complete runs of both.

    Args:
        engine: the store.
        models: their names.
        selection: metric, condition, variant, date and clusters, for every benchmark; its benchmark is ignored.
        parameters: of the analysis `comparison`.
    """
    with transaction(engine, write=False) as session:
        names = list_shared_benchmarks(session, models)
    rows, failed = [], {}
    for name in names:
        chosen = replace(selection, benchmark=name, models=models)
        try:
            rows.append(_compare(engine, models, chosen, parameters))
        except SuffrageError as error:
            failed[name] = str(error).partition(". ")[0].rstrip(".")
    known = np.array([np.nan if row.pvalue is None else row.pvalue for row in rows])
    adjusted = holm_values(known).tolist() if rows else []
    rows = [replace(row, holm=None if np.isnan(p) else p) for row, p in zip(rows, adjusted, strict=True)]
    return _pool(models, rows, failed)


def list_shared_benchmarks(session: Session, models: tuple[str, str]) -> list[str]:
    """Return the labels of the benchmarks with complete runs of both models, by name.

    Args:
        session: the store.
        models: names.
    """
    run, model, benchmark = tables.run.c, tables.model.c, tables.benchmark.c
    stored = session.execute(
        sa.select(benchmark.name, benchmark.revision)
        .join(tables.run, run.benchmark_id == benchmark.id)
        .join(tables.model, model.id == run.model_id)
        .where(run.status == "complete", model.name.in_(models))
        .group_by(benchmark.id, benchmark.name, benchmark.revision)
        .having(sa.func.count(sa.distinct(model.id)) == len(set(models)))
    )
    return sorted(benchmark_label(name, revision) for name, revision in stored)


def _compare(
    engine: sa.Engine, models: tuple[str, str], selection: Selection, parameters: Mapping[str, Any]
) -> SharedBenchmark:
    with transaction(engine, write=False) as session:
        benchmark = find_benchmark(session, selection.benchmark)
        metric, _ = find_metric(session, benchmark, selection, ("prompt",))
    options = {**parameters, "model_a": models[0], "model_b": models[1]}
    report = compute_report(engine, ANALYSIS, replace(selection, metric=metric.name), options)
    values = {row.name: row.value for row in make_metric_rows(report.finding)}
    has_bounds = metric.lower is not None and metric.upper is not None
    return SharedBenchmark(
        benchmark=benchmark.label,
        metric=metric.name,
        n=int(values["n_prompts"] or 0),
        mean_a=values["mean_a"] or 0.0,
        mean_b=values["mean_b"] or 0.0,
        difference=values["difference"] or 0.0,
        stderr=values["stderr"],
        low=values["low"],
        high=values["high"],
        pvalue=values["pvalue"],
        bounds=(metric.lower or 0.0, metric.upper or 0.0) if has_bounds else None,
        extremes=_read_extremes(values),
    )


def _read_extremes(values: Mapping[str, float | None]) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return the extremes of the difference with their errors, from the metrics; None if no score is missing."""
    if values.get("all.least") is None:
        return None
    least, most = ((values[f"all.{name}"] or 0.0, values[f"all.{name}.stderr"] or 0.0) for name in ("least", "most"))
    return least, most


def _pool(models: tuple[str, str], rows: Sequence[SharedBenchmark], failed: Mapping[str, str]) -> SharedBenchmarks:
    """Pool the differences of benchmarks with equal bounds, and state why others are not pooled."""
    usable: Counter[tuple[float, float] | None] = Counter(
        row.bounds for row in rows if row.bounds is not None and row.stderr
    )
    explained = [replace(row, unpooled=_explain_unpooled(row, usable)) for row in rows]
    pooled = {}
    for bounds in sorted({row.bounds for row in explained if row.bounds is not None and not row.unpooled}):
        chosen = [row for row in explained if row.bounds == bounds and not row.unpooled]
        pooled[bounds] = pool_rows(chosen)
    return SharedBenchmarks(models=models, rows=tuple(explained), pooled=pooled, failed=failed)


def pool_rows(rows: Sequence[SharedBenchmark]) -> PooledDifference:
    """Return the overall difference; its intervals and p-value unite those of both extremes of missing scores.

    Args:
        rows: at least `MIN_STUDIES` with positive errors, in one unit.
    """
    measured = [(row.difference, row.stderr or 0.0) for row in rows]
    bounds = rows[0].bounds
    largest = math.inf if bounds is None else abs(bounds[1] - bounds[0])
    pooled = pool_differences(*np.array(measured).T, largest=largest)
    cases = []
    for place in (0, 1):
        ends = [row.extremes[place] if row.extremes else known for row, known in zip(rows, measured, strict=True)]
        if ends == measured or not all(error > 0 for _, error in ends):
            return pooled
        cases.append(pool_differences(*np.array(ends).T, largest=largest))
    worst, best = cases
    is_turnable, every = worst.mean <= 0 <= best.mean, (pooled, *cases)
    return replace(
        pooled,
        **{name: min(getattr(case, name) for case in every) for name in ("low", "predicted_low", "weighted_low")},
        **{name: max(getattr(case, name) for case in every) for name in ("high", "predicted_high", "weighted_high")},
        pvalue=1.0 if is_turnable else max(worst.pvalue, best.pvalue),
    )


def _explain_unpooled(row: SharedBenchmark, usable: Mapping[tuple[float, float] | None, int]) -> str:
    if row.bounds is None:
        return f"{row.metric} has no known bounds"
    if not row.stderr:
        return "the difference has no standard error"
    if usable[row.bounds] < MIN_STUDIES:
        low, high = row.bounds
        return f"fewer than {MIN_STUDIES} benchmarks have scores from {low:g} to {high:g}"
    return ""
