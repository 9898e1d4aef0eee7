"""List the imports that can be undone."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import ConflictError, NotFoundError
from tracker.ingest.write.undo_log import UndoLog
from tracker.queries.sql import tables

MERGE = ("suffrage", "models", "merge")
"""Command whose record holds its arguments in place of a file: the model that stays, and the merged one."""
ALIAS = ("suffrage", "tasks", "alias")
"""Command whose record holds its arguments in place of a file: benchmark, other name and task."""


@dataclass(frozen=True, kw_only=True)
class ImportRow:
    """An import that can be undone.

    Attributes:
        id: key of its record; a larger one came later.
        source: key of the file; None for a store that was merged.
        file: its name when it was imported.
        format: name of its format.
        ingested: time of the import, UTC.
        n_prompts, n_runs, n_models: number of prompts, runs and models that it added.
        source_in_store: key of a file that a merged store brought; None for other imports.
    """

    id: int
    source: int | None
    file: str
    format: str
    ingested: datetime
    n_prompts: int
    n_runs: int
    n_models: int
    source_in_store: int | None = None

    @property
    def merged_models(self) -> tuple[str, str] | None:
        """Return the model that stays and the merged one; None unless the record is that of a merge."""
        arguments = self._arguments(MERGE)
        return None if arguments is None else (arguments[0], arguments[1])

    @property
    def task_alias(self) -> tuple[str, str] | None:
        """Return the benchmark and the other name of a task; None unless the record is that of such a name."""
        arguments = self._arguments(ALIAS)
        return None if arguments is None else (arguments[0], arguments[1])

    @property
    def title(self) -> str:
        """Return what was done, for messages: ``import of FILE``."""
        if self.task_alias is not None:
            return f"alias {self.task_alias[1]} of {self.task_alias[0]}"
        if self.merged_models is None:
            return f"import of {self.file}"
        stays, goes = self.merged_models
        return f"merge of {goes} into {stays}"

    @property
    def undo_command(self) -> str:
        """Return the command that undoes it, also when it is not the latest."""
        if self.merged_models is not None:
            return shlex.join(["suffrage", "models", "unmerge", self.merged_models[1]])
        if self.task_alias is not None:
            return shlex.join(["suffrage", "tasks", "unalias", *self.task_alias])
        source = self.source or self.source_in_store
        return "suffrage undo" if source is None else f"suffrage undo --source {source}"

    def _arguments(self, command: tuple[str, ...]) -> list[str] | None:
        if self.source is not None or not self.file.startswith(f"{shlex.join(command)} "):
            return None
        return shlex.split(self.file)[len(command) :]


def list_imports(session: Session) -> list[ImportRow]:
    """List the imports that can be undone, the latest first."""
    record, source = tables.undo_record.c, tables.source.c
    query = (
        sa.select(record.id, record.source_id, record.path, record.changes, record.ingested, source.format)
        .join(tables.source, source.id == record.source_id, isouter=True)
        .order_by(record.id.desc())
    )
    rows = []
    for row in session.execute(query):
        log = UndoLog.from_bytes(row.changes)
        stored = ImportRow(
            id=row.id,
            source=row.source_id,
            file=row.path,
            format=row.format or "suffrage-store",
            ingested=row.ingested,
            n_prompts=log.n_prompts,
            n_runs=len(log.added.get("run", ())),
            n_models=len(log.added.get("model", ())),
            source_in_store=min((key for (key,) in log.added.get("source", ())), default=None)
            if row.source_id is None
            else None,
        )
        kind = "merge" if stored.merged_models else "alias" if stored.task_alias else stored.format
        rows.append(replace(stored, format=kind))
    return rows


def find_import(session: Session, source_id: int | None = None) -> ImportRow:
    """Return the latest import, or the latest one of a file.

    Args:
        session: the store.
        source_id: key of the file; also one that a merged store brought.

    Raises:
        NotFoundError: the store has no such file.
        ConflictError: the store has no import that can be undone, or that of the file was not recorded.
    """
    rows = list_imports(session)
    if source_id is None:
        if not rows:
            raise ConflictError("The store has no import that can be undone.")
        return rows[0]
    for row in rows:
        if row.source == source_id or (row.source is None and _brought(session, row.id, source_id)):
            return row
    known = session.scalars(sa.select(tables.source.c.id).order_by(tables.source.c.id)).all()
    if source_id not in known:
        raise NotFoundError("source", source_id, [row.source for row in rows if row.source is not None])
    raise ConflictError(
        f"Source {source_id} was imported before the store recorded imports, so it cannot be undone. Delete its runs: "
        "suffrage runs delete ID"
    )


def load_log(session: Session, record_id: int) -> UndoLog:
    """Return the changes of an import."""
    record = tables.undo_record.c
    row = session.execute(sa.select(record.changes, record.source_id).where(record.id == record_id)).one()
    log = UndoLog.from_bytes(row.changes)
    log.source_id = row.source_id
    return log


def _brought(session: Session, record_id: int, source_id: int) -> bool:
    return load_log(session, record_id).is_added("source", source_id)
