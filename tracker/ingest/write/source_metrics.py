"""Metrics under which files were stored: the same content is not stored under a second metric by mistake."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import ConflictError
from tracker.ingest.measurement import ParsedFile
from tracker.ingest.write.stored_runs import RunUpdate
from tracker.name_lists import join_names
from tracker.schema import Metric, Source, SourceMetric

MAX_NAMES = 5


def check_metrics(
    session: Session, parsed: ParsedFile, updates: Sequence[RunUpdate], benchmark_names: Mapping[int, str]
) -> None:
    """Check that the store does not have the content of a file under other metrics.

    The content is the same if its bytes are, or if the scores of stored runs under a new metric equal those under a
    stored one that the file does not have.

    Raises:
        ConflictError: it has.
    """
    known: dict[int, set[int]] = defaultdict(set)
    columns: Any = SourceMetric
    query = sa.select(columns.benchmark_id, columns.metric_id).join(Source, columns.source_id == Source.id)
    for benchmark, metric in session.execute(query.where(Source.digest == parsed.digest)):  # type: ignore[arg-type]
        known[benchmark].add(metric)
    for benchmark, metrics in _metrics_by_benchmark(updates).items():
        if known[benchmark] and (new := metrics - known[benchmark]):
            raise _conflict(
                session, parsed, benchmark_names[benchmark], known[benchmark] - metrics or known[benchmark], new
            )
    for benchmark, pairs in _copied_metrics(updates).items():
        raise _conflict(session, parsed, benchmark_names[benchmark], set(pairs.values()), set(pairs))


def remember_metrics(session: Session, source_id: int, updates: Sequence[RunUpdate]) -> None:
    """Store under which metrics the scores of a file are in each benchmark."""
    columns: Any = SourceMetric
    query = sa.select(columns.benchmark_id, columns.metric_id).where(columns.source_id == source_id)
    known = {tuple(row) for row in session.execute(query)}
    pairs = [(benchmark, metric) for benchmark, ids in _metrics_by_benchmark(updates).items() for metric in sorted(ids)]
    session.add_all(
        SourceMetric(source_id=source_id, benchmark_id=benchmark, metric_id=metric)
        for benchmark, metric in pairs
        if (benchmark, metric) not in known
    )


def _metrics_by_benchmark(updates: Sequence[RunUpdate]) -> dict[int, set[int]]:
    metrics: dict[int, set[int]] = defaultdict(set)
    for update in updates:
        metrics[update.parsed.benchmark_id] |= {column.metric_id for column in update.parsed.columns if len(column)}
        metrics[update.parsed.benchmark_id] |= {metric for metric, _ in update.parsed.task_scores}
    return metrics


def _copied_metrics(updates: Sequence[RunUpdate]) -> dict[int, dict[int, int]]:
    """Return, by benchmark, the new metrics of stored runs and the stored metrics whose scores they repeat.

    A benchmark is left out if a stored run has other scores under a new metric.
    """
    copied: dict[int, dict[int, int]] = defaultdict(dict)
    original: set[int] = set()
    for update in updates:
        if not update.is_new:
            copied[update.parsed.benchmark_id] |= update.copied_metrics
            if update.new_metrics - set(update.copied_metrics):
                original.add(update.parsed.benchmark_id)
    return {benchmark: pairs for benchmark, pairs in copied.items() if pairs and benchmark not in original}


def _conflict(
    session: Session, parsed: ParsedFile, benchmark: str, stored: Collection[int], new: Collection[int]
) -> ConflictError:
    old_names, new_names = _list_names(session, stored), _list_names(session, new)
    advice = f"Name it with --metric {old_names[0]}" if len(old_names) == 1 else "Name one of them with --metric"
    return ConflictError(
        f"{parsed.path}: {benchmark} has this content under {join_names(old_names, MAX_NAMES)}, not under "
        f"{join_names(new_names, MAX_NAMES)}. Nothing was stored.\n{advice}, or store its scores a second time with "
        "--new-metric."
    )


def _list_names(session: Session, metric_ids: Collection[int]) -> list[str]:
    metric: Any = Metric
    return list(session.scalars(sa.select(metric.name).where(metric.id.in_(metric_ids)).order_by(metric.name)))
