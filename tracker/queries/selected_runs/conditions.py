"""Conditions on runs: which have scores, and which a selection holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import sqlalchemy as sa

from tracker.connections.partitions import in_partition
from tracker.queries.selection import Selection, Unit, restricts_split
from tracker.queries.splits.names import split_condition
from tracker.queries.sql import tables

MAX_KEY = 2**31 - 1
"""Largest key of a finding or run: PostgreSQL rejects larger ones."""


def has_scores(unit: Unit, split: Sequence[str] = (), *, benchmark_id: int | None = None) -> sa.ColumnElement[bool]:
    """Return whether `Run` has scores under `Metric`, of prompts or of whole tasks.

    A scalar subquery, so that both engines look up one key instead of reading all scores.

    Args:
        unit: of the scores.
        split: splits of the prompts; none means all. Ignored for scores of whole tasks.
        benchmark_id: benchmark of all runs of the query, if they have only one: PostgreSQL then plans for its
            partition alone.
    """
    scores = tables.score if unit == "prompt" else tables.task_score
    terms = [scores.c.run_id == tables.run.c.id, scores.c.metric_id == tables.metric.c.id]
    if unit == "prompt":
        terms.append(in_partition(scores, tables.run.c.benchmark_id if benchmark_id is None else benchmark_id))
    values = sa.select(sa.literal(1)).where(*terms).limit(1)
    if unit == "prompt" and restricts_split(split):
        values = values.join(tables.prompt, tables.prompt.c.id == tables.score.c.prompt_id).where(
            split_condition(split)
        )
    return values.correlate(tables.run, tables.metric).scalar_subquery().is_not(None)


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
