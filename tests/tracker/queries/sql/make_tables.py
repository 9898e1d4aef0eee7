"""Write `tracker/queries/sql/tables.py` from the schema, and `migrations/sqlite_tables.sql` from the migrations.

Run by `make tables`, after each change of the schema and again after its migration.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import sqlalchemy as sa
from sqlmodel.sql.sqltypes import AutoString

from tracker.connections.schema_versions import known_versions, migrations_folder, upgrade
from tracker.database import create_unchecked_engine
from tracker.queries.sql import tables
from tracker.schema import metadata
from tracker.schema.new_sqlite_store import FILE, dump_tables

HEAD = '''"""The tables as queries name them: columns, not attributes of rows.

Written by `make tables` from `tracker.schema`; do not edit. The schema's classes need sqlmodel and pydantic, which take
longer to import than most queries take to run.
"""

import sqlalchemy as sa
'''


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
        dump = dump_tables(connection, version)
    engine.dispose()
    return dump


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        (migrations_folder() / FILE).write_text(render_sqlite_tables(Path(name)), encoding="utf-8")
    Path(tables.__file__).write_text(render_tables(), encoding="utf-8")
