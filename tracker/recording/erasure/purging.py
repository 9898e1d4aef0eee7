"""Rewrite the files of a store, so that they hold nothing that was erased from its tables."""

from __future__ import annotations

import sqlite3

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.connections.driver_errors import explain_driver_error
from tracker.errors import DatabaseError

TABLES = ("answer", "undo_record")
"""Tables from which texts are erased."""


def purge(engine: sa.Engine) -> None:
    """Rewrite what holds erased texts on disk: freed pages and the log of SQLite, dead rows of PostgreSQL.

    Raises:
        DatabaseError: another program uses the store.
    """
    try:
        if engine.dialect.name == "postgresql":
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for table in TABLES:
                    connection.exec_driver_sql(f"VACUUM (FULL) {table}")
            return
        rewrite_file(engine)
    except (sqlite3.Error, exc.DBAPIError) as error:
        reason = explain_driver_error(error, engine)
        raise DatabaseError(
            f"The texts are erased, but the files of the store may still hold them: {reason} "
            "End other programs that use the store, and run the same command again."
        ) from error


def rewrite_file(engine: sa.Engine) -> None:
    """Rewrite a SQLite file without its free pages, and empty its log.

    Raises:
        sqlite3.OperationalError: another program uses the store.
    """
    with engine.connect() as connection:
        raw: sqlite3.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            rows = raw.execute(statement).fetchall()
        if rows and rows[0][0]:
            raise sqlite3.OperationalError("database is locked")
