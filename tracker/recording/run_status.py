"""Hide, supersede and delete runs, and determine which findings become stale.

Nothing is recomputed. A finding based on such a run stays readable and is marked as stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.errors import ConflictError
from tracker.queries.catalogue.listing import RunRow, find_run
from tracker.queries.findings.staleness import compare_staleness, list_stale_findings
from tracker.queries.sql import tables
from tracker.run_settings import evaluation_identity, get_command


@dataclass(frozen=True, kw_only=True)
class StatusChange:
    """The effects of excluding or restoring runs.

    Attributes:
        run_ids: runs whose status changed.
        stale: findings that became stale, or are stale for another reason than before, with the reason.
        sound: findings that are no longer stale.
    """

    run_ids: tuple[int, ...]
    stale: Mapping[int, str]
    sound: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class DeletionPreview:
    """What deleting some runs would remove.

    Attributes:
        runs: the runs.
        n_scores, n_answers, n_task_scores: their rows.
        finding_ids: findings based on them, which would be stale.
    """

    runs: tuple[RunRow, ...]
    n_scores: int
    n_answers: int
    n_task_scores: int
    finding_ids: tuple[int, ...]


def hide(session: Session, keys: Sequence[int], reason: str | None = None) -> StatusChange:
    """Exclude runs from every selection that does not name them.

    Args:
        session: a transaction that writes.
        keys: keys of complete runs; hidden ones get the new reason.
        reason: the reason, as text.

    Raises:
        NotFoundError: a run does not exist.
        ConflictError: a run is already excluded for another reason.
    """
    for stored in _runs(session, keys):
        if stored.status not in ("complete", "hidden"):
            raise ConflictError(
                f"{_describe(stored)} is already excluded: it is {stored.status}. Leave it out of the list."
            )
    return _change_runs(session, keys, {"status": "hidden", "reason": reason})


def restore(session: Session, keys: Sequence[int]) -> StatusChange:
    """Restore hidden or superseded runs.

    Raises:
        NotFoundError: a run does not exist.
        ConflictError: a run is neither hidden nor superseded.
    """
    for stored in _runs(session, keys):
        if stored.status == "partial" and evaluation_identity(stored.settings) is not None:
            go_on = get_command(stored.settings, stored.benchmark, stored.model)
            raise ConflictError(f"{_describe(stored)} is partial: its evaluation is not complete. Resume it: {go_on}")
        if stored.status == "partial":
            raise ConflictError(
                f"{_describe(stored)} is partial: its file was damaged. Ingest the complete file with suffrage "
                f"ingest, then: suffrage runs delete {stored.id}"
            )
        if stored.status == "complete":
            raise ConflictError(f"{_describe(stored)} is neither hidden nor superseded. Leave it out of the list.")
    return _change_runs(session, keys, {"status": "complete", "reason": None, "superseded_by": None})


def supersede(session: Session, old: int, by: int, reason: str | None = None) -> StatusChange:
    """Replace a run by another.

    Args:
        session: a transaction that writes.
        old: the run to exclude.
        by: a complete run of the same model, with the same benchmark, condition and variant.
        reason: the reason, as text.

    Raises:
        NotFoundError: a run does not exist.
        ConflictError: the runs are not of the same kind, or one of them cannot be used so.
    """
    first, second = _runs(session, [old, by]) if old != by else [find_run(session, old)] * 2
    if old == by:
        raise ConflictError(f"{_describe(first)} cannot supersede itself. Name its replacement with --by.")
    for field in ("benchmark", "model", "condition", "variant"):
        first_value, second_value = getattr(first, field), getattr(second, field)
        if first_value != second_value:
            raise ConflictError(
                f"{_describe(first)} and {_describe(second)} differ in their {field} ({first_value!r}, "
                f"{second_value!r}), so one cannot supersede the other. To exclude a run, hide it: suffrage runs hide"
            )
    if first.status == "partial":
        raise ConflictError(
            f"{_describe(first)} is partial and therefore already excluded. Delete it: suffrage runs delete {old}"
        )
    if second.status != "complete":
        raise ConflictError(f"{_describe(second)} is itself {second.status}. Choose a complete run with --by.")
    return _change_runs(session, [old], {"status": "superseded", "superseded_by": by, "reason": reason})


def preview_deletion(session: Session, keys: Sequence[int]) -> DeletionPreview:
    """Return what deleting some runs would remove.

    Raises:
        NotFoundError: a run does not exist.
    """
    rows = tuple(_runs(session, keys))

    def counted(table: sa.TableClause) -> int:
        terms = table.c.run_id.in_(keys), in_partitions_of_runs(session, table, keys)
        return session.scalar(sa.select(sa.func.count()).select_from(table).where(*terms)) or 0

    used = tables.finding_run.c
    resting = sa.select(used.finding_id).where(used.run_id.in_(keys)).distinct().order_by(used.finding_id)
    return DeletionPreview(
        runs=rows,
        n_scores=counted(tables.score),
        n_answers=counted(tables.answer),
        n_task_scores=counted(tables.task_score),
        finding_ids=tuple(session.scalars(resting)),
    )


def delete(session: Session, keys: Sequence[int], reason: str | None = None) -> StatusChange:
    """Delete runs with their scores and answers; prompts, models and findings stay.

    Findings based on them record what was deleted. Their MLflow runs are deleted when MLflow is next updated.

    Raises:
        NotFoundError: a run does not exist.
    """
    rows, before = _runs(session, keys), list_stale_findings(session)
    used, run_table, analysis = tables.finding_run, tables.run, tables.finding
    for row in rows:
        deletion = f"deleted since: run {row.id} of {row.model}{f' ({reason})' if reason else ''}"
        resting = sa.select(used.c.finding_id).where(used.c.run_id == row.id)
        earlier = sa.case((analysis.c.stale.is_(None), ""), else_=analysis.c.stale + "; ")
        session.execute(sa.update(analysis).where(analysis.c.id.in_(resting)).values(stale=earlier + deletion))
        session.execute(
            sa.update(run_table)
            .where(run_table.c.superseded_by == row.id)
            .values(
                superseded_by=None, reason=sa.func.coalesce(run_table.c.reason, f"superseded by run {row.id}, deleted")
            )
        )
    session.execute(sa.delete(used).where(used.c.run_id.in_(keys)))
    session.execute(sa.delete(run_table).where(run_table.c.id.in_(keys)))
    return _describe_change(session, keys, before)


def _runs(session: Session, keys: Sequence[int]) -> list[RunRow]:
    return [find_run(session, key) for key in dict.fromkeys(keys)]


def _describe(row: RunRow) -> str:
    return f"Run {row.id} of {row.model} on {row.benchmark}"


def _change_runs(session: Session, keys: Sequence[int], values: Mapping[str, object]) -> StatusChange:
    before = list_stale_findings(session)
    session.execute(sa.update(tables.run).where(tables.run.c.id.in_(keys)).values(**values))
    return _describe_change(session, keys, before)


def _describe_change(session: Session, keys: Sequence[int], before: Mapping[int, str]) -> StatusChange:
    stale, sound = compare_staleness(before, list_stale_findings(session))
    return StatusChange(run_ids=tuple(dict.fromkeys(keys)), stale=stale, sound=sound)
