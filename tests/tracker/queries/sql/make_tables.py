"""Write `tracker/queries/sql/tables.py` from the schema, and from the migrations the tables of new stores:
`migrations/sqlite_tables.sql` and `migrations/postgresql_tables.sql`.

Run by `make tables`, after each change of the schema and again after its migration.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import sqlalchemy as sa
import wheel_server
from postgres_dump import dump_schema
from sqlmodel.sql.sqltypes import AutoString

from tracker.connections.new_store import END, HEADINGS, SCHEMA, tables_file
from tracker.connections.schema_versions import VERSION_TABLE, known_versions, migrations_folder, upgrade
from tracker.database import create_unchecked_engine
from tracker.integrity.change_triggers import drop_postgresql_triggers
from tracker.queries.sql import tables
from tracker.schema import metadata
from tracker.schema.search_index import TABLE as SEARCH_INDEX
from tracker.schema.search_index import drop_search_index
from tracker.schema.views import VIEWS

HEAD = '''"""The tables as queries name them: columns, not attributes of rows.

Written by `make tables` from `tracker.schema`; do not edit. The schema's classes need sqlmodel and pydantic, which take
longer to import than most queries take to run.
"""

import sqlalchemy as sa
'''
VARCHAR = "::character varying"
PARSED_LIST = re.compile(r"\(\((\w+)\)::text = ANY \(\(ARRAY\[([^]]*)\]\)::text\[\]\)\)")
"""How PostgreSQL prints ``column IN (...)``. Read again, it becomes a third form."""


def render_tables() -> str:
    """Return the source of the module, formatted."""
    source = "\n".join([HEAD, *(_render_table(metadata.tables[name]) for name in sorted(metadata.tables))])
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(Path(tables.__file__)), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def _render_table(table: sa.Table) -> str:
    columns = ", ".join(f'sa.column("{column.name}", {_render_type(column.type)})' for column in table.columns)
    return f'{table.name} = sa.table("{table.name}", {columns})'


def _render_type(kind: sa.types.TypeEngine[object]) -> str:
    """Return the type as an expression; PostgreSQL reads both of its JSON types alike."""
    if isinstance(kind, AutoString):
        kind = sa.String(kind.length)
    return f"sa.{kind!r}"


def render_sqlite_tables(folder: Path) -> str:
    """Return the statements of a new SQLite store, which the migrations create in a folder."""
    version = known_versions()[-1]
    engine = create_unchecked_engine(f"sqlite:///{folder}/migrated.db")
    upgrade(engine, version)
    with engine.connect() as connection:
        statements = (
            connection.exec_driver_sql(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'view' AND name NOT LIKE 'sqlite_%' "
                f"AND name NOT LIKE '{SEARCH_INDEX}%' AND sql NOT LIKE '%{SEARCH_INDEX}%' ORDER BY rowid"
            )
            .scalars()
            .all()
        )
        counters = connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence ORDER BY name").all()
    engine.dispose()
    rows = [f"INSERT INTO sqlite_sequence VALUES ('{name}', {value})" for name, value in counters]
    return _render_script("sqlite", [*statements, *rows])


def render_postgresql_tables(server: sa.URL) -> str:
    """Return the statements of a new PostgreSQL store, which the migrations create in a database of a server."""
    administrator = sa.create_engine(server.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with administrator.connect() as connection:
        connection.exec_driver_sql("DROP DATABASE IF EXISTS suffrage_tables")
        connection.exec_driver_sql("CREATE DATABASE suffrage_tables")
    url = server.set(database="suffrage_tables").render_as_string(hide_password=False)
    engine = create_unchecked_engine(url)
    upgrade(engine, known_versions()[-1])
    with engine.begin() as connection:  # what is created from the program's own statements
        for view in VIEWS:
            connection.exec_driver_sql(f"DROP VIEW {view}")
        drop_postgresql_triggers(connection)
        drop_search_index(connection)
    engine.dispose()
    script = re.sub(r"\bpublic\.", SCHEMA, dump_schema(url)).removesuffix(";\n")
    script = PARSED_LIST.sub(lambda match: f"({match[1]} IN ({match[2].replace(VARCHAR, '')}))", script)
    return _render_script("postgresql", [script])


def _render_script(engine: str, statements: list[str]) -> str:
    version = known_versions()[-1]
    last = f"INSERT INTO {'' if engine == 'sqlite' else SCHEMA}{VERSION_TABLE} VALUES ('{version}')"
    return "".join(f"{statement}{END}" for statement in (f"{HEADINGS[engine]}{version}", *statements, last))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        tables_file(migrations_folder(), "sqlite").write_text(render_sqlite_tables(Path(name)), encoding="utf-8")
        try:
            script = render_postgresql_tables(wheel_server.start(Path(name) / "server"))
            tables_file(migrations_folder(), "postgresql").write_text(script, encoding="utf-8")
        finally:
            wheel_server.stop(Path(name) / "server")
    Path(tables.__file__).write_text(render_tables(), encoding="utf-8")
