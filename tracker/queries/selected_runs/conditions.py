"""Conditions on runs: which have scores, and which a selection holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partition, in_partition_of
from tracker.integrity.sealed_rows import checked_term, find_moved
from tracker.queries.selection import Selection, Unit, restricts_split
from tracker.queries.splits.names import split_condition
from tracker.queries.sql import tables

MAX_KEY = 2**31 - 1
"""Largest key of a finding or run: PostgreSQL rejects larger ones."""


def has_scores(
    session: Session, unit: Unit, split: Sequence[str] = (), *, benchmark_id: int | None = None
) -> sa.ColumnElement[bool]:
    """Return whether `Run` has scores under `Metric`, of prompts or of whole tasks.

    A scalar subquery, so that both engines look up one key instead of reading all scores.

    Args:
        session: the store.
        unit: of the scores.
        split: splits of the prompts; none means all. Ignored for scores of whole tasks.
        benchmark_id: benchmark of all runs of the query, if they have only one: PostgreSQL then plans for its
            partition alone.

    Raises:
        SealedRowsError: the splits of scores of the benchmark are in sealed files only.
    """
    scores, run = tables.score if unit == "prompt" else tables.task_score, tables.run.c
    terms = [scores.c.run_id == run.id, scores.c.metric_id == tables.metric.c.id]
    if unit == "task":
        return _exists(sa.select(sa.literal(1)).where(*terms))
    if restricts_split(split):
        of_benchmark = (
            in_partition_of(scores, run.benchmark_id)
            if benchmark_id is None
            else in_partition(session, scores, benchmark_id)
        )
        joined = sa.select(sa.literal(1)).join(tables.prompt, tables.prompt.c.id == tables.score.c.prompt_id)
        return _exists(joined.where(*terms, of_benchmark, split_condition(split)))
    of_benchmark = in_partition_of(scores, run.benchmark_id if benchmark_id is None else benchmark_id)
    in_store = _exists(sa.select(sa.literal(1)).where(*terms, of_benchmark))
    if not find_moved(session.connection()):
        return in_store
    sealed, moved = tables.sealed_metric.c, tables.sealed_run.c
    in_files = (
        sa.select(sa.literal(1))
        .join(tables.sealed_run, moved.run_id == sealed.run_id)
        .where(sealed.run_id == run.id, sealed.metric_id == tables.metric.c.id, ~moved.rows_in_store)
    )
    return sa.and_(sa.or_(in_store, _exists(in_files)), checked_term(session))


def _exists(query: sa.Select[Any]) -> sa.ColumnElement[bool]:
    return query.limit(1).correlate(tables.run, tables.metric).scalar_subquery().is_not(None)


def run_conditions(benchmark_id: int, selection: Selection) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on `Run` of a selection: runs, or status, condition, variant and date."""
    of_benchmark = tables.run.c.benchmark_id == benchmark_id
    if selection.runs:  # explicitly selected runs may have any condition and status: hidden, superseded, partial
        return [of_benchmark, tables.run.c.id.in_(key for key in selection.runs if key <= MAX_KEY)]
    terms = [of_benchmark, tables.run.c.status == "complete"]
    terms += [tables.run.c.condition == selection.condition, tables.run.c.variant == selection.variant]
    if selection.as_of is not None:
        moment = selection.as_of if selection.as_of.tzinfo else selection.as_of.replace(tzinfo=UTC)
        terms.append(tables.run.c.ingested <= moment.astimezone(UTC))
    return terms
