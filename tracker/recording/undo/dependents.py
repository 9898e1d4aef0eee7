"""Later data that depend on what an import added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.errors import ConflictError
from tracker.ingest.write.undo_log import UndoLog
from tracker.name_lists import join_names
from tracker.queries.catalogue.listing import find_run
from tracker.queries.sql import tables
from tracker.recording.undo.imports import ImportRow, list_imports, load_log

MAX_NAMES = 3
RANGES_AT_ONCE = 200


def check_later_imports(session: Session, chosen: ImportRow, log: UndoLog) -> None:
    """Check that no later import or merge extended or changed what an import added.

    Raises:
        ConflictError: one did; the message names the latest one.
    """
    names = _names_of_prompts(session, log)
    for later in list_imports(session):
        if later.id <= chosen.id:
            break
        changes = load_log(session, later.id)
        reason = next(_reasons(session, log, changes, names), None)
        if reason is not None:
            raise ConflictError(
                f"The {chosen.title} cannot be undone: the later {later.title} {reason}.\n"
                f"Undo that first: {later.undo_command}"
            )


def check_runs(session: Session, chosen: ImportRow, runs: Sequence[int], uses: str) -> None:
    """Check that no run is left that uses a row to be removed.

    Args:
        session: the store.
        chosen: the import.
        runs: keys of such runs.
        uses: what they use, for the message.

    Raises:
        ConflictError: a run is left.
    """
    if not runs:
        return
    names = join_names((f"{key} of {find_run(session, key).model}" for key in runs[:MAX_NAMES]), MAX_NAMES)
    more = f" and {len(runs) - MAX_NAMES} more" if len(runs) > MAX_NAMES else ""
    linked = tables.run_source.c
    sources = session.scalars(
        sa.select(linked.source_id).where(linked.run_id.in_(runs)).distinct().order_by(linked.source_id.desc())
    ).all()
    advice = f"suffrage undo --source {sources[0]}" if sources else f"suffrage runs delete {runs[0]}"
    raise ConflictError(
        f"The {chosen.title} cannot be undone: run {names}{more} {uses}.\nRemove later data first: {advice}"
    )


def runs_of(session: Session, column: sa.ColumnClause[Any], keys: Iterable[int]) -> list[int]:
    """Return the runs whose benchmark or model is one of some keys."""
    return list(session.scalars(sa.select(tables.run.c.id).where(column.in_(list(keys))).order_by(tables.run.c.id)))


def runs_with_prompts(session: Session, ranges: Sequence[tuple[int, int]], benchmarks: Iterable[int]) -> list[int]:
    """Return the runs of some benchmarks with scores or answers of prompts in some ranges of keys."""
    using: set[int] = set()
    runs = runs_of(session, tables.run.c.benchmark_id, benchmarks)
    for table in (tables.score, tables.answer):
        for start in range(0, len(ranges), RANGES_AT_ONCE):
            part = ranges[start : start + RANGES_AT_ONCE]
            terms = sa.or_(*(table.c.prompt_id.between(first, last) for first, last in part))
            chosen = table.c.run_id.in_(runs), terms, in_partitions_of_runs(session, table, runs)
            using.update(session.scalars(sa.select(table.c.run_id).where(*chosen).distinct()))
    return sorted(using)


def runs_with_metrics(session: Session, metrics: Iterable[int]) -> list[int]:
    """Return the runs with scores under some metrics."""
    using: set[int] = set()
    for metric in metrics:
        for table in (tables.score, tables.task_score):
            scored = sa.exists().where(table.c.run_id == tables.run.c.id, table.c.metric_id == metric)
            using.update(session.scalars(sa.select(tables.run.c.id).where(scored)))
    return sorted(using)


def _names_of_prompts(session: Session, log: UndoLog) -> set[tuple[Any, ...]]:
    alias = tables.prompt_alias.c
    names: set[tuple[Any, ...]] = set()
    for first, last in log.prompts:
        query = sa.select(alias.task_id, alias.namespace, alias.key).where(alias.prompt_id.between(first, last))
        names.update(map(tuple, session.execute(query)))
    return names


def _reasons(session: Session, log: UndoLog, later: UndoLog, names: set[tuple[Any, ...]]) -> Iterator[str]:
    """Yield what a later import did with the rows of an import."""
    runs = {key for (key,) in log.added.get("run", ())}
    extended = {run for run, _ in (*later.scores, *later.answers)}
    extended |= {key[0] for key in later.added.get("task_score", ())} | {
        key[0] for key in later.added.get("run_source", ())
    }
    if shared := runs & extended:
        yield f"has scores of its run {min(shared)}"
    for table, rows in later.replaced.items():
        for key, values in rows.items():
            if log.is_added(table, *key) or set(log.replaced.get(table, {}).get(key, ())) & set(values):
                yield f"changed a {table} that it added or changed"
    if any(log.is_added("prompt", key) for keys in later.vectors.values() for key in keys.tolist()):
        yield "has vectors of its prompts"
    if names & later.added.get("prompt_alias", set()):
        yield "has other names of its prompts"
    alias = tables.task_alias.c
    for key, name in later.added.get("task_alias", ()):
        task = session.scalar(sa.select(alias.task_id).where(alias.benchmark_id == key, alias.name == name))
        if log.is_added("task", task):
            yield "names its task"
    linked = tables.run_source.c
    has_runs = session.execute(sa.select(linked.run_id).where(linked.source_id == later.source_id).limit(1)).first()
    if log.prompts and later.benchmarks & log.benchmarks and later.source_id is not None and has_runs is None:
        yield "holds prompts of the same benchmark"
