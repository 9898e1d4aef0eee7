"""Create the tables of a new SQLite store at once, as all migrations together leave them.

A new store then runs no migration. ``migrations/sqlite_tables.sql`` holds the statements of a store that the migrations
have created; a test holds the two equal. It names the version it is for: at any other, new stores are created by the
migrations, as on PostgreSQL.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from tracker.schema.search_index import SQLITE
from tracker.schema.search_index import TABLE as SEARCH_INDEX
from tracker.schema.table import metadata
from tracker.schema.views import VIEWS

FILE = "sqlite_tables.sql"
VERSION_LINE = "-- Tables of SQLite stores of version "
END = ";\n\n"


def create_tables(connection: sa.Connection, folder: Path, version: str) -> bool:
    """Create all tables of a store in an empty SQLite file; return False if that is left to the migrations.

    Args:
        connection: a transaction on the store.
        folder: the migrations.
        version: the version that the store is to have.
    """
    if connection.dialect.name != "sqlite" or connection.exec_driver_sql("SELECT * FROM sqlite_master").first():
        return False
    heading, *statements = (folder / FILE).read_text(encoding="utf-8").removesuffix(END).split(END)
    if heading != f"{VERSION_LINE}{version}":
        return False
    cursor = connection.connection.cursor()
    views = (statement.replace("%", "%%") for statement in VIEWS.values())  # as the migrations create them
    for statement in (*statements, *views, *SQLITE):
        cursor.execute(statement)
    values = {"id": str(uuid.uuid4()), "created": datetime.now(UTC)}
    connection.execute(sa.insert(metadata.tables["database"]).values(values))
    return True


def dump_tables(connection: sa.Connection, version: str) -> str:
    """Return the content of ``migrations/sqlite_tables.sql`` for a new store that the migrations have created."""
    tables = connection.exec_driver_sql(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'view' AND name NOT LIKE 'sqlite_%' "
        f"AND name NOT LIKE '{SEARCH_INDEX}%' AND sql NOT LIKE '%{SEARCH_INDEX}%' ORDER BY rowid"
    ).scalars()
    counters = connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence ORDER BY name")
    rows = [f"INSERT INTO sqlite_sequence VALUES ('{name}', {value})" for name, value in counters]
    rows.append(f"INSERT INTO suffrage_version VALUES ('{version}')")
    return "".join(f"{statement}{END}" for statement in (f"{VERSION_LINE}{version}", *tables, *rows))
