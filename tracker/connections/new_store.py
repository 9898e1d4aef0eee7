"""Create the tables of a new store at once, as all migrations together leave them.

A new store then runs no migration. ``migrations/sqlite_tables.sql`` and ``migrations/postgresql_tables.sql`` hold the
statements of a store that the migrations have created; tests hold them equal. Each names the version it is for: at any
other, new stores are created by the migrations.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from tracker.integrity.change_triggers import create_postgresql_triggers
from tracker.schema.search_index import create_search_index
from tracker.schema.table import metadata
from tracker.schema.views import format_views

HEADINGS = {
    "sqlite": "-- Tables of SQLite stores of version ",
    "postgresql": "-- Tables of PostgreSQL stores of version ",
}
END = ";\n\n"
"""Between two statements, and after the last."""
SCHEMA = "@."
"""Stands for the schema of a PostgreSQL store."""


def tables_file(folder: Path, engine: str) -> Path:
    """Return the file with the statements for an engine, in the folder of the migrations."""
    return folder / f"{engine}_tables.sql"


def create_tables(connection: sa.Connection, folder: Path, version: str) -> bool:
    """Create all tables of a store that has none; return False if that is left to the migrations.

    Args:
        connection: a transaction on the store.
        folder: the migrations.
        version: the version that the store is to have.
    """
    engine = connection.dialect.name
    heading, statements = tables_file(folder, engine).read_text(encoding="utf-8").split(END, 1)
    if heading != f"{HEADINGS[engine]}{version}":
        return False
    if engine == "sqlite":
        parts = statements.removesuffix(END).split(END)
    else:
        schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
        parts = [statements.replace(SCHEMA, f"{schema}.")]  # one message to the server
    for part in parts:
        connection.exec_driver_sql(part, execution_options={"no_parameters": True})
    for statement in format_views(engine):
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    create_search_index(connection)
    if engine == "postgresql":
        create_postgresql_triggers(connection)
    values = {"id": str(uuid.uuid4()), "created": datetime.now(UTC)}
    connection.execute(sa.insert(metadata.tables["database"]).values(values))
    return True
