"""A store with rows in every table, and its content read in the slow, obvious way."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tracker.connections.schema_versions import upgrade
from tracker.copying.store_copy import copy_store
from tracker.database import connect, create_unchecked_engine, ensure_current, transaction
from tracker.errors import DatabaseError
from tracker.integrity.scopes import EXCLUDED
from tracker.recording.doctor import find_faults
from tracker.schema import metadata

FULL = max((Path(__file__).parents[2] / "old_databases").glob("*.sql"))


def make_full_store(path: Path) -> str:
    """Restore the dump of a store with rows in every table; returns its URL."""
    raw = sqlite3.connect(path)
    raw.executescript(FULL.read_text())
    raw.close()
    engine = create_unchecked_engine(f"sqlite:///{path}")
    upgrade(engine)
    engine.dispose()
    return f"sqlite:///{path}"


def copy_to(url: str, target: str) -> None:
    """Copy a store."""
    source, copy = connect(url), create_unchecked_engine(target)
    copy_store(source, copy)
    source.dispose()
    copy.dispose()


def list_faults(url: str) -> list[str]:
    """The faults in the content of a store; an error counts as one."""
    engine = create_unchecked_engine(url)
    try:
        ensure_current(engine, create=False)
        return [fault.sentence for fault in find_faults(engine)]
    except (sa.exc.DBAPIError, DatabaseError) as error:
        return [str(error)]
    finally:
        engine.dispose()


def read_content(url: str) -> dict[str, list[str]] | None:
    """Every value of every table that has content, as the program reads it; None if that fails."""
    engine = create_unchecked_engine(url)
    try:
        with transaction(engine, write=False) as session:
            return {
                table.name: sorted(repr(tuple(row)) for row in session.execute(sa.select(table)))
                for table in metadata.sorted_tables
                if table.name == "score" or table.name not in EXCLUDED
            }
    except Exception:  # noqa: BLE001 -- what cannot be read any more has changed
        return None
    finally:
        engine.dispose()


def read_rows(connection: sa.Connection, table: sa.Table) -> list[dict[str, Any]]:
    """All rows of a table."""
    return [dict(row) for row in connection.execute(sa.select(table)).mappings()]
