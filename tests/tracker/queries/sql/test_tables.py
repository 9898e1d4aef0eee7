"""The tables that queries name are those of the schema."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from make_tables import render_tables
from sqlalchemy.dialects import postgresql, sqlite

from tracker.queries.sql import tables
from tracker.schema import metadata


def test_module_of_tables_is_up_to_date() -> None:
    current = Path(tables.__file__).read_text(encoding="utf-8")
    assert current == render_tables(), "The schema has changed: run `make tables`."


@pytest.mark.parametrize("name", sorted(metadata.tables))
def test_every_table_has_the_columns_and_types_of_the_schema(name: str) -> None:
    written, defined = getattr(tables, name), metadata.tables[name]
    assert written.name == name
    assert written.c.keys() == defined.c.keys()
    for column in defined.c:
        kind = written.c[column.name].type
        assert kind.compile(sqlite.dialect()) == column.type.compile(sqlite.dialect())
        if not isinstance(column.type, sa.JSON):  # PostgreSQL reads JSON as it reads JSONB
            assert kind.compile(postgresql.dialect()) == column.type.compile(postgresql.dialect())
