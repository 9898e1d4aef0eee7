"""The store in a SQLite file that is merged into another one: opened for reading only, and validated.

The file may come from a stranger, and SQLite holds any value in any column. Everything that the merge relies on is
therefore checked first. Conflicts with the target are found while the store is merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.copying.partial_copy import MEASUREMENTS
from tracker.copying.store_faults import find_store_faults
from tracker.copying.store_files import AGAIN, UNREADABLE, open_store_file
from tracker.errors import BadInputError, first_line
from tracker.ingest.resolve.prompt_texts import make_storable_json
from tracker.integrity.sealed_rows import list_moved
from tracker.schema import metadata

ROWS_PER_BATCH = 4096
NOT_NEGATIVE = ("trial", "occurrence", "dimensions", "n_scores")
JSON_KINDS: dict[str, type] = {"choices": list, "details": dict, "settings": dict}


@dataclass(frozen=True, eq=False)
class SourceStore:
    """A validated store of this program's version, in a transaction that only reads.

    Attributes:
        path: the file, for messages.
        session: the store.
    """

    path: Path
    session: Session

    def rows(self, table: str, terms: Sequence[sa.ColumnElement[bool]] = ()) -> list[dict[str, Any]]:
        """Return the rows of a small table, or those that meet the terms, in the order of their keys."""
        return [row for batch in self.batches(table, terms) for row in batch]

    def batches(self, table: str, terms: Sequence[sa.ColumnElement[bool]] = ()) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows of a table in batches, in the order of their keys.

        Raises:
            BadInputError: a value cannot be converted.
        """
        described = metadata.tables[table]
        kinds = {name: kind for name, kind in JSON_KINDS.items() if name in described.c}
        with self._reading(table):
            query = sa.select(described).where(*terms).order_by(*described.primary_key)
            result = self.session.execute(query).mappings()
        while True:
            with self._reading(table):
                rows = [dict(row) for row in result.fetchmany(ROWS_PER_BATCH)]
                for row in rows:
                    for name, kind in kinds.items():
                        row[name] = self._check_json(table, row, name, kind)
            if not rows:
                return
            yield rows

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return self.session.scalar(sa.select(sa.func.count()).select_from(metadata.tables[table])) or 0

    def error(self, table: str, row: int, problem: str) -> BadInputError:
        """Return the error for a row."""
        return BadInputError(self.path, f"{table} {row}: {problem}.", advice="Nothing was stored.")

    def _check_json(self, table: str, row: dict[str, Any], name: str, kind: type) -> Any:
        value = make_storable_json(row[name])
        is_valid = value is None or (
            isinstance(value, kind) and (not isinstance(value, list) or all(isinstance(part, str) for part in value))
        )
        if not is_valid:
            raise self.error(table, row["id"], f"its {name} are not a JSON {kind.__name__}")
        return value

    @contextmanager
    def _reading(self, table: str) -> Iterator[None]:
        try:
            yield
        except BadInputError:
            raise
        except UNREADABLE as error:
            raise BadInputError(self.path, f"{table} cannot be read ({first_line(error)}).", advice=AGAIN) from error


@contextmanager
def open_source(path: Path) -> Iterator[SourceStore]:
    """Open the store in a SQLite file for reading, and validate it.

    Raises:
        BadInputError: the file is not a store, is damaged, or was written by a newer version.
    """
    with open_store_file(path) as engine, Session(engine) as session:
        source = SourceStore(path, session)
        _validate(source)
        yield source


def _validate(source: SourceStore) -> None:
    """Check everything that the merge relies on.

    Raises:
        BadInputError: the file is damaged, or holds what no store writes.
    """
    path, session = source.path, source.session
    try:
        _check_tables(path, session.connection())
        if list_moved(session.connection()):
            advice = "Unseal them in the store that it was copied from, and export it again."
            raise BadInputError(
                path, "is a store with sealed runs, whose scores are in files outside it.", advice=advice
            )
        for table in MEASUREMENTS:
            _check_values(source, metadata.tables[table])
        for fault in find_store_faults(session.connection()):
            raise BadInputError(path, f"is damaged: {fault}.", advice=AGAIN)
    except BadInputError:
        raise
    except UNREADABLE as error:
        raise BadInputError(path, f"is damaged ({first_line(error)}).", advice=AGAIN) from error


def _check_tables(path: Path, connection: sa.Connection) -> None:
    """Check that the tables are tables, with their columns, keys and unique names."""
    inspector = sa.inspect(connection)
    kinds = {row.name: row.type for row in connection.execute(sa.text("SELECT name, type FROM sqlite_master"))}
    for name in MEASUREMENTS:
        table = metadata.tables[name]
        if kinds.get(name) != "table":
            raise BadInputError(path, f"has no table {name}.", advice=AGAIN)
        columns = {column["name"] for column in inspector.get_columns(name)}
        if lacking := [column for column in [column.name for column in table.c] if column not in columns]:
            raise BadInputError(path, f"its table {name} has no column {lacking[0]}.", advice=AGAIN)
        unique = {frozenset(key["column_names"]) for key in inspector.get_unique_constraints(name)}
        unique.add(frozenset(inspector.get_pk_constraint(name)["constrained_columns"]))
        expected = {
            frozenset(key.columns.keys())
            for key in table.constraints
            if isinstance(key, (sa.UniqueConstraint, sa.PrimaryKeyConstraint))
        }
        if not expected <= unique:
            raise BadInputError(path, f"its table {name} lacks a key.", advice=AGAIN)


def _check_values(source: SourceStore, table: sa.Table) -> None:
    """Check the types of all values, the conditions of the table, and its references."""
    tests = {f"{column.name} {_expected(column)[0]}": _expected(column)[1] for column in table.columns}
    for check in table.constraints:
        if isinstance(check, sa.CheckConstraint):
            tests[f"breaks the rule {check.sqltext}"] = f"NOT ({check.sqltext})"
    for key in table.foreign_keys:
        parent, column = key.column.table.name, key.parent.name
        tests[f"{column} is no row of {parent}"] = (
            f'"{column}" IS NOT NULL AND "{column}" NOT IN (SELECT "{key.column.name}" FROM "{parent}")'
        )
    counts = ", ".join(f"sum({test})" for test in tests.values())
    with closing(source.session.connection().exec_driver_sql(f'SELECT {counts} FROM "{table.name}"')) as result:
        wrong = result.fetchone()
    for problem, n in zip(tests, wrong or (), strict=True):
        if n:
            raise BadInputError(source.path, f"{table.name}: {n:,} rows: {problem}.", advice="Nothing was stored.")


def _expected(column: sa.Column[Any]) -> tuple[str, str]:
    """Return what is wrong with an invalid value of a column, and the condition that finds it."""
    name, kind = f'"{column.name}"', column.type
    if isinstance(kind, sa.Boolean):
        text, valid = "is neither 0 nor 1", f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
    elif isinstance(kind, sa.Integer):
        low = 0 if column.name in NOT_NEGATIVE else -(2 ** (63 if isinstance(kind, sa.BigInteger) else 31))
        high = 2 ** (63 if isinstance(kind, sa.BigInteger) else 31) - 1
        text, valid = "is not such a whole number", f"typeof({name}) = 'integer' AND {name} BETWEEN {low} AND {high}"
    elif isinstance(kind, sa.Double):
        text = "is not a finite number"
        valid = f"typeof({name}) IN ('real', 'integer') AND abs({name}) <= 1.7976931348623157e308"
    elif isinstance(kind, sa.LargeBinary):
        text, valid = "is not binary", f"typeof({name}) = 'blob'"
    else:
        text, valid = "is not a text, or has a zero byte", f"typeof({name}) = 'text' AND instr({name}, char(0)) = 0"
    return text, f"NOT ({name} IS NULL OR {valid})" if column.nullable else f"{name} IS NULL OR NOT ({valid})"
