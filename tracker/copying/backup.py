"""Back up a store to a SQLite file, consistent while others write, and restore it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.connections.driver_errors import explain_driver_error, explained_errors
from tracker.connections.schema_versions import current_version
from tracker.connections.store_url import format_url
from tracker.copying.store_copy import CopyResult, check_empty, copy_store
from tracker.copying.store_faults import find_store_faults
from tracker.copying.store_files import AGAIN, UNREADABLE, open_store_file
from tracker.database import create_unchecked_engine, ensure_current
from tracker.errors import BadInputError, DatabaseError, first_line
from tracker.integrity.verification import snapshot

Progress = Callable[[int, int], None]
PAGES_PER_STEP = 4_000


def back_up(store: sa.Engine, path: Path, progress: Progress | None = None) -> None:
    """Write a snapshot of a store to a new SQLite file, and verify it.

    A SQLite store is copied page by page, a PostgreSQL store row by row from one snapshot. Others may write meanwhile.

    Args:
        store: a store of this program's version.
        path: an empty or missing file.
        progress: called with the number of finished pages or rows, and of all of them.

    Raises:
        DatabaseError: the store cannot be used or is damaged, or the disk is full.
    """
    ensure_current(store, create=False)
    if store.dialect.name == "sqlite":
        _copy_pages(store, path, progress)
    else:
        target = create_unchecked_engine(f"sqlite:///{path}")
        try:
            copy_store(store, target, progress=progress)
            with explained_errors(target), target.connect() as connection:
                connection.exec_driver_sql("ROLLBACK")
                connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
        finally:
            target.dispose()
    if faults := _find_faults(path):
        raise DatabaseError(
            f"{format_url(store.url)} is damaged: {faults[0]}. No backup was written. "
            "`suffrage doctor` lists all faults and what to do."
        )
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def check_backup(path: Path) -> None:
    """Check that a file is a sound store: its pages, references and checksums.

    Raises:
        BadInputError: it is not.
    """
    if faults := _find_faults(path):
        raise BadInputError(path, f"is damaged: {faults[0]}.", advice=AGAIN)


def _find_faults(path: Path) -> list[str]:
    with open_store_file(path) as engine:
        try:
            with snapshot(engine) as connection:
                return [str(fault) for fault in find_store_faults(connection)]
        except UNREADABLE as error:
            return [first_line(error)]


def restore(path: Path, store: sa.Engine, *, replace: bool = False, progress: Progress | None = None) -> CopyResult:
    """Restore a backup in one transaction; until it commits, everybody sees the store as it was.

    Args:
        path: a backup, of this or an earlier version; it is checked first.
        store: an empty or missing store, or one that is replaced.
        replace: replace everything that the store holds.
        progress: called with the number of finished rows, and of all rows.

    Raises:
        BadInputError: the backup is not sound.
        DatabaseError: the store is not empty and is not replaced, or cannot be written.
    """
    check_backup(path)
    if not replace and current_version(store) is not None:
        with explained_errors(store), store.connect() as connection:
            check_empty(connection, store, "Replace it with --replace, or restore into a new store.")
    with open_store_file(path) as backup:
        return copy_store(backup, store, replace=replace, progress=progress)


def _copy_pages(store: sa.Engine, path: Path, progress: Progress | None) -> None:
    """Copy the pages of a SQLite store within one read transaction, so that no writer starts the copy again."""

    def report(_: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    try:
        with store.connect() as connection, closing(sqlite3.connect(path)) as copy:
            source: sqlite3.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]
            connection.execute(sa.text("SELECT count(*) FROM sqlite_master"))  # the first read fixes the snapshot
            source.backup(copy, pages=PAGES_PER_STEP, progress=report)
            copy.execute("PRAGMA journal_mode=DELETE")
    except (sqlite3.Error, exc.DBAPIError) as error:
        raise DatabaseError(explain_driver_error(error, store)) from error
