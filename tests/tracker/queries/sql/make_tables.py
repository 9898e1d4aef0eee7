"""Write `tracker/queries/sql/tables.py` from the schema: `make tables`, after each change of the schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sqlalchemy as sa
from sqlmodel.sql.sqltypes import AutoString

from tracker.queries.sql import tables
from tracker.schema import metadata

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


if __name__ == "__main__":
    Path(tables.__file__).write_text(render_tables(), encoding="utf-8")
