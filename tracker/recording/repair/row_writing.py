"""Write the rows of a scope in the plain form, on either engine, without recording changes in the checksums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tracker.integrity.row_hashes import Row, column_kinds
from tracker.schema import metadata

_SQLITE = {"text": "CAST(? AS TEXT)", "json": "CAST(? AS TEXT)", "time": "CAST(? AS TEXT)", "date": "CAST(? AS TEXT)"}
_POSTGRESQL = {
    "text": "%s::text", "json": "%s::text::jsonb", "time": "(%s::text::timestamp AT TIME ZONE 'UTC')",
    "date": "%s::text::date", "flag": "%s::int::boolean", "bytes": "%s::bytea", "number": "%s::float8",
    "integer": "%s::bigint",
}  # fmt: skip


def replace_rows(connection: sa.Connection, table: sa.Table, present: Sequence[Row], rows: Sequence[Row]) -> None:
    """Replace the rows of a scope by others; rows with the same key are updated, so that what refers to them stays.

    Args:
        connection: a transaction that writes and does not record changes.
        table: the table.
        present: the stored rows of the scope, in the plain form.
        rows: what they are replaced by.
    """
    writer = _RowWriter(connection, table)
    before = {writer.key(row): writer.bind(row) for row in present}
    after = {writer.key(row): writer.bind(row) for row in rows}
    for key in before.keys() - after.keys():
        writer.delete(key)
    for key, values in after.items():
        if key not in before:
            writer.insert(values)
        elif before[key] != values or len(present[0]) > len(table.columns):
            writer.update(key, values)


def find_broken_reference(
    connection: sa.Connection, table: sa.Table, present: Sequence[Row], rows: Sequence[Row]
) -> str:
    """Return which reference of the written rows, or to the removed ones, has no row on SQLite; '' if none.

    PostgreSQL checks references as rows are written.
    """
    if connection.dialect.name != "sqlite":
        return ""
    places = {column.name: place for place, column in enumerate(table.columns)}
    for constraint in table.foreign_key_constraints:
        (key,) = constraint.elements
        values = {row[places[key.parent.name]] for row in rows} - {None}
        parent = key.column.table
        if any(not _has_row(connection, parent.name, key.column.name, value) for value in values):
            return f"it refers to a row of {parent.name} that is missing"
    for child in metadata.sorted_tables:
        for key in (key for key in child.foreign_keys if key.column.table is table):
            place = places[key.column.name]
            gone = {row[place] for row in present} - {row[place] for row in rows}
            if any(_has_row(connection, child.name, key.parent.name, value) for value in gone):
                return f"a row of {child.name} refers to it"
    return ""


def _has_row(connection: sa.Connection, table: str, column: str, value: Any) -> bool:
    cursor: Any = connection.connection.cursor()
    return cursor.execute(f'SELECT 1 FROM "{table}" WHERE "{column}" = ? LIMIT 1', (value,)).fetchone() is not None


class _RowWriter:
    """Statements of one table with the driver's own placeholders."""

    def __init__(self, connection: sa.Connection, table: sa.Table) -> None:
        self.cursor: Any = connection.connection.cursor()
        self.is_sqlite = connection.dialect.name == "sqlite"
        self.table = table
        kinds = column_kinds(table)
        forms = _SQLITE if self.is_sqlite else _POSTGRESQL
        self.texts = [kind in ("text", "json", "time", "date") for kind in kinds]
        self.places = [forms.get(kind, "?" if self.is_sqlite else "%s") for kind in kinds]
        self.keys = [place for place, column in enumerate(table.columns) if column.primary_key]
        names = [f'"{column.name}"' for column in table.columns]
        self.columns = ", ".join(names)
        self.values = ", ".join(self.places)
        self.changes = ", ".join(f"{name} = {place}" for name, place in zip(names, self.places, strict=True))
        self.terms = " AND ".join(f"{names[place]} = {self.places[place]}" for place in self.keys)

    def bind(self, row: Row) -> tuple[Any, ...]:
        """Return the values as the driver takes them."""
        values = row[: len(self.places)]
        if self.is_sqlite:
            return tuple(values)
        return tuple(
            value.decode() if is_text and isinstance(value, bytes) else value
            for value, is_text in zip(values, self.texts, strict=True)
        )

    def key(self, row: Row) -> tuple[Any, ...]:
        values = self.bind(row)
        return tuple(
            values[place].encode() if isinstance(values[place], str) and self.is_sqlite else values[place]
            for place in self.keys
        )

    def insert(self, values: Sequence[Any]) -> None:
        self.cursor.execute(f'INSERT INTO "{self.table.name}" ({self.columns}) VALUES ({self.values})', tuple(values))

    def update(self, key: Sequence[Any], values: Sequence[Any]) -> None:
        self.cursor.execute(f'UPDATE "{self.table.name}" SET {self.changes} WHERE {self.terms}', (*values, *key))

    def delete(self, key: Sequence[Any]) -> None:
        self.cursor.execute(f'DELETE FROM "{self.table.name}" WHERE {self.terms}', tuple(key))
