"""Meanings of the errors of database drivers."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.connections.sqlite_connections import BUSY_SECONDS
from tracker.connections.store_url import format_url
from tracker.errors import DatabaseError

NOT_ALLOWED = ("42501", "25006")
"""PostgreSQL's error codes for a missing privilege, and for writing in a read-only transaction."""
IO_ERROR = "58030"
"""PostgreSQL's error code for files that its server cannot read or write."""
DUPLICATE_TABLE = "42P07"
"""PostgreSQL's error code for a table whose name is taken."""
DEADLOCK = "40P01"
"""PostgreSQL's error code for two transactions that wait for each other."""


def driver(engine: str) -> Any:
    """Return the module of an engine's driver, with the errors that its cursors raise."""
    if engine == "sqlite":
        return sqlite3
    import psycopg

    return psycopg


@contextmanager
def explained_errors(engine: sa.Engine) -> Iterator[None]:
    """Explain the errors of a lost connection, a full disk and the like in the block, bare or wrapped by SQLAlchemy.

    Raises:
        DatabaseError: instead of them.
    """
    bare = driver(engine.dialect.name)
    try:
        yield
    except (bare.OperationalError, bare.InterfaceError, exc.OperationalError, exc.InterfaceError) as error:
        raise DatabaseError(explain_driver_error(error, engine)) from error


def explain_driver_error(error: Exception, engine: sa.Engine) -> str:
    """Return the meaning of an operational error of a driver, bare or wrapped by SQLAlchemy, and the fix."""
    original = error.orig if isinstance(error, exc.DBAPIError) and error.orig else error
    message = (str(original) or type(original).__name__).splitlines()[0]
    where = format_url(engine.url)
    sqlstate = getattr(original, "sqlstate", None)
    if "full" in message or "No space" in message:
        return (
            f"{where}: the disk is full ({message}). Nothing of this step was stored. Free some space and run it again."
        )
    if sqlstate == IO_ERROR:
        return (
            f"{where}: the server cannot read or write its files ({message}). Nothing of this step was stored. "
            "Check the disk and the log of the server, then the store: suffrage db check"
        )
    if "disk I/O" in message:
        return (
            f"{where}: the disk is full or faulty ({message}). Nothing of this step was stored. Free some space, "
            "or check the disk, and run it again."
        )
    if "locked" in message:
        return f"{where}: another program has been writing for over {BUSY_SECONDS} s. Try again when it has finished."
    if sqlstate == DEADLOCK:
        return (
            f"{where}: another program changed the same rows in another order, so the server ended this step. Nothing "
            "of it was stored. Run the command again."
        )
    if sqlstate == DUPLICATE_TABLE:
        return f"{where}: {message}. Nothing of this step was stored."
    if sqlstate in NOT_ALLOWED:
        return (
            f"{where}: this role lacks the privilege ({message}). Connect with another role: docs/how-to/postgresql.md."
        )
    if "readonly" in message or "read-only" in message:
        return f"{where}: the store cannot be written ({message}). Check the permissions of the file and its folder."
    if "unable to open" in message:
        path = Path(str(engine.url.database))
        if path.is_dir():
            return f"{path} is a folder. Name a file in it: --database {path / 'suffrage.db'}"
        if not path.parent.is_dir():
            return (
                f"There is no folder {path.parent} for the store. Create it: mkdir -p {shlex.quote(str(path.parent))}"
            )
        return f"{where}: the file cannot be opened. Check the permissions of the file and its folder."
    if "malformed" in message:
        return (
            f"{where}: the file is damaged ({message}). Restore a backup, or ingest your files into another --database."
        )
    if engine.dialect.name == "sqlite":
        return f"{where}: {message}. Check the store with `suffrage db check`, or use another --database."
    if "does not exist" in message and "database" in message:
        return f"{where}: the server has no such database. Create it: createdb {shlex.quote(str(engine.url.database))}"
    if "authentication failed" in message or "no password supplied" in message:
        return f"{where}: the server rejects the user or the password. Correct them in the URL, or set PGPASSWORD."
    return f"{where}: {message}. Check that the server runs and that the URL is right."
