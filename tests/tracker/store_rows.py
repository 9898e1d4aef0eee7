"""Every row of a store, to compare it before and after."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker import schema
from tracker.database import transaction
from tracker.recording.undo.imports import find_import
from tracker.recording.undo.removal import UndoResult, undo_import

Rows = dict[str, list[str]]
"""The rows of each table, as text."""


def session_rows(session: Session) -> Rows:
    """Every row of every table, as a session sees it; without the checksums, which are written when it commits."""
    session.flush()
    session.expire_all()
    tables = [table for table in schema.metadata.sorted_tables if table.name != "checksum"]
    return {table.name: sorted(map(repr, session.execute(sa.select(table)))) for table in tables}


def rows_of(engine: sa.Engine) -> Rows:
    """Every row of every table."""
    with transaction(engine, write=False) as session:
        return session_rows(session)


def undo(engine: sa.Engine, source: int | None = None) -> UndoResult:
    """Undo the latest import, or the import of a file."""
    with transaction(engine, exclusive=True) as session:
        return undo_import(session, find_import(session, source))
