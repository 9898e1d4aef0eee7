"""Rename and delete metrics, and choose the default metric of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partition, in_partitions_of_runs
from tracker.database import split_keys
from tracker.errors import ConflictError, NotFoundError, SelectionError
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.ingest.write.bulk_rows import load_scores
from tracker.ingest.write.checksums import combine_checksums, compute_checksum
from tracker.queries.catalogue.metrics import find_metric_id
from tracker.queries.findings.staleness import compare_staleness, list_stale_findings
from tracker.queries.resolution import BenchmarkKey
from tracker.queries.sql import tables
from tracker.recording.run_status import delete


@dataclass(frozen=True, kw_only=True)
class MetricDeletion:
    """The effects of deleting a metric from a benchmark.

    Attributes:
        n_scores, n_task_scores: number of deleted rows.
        run_ids: runs that lost scores.
        deleted_runs: those of them that had nothing else, and were deleted.
        stale: findings that became stale, with the reason.
    """

    n_scores: int
    n_task_scores: int
    run_ids: tuple[int, ...]
    deleted_runs: tuple[int, ...]
    stale: Mapping[int, str]


def set_default_metric(session: Session, benchmark: BenchmarkKey, name: str) -> None:
    """Choose the metric of commands that name none.

    Raises:
        NotFoundError: the benchmark has no scores under it.
    """
    key = find_metric_id(session, benchmark, name)
    stored = sa.update(tables.benchmark).where(tables.benchmark.c.id == benchmark.id)
    session.execute(stored.values(default_metric_id=key))


def rename_metric(session: Session, old: str, new: str) -> None:
    """Rename a metric in all benchmarks, and in the selections of findings.

    Raises:
        NotFoundError: there is no such metric.
        ConflictError: there is one with the new name.
        SelectionError: the new name is empty, or the old one.
    """
    metric, finding, new = tables.metric.c, tables.finding.c, make_storable(new).strip()
    if not new:
        raise SelectionError("The new name of the metric is empty.")
    names = session.scalars(sa.select(metric.name).order_by(metric.name)).all()
    if old not in names:
        raise NotFoundError("metric", old, names)
    if new == old:
        raise SelectionError(f"The metric is already named {old!r}. Choose another name.")
    if new in names:
        raise ConflictError(
            f"The store has a metric {new!r} too, so {old!r} cannot get this name.\nImport the files again with "
            f"--metric {new} --new-metric, then delete the other: suffrage metrics delete BENCHMARK {old}"
        )
    session.execute(sa.update(tables.metric).where(metric.name == old).values(name=new))
    for key, selection in session.execute(sa.select(finding.id, finding.selection)).all():
        if (selection or {}).get("metric") == old:
            changed = sa.update(tables.finding).where(finding.id == key)
            session.execute(changed.values(selection={**selection, "metric": new}))


def delete_metric(session: Session, benchmark: BenchmarkKey, name: str) -> MetricDeletion:
    """Delete the scores of a benchmark under a metric, and the metric if nothing else uses it.

    Files that had only these scores can be imported again.

    Args:
        session: an exclusive write transaction; to preview, roll it back.
        benchmark: the benchmark.
        name: of the metric.

    Raises:
        NotFoundError: the benchmark has no scores under it.
    """
    key, before = find_metric_id(session, benchmark, name), list_stale_findings(session)
    run, score, task_score = tables.run, tables.score, tables.task_score
    runs = session.scalars(sa.select(run.c.id).where(run.c.benchmark_id == benchmark.id).order_by(run.c.id)).all()
    changed, n_scores, n_task_scores = [], 0, 0
    for run_id in runs:
        column = load_scores(session, run_id).get(key) if _has_rows(session, score, run_id, key) else None
        if column is not None:
            old = session.execute(sa.select(run.c.n_scores, run.c.checksum).where(run.c.id == run_id)).one()
            of_column = score.c.run_id == run_id, score.c.metric_id == key, in_partition(session, score, benchmark.id)
            session.execute(sa.delete(score).where(*of_column))
            checksum = combine_checksums(old.checksum, compute_checksum([column]), sign=-1)
            stored = sa.update(run).where(run.c.id == run_id)
            session.execute(stored.values(n_scores=old.n_scores - len(column), checksum=checksum))
            n_scores += len(column)
        whole = sa.delete(task_score).where(task_score.c.run_id == run_id, task_score.c.metric_id == key)
        n_whole = session.execute(whole).rowcount  # type: ignore[attr-defined]
        n_task_scores += n_whole
        if column is not None or n_whole:
            changed.append(run_id)
    empty = [run_id for run_id in changed if not _has_values(session, run_id)]
    if empty:
        delete(session, empty, f"metric {name} deleted")
    _forget_sources(session, benchmark, key)
    _forget_metric(session, benchmark, key)
    stale, _ = compare_staleness(before, list_stale_findings(session))
    return MetricDeletion(
        n_scores=n_scores,
        n_task_scores=n_task_scores,
        run_ids=tuple(changed),
        deleted_runs=tuple(empty),
        stale=stale,
    )


def _has_rows(session: Session, table: sa.TableClause, run_id: int, metric_id: int) -> bool:
    terms = table.c.run_id == run_id, table.c.metric_id == metric_id, in_partitions_of_runs(session, table, [run_id])
    return session.execute(sa.select(sa.literal(1)).where(*terms).limit(1)).first() is not None


def _has_values(session: Session, run_id: int) -> bool:
    return any(
        session.execute(sa.select(sa.literal(1)).where(table.c.run_id == run_id).limit(1)).first() is not None
        for table in (tables.score, tables.task_score, tables.answer)
    )


def _forget_sources(session: Session, benchmark: BenchmarkKey, metric_id: int) -> None:
    """Unlink the files that have no other metric in the benchmark, so that they can be imported again."""
    used, linked, run = tables.source_metric, tables.run_source, tables.run
    of_benchmark = used.c.benchmark_id == benchmark.id
    with_metric = sa.select(used.c.source_id).where(of_benchmark, used.c.metric_id == metric_id)
    affected = session.scalars(with_metric).all()
    session.execute(sa.delete(used).where(of_benchmark, used.c.metric_id == metric_id))
    remaining = set(session.scalars(sa.select(used.c.source_id).where(of_benchmark)))
    runs = sa.select(run.c.id).where(run.c.benchmark_id == benchmark.id)
    for part in split_keys([key for key in affected if key not in remaining]):
        session.execute(sa.delete(linked).where(linked.c.source_id.in_(part), linked.c.run_id.in_(runs)))


def _forget_metric(session: Session, benchmark: BenchmarkKey, metric_id: int) -> None:
    """Reset the default of the benchmark, and delete the metric if nothing uses it."""
    stored = tables.benchmark.c
    chosen = sa.update(tables.benchmark).where(stored.id == benchmark.id, stored.default_metric_id == metric_id)
    session.execute(chosen.values(default_metric_id=None))
    users = [table.c.metric_id for table in (tables.score, tables.task_score, tables.source_metric)]
    users.append(stored.default_metric_id)
    if not any(session.execute(sa.select(column).where(column == metric_id).limit(1)).first() for column in users):
        session.execute(sa.delete(tables.metric).where(tables.metric.c.id == metric_id))
