"""The fastest verified way of each engine to read a whole table, and to fill an empty one.

Everything goes over the driver's own cursor inside the transaction of the SQLAlchemy connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import sqlalchemy as sa

from tracker.binary_copy import copy_scores, pack_scores
from tracker.connections.driver_errors import driver
from tracker.connections.partitions import (
    BENCHMARK,
    NO_BENCHMARK,
    find_benchmarks,
    is_partitioned,
    target_table,
)
from tracker.connections.store_url import format_url
from tracker.copying.values import Row, convert_rows, score_array, value_readers, value_writers
from tracker.errors import DatabaseError, first_line

SCORES_PER_BATCH = 100_000
TEXTS_PER_BATCH = 2_000
FILES_PER_BATCH = 8
"""Rows per batch: of scores, of texts and embeddings, of files."""

ROWS_PER_STATEMENT = 100

_TYPES = {
    sa.Boolean: "bool", sa.DateTime: "timestamptz", sa.Date: "date", sa.JSON: "jsonb", sa.LargeBinary: "bytea",
    sa.BigInteger: "int8", sa.Integer: "int4", sa.Double: "float8",
}  # fmt: skip


def read_rows(connection: sa.Connection, table: sa.Table, terms: str = "1 = 1") -> Iterator[Sequence[Row]]:
    """Yield the rows of a table that meet the terms, in batches, as Python values, in the order of its key.

    Raises:
        DatabaseError: the driver fails.
    """
    names, keys = _names(table), ", ".join(f'"{column.name}"' for column in table.primary_key)
    statement = f'SELECT {names} FROM "{table.name}" WHERE {terms} ORDER BY {keys}'
    engine = connection.dialect.name
    convert = value_readers(table, engine)
    raw: Any = connection.connection
    cursor = raw.cursor() if engine == "sqlite" else raw.cursor(name="copying", binary=True)
    try:
        cursor.execute(statement)
        while rows := cursor.fetchmany(_batch_size(table)):
            yield convert_rows(rows, convert)
    except driver(engine).Error as error:
        where = format_url(connection.engine.url)
        raise DatabaseError(f"{table.name} could not be read from {where}: {first_line(error)}.") from error
    finally:
        with suppress(driver(engine).Error):  # the connection may be closed before the rest is read
            cursor.close()


def fill_table(connection: sa.Connection, table: sa.Table, batches: Iterable[Sequence[Row]]) -> None:
    """Write all rows of an empty table; references within it may point ahead.

    Scores and answers are copied fastest within `tracker.connections.partitions.built_partitions`.
    """
    engine = connection.dialect.name
    convert = value_writers(table, engine)
    raw: Any = connection.connection
    cursor = raw.cursor()
    try:
        if engine == "sqlite":
            for rows in batches:
                _insert(cursor, table, convert_rows(rows, convert))
        elif is_partitioned(connection, table.name):
            for rows in batches:
                _copy_into_partitions(connection, cursor, table, convert_rows(rows, convert))
        else:
            _copy(cursor, table, (convert_rows(rows, convert) for rows in batches))
    finally:
        cursor.close()


def read_last_key(connection: sa.Connection, table: sa.Table) -> int:
    """Return the last key issued for a table, even if its row is deleted by now; 0 without any."""
    greatest = connection.scalar(sa.select(sa.func.max(table.c.id))) or 0
    if connection.dialect.name == "sqlite":
        if not table.dialect_options["sqlite"]["autoincrement"]:
            return int(greatest)
        query = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        return max(greatest, connection.scalar(query, {"name": table.name}) or 0)
    sequence = connection.scalar(sa.select(sa.func.pg_get_serial_sequence(f'"{table.name}"', "id")))
    sequence_state = connection.execute(sa.text(f"SELECT last_value, is_called FROM {sequence}")).one()
    return max(greatest, sequence_state.last_value if sequence_state.is_called else 0)


def set_last_key(connection: sa.Connection, table: sa.Table, last: int) -> None:
    """Set the next key of a table."""
    if connection.dialect.name == "sqlite":
        if table.dialect_options["sqlite"]["autoincrement"]:
            connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
            row = {"name": table.name, "last": last}
            connection.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), row)
    elif last:
        sequence = sa.func.pg_get_serial_sequence(f'"{table.name}"', "id")
        connection.execute(sa.select(sa.func.setval(sequence, last, True)))


def has_key_counter(table: sa.Table) -> bool:
    """Return whether the store issues the keys of a table from a sequence."""
    return "id" in table.c and isinstance(table.c.id.type, sa.Integer)


def _names(table: sa.Table) -> str:
    return ", ".join(f'"{column.name}"' for column in table.columns)


def _batch_size(table: sa.Table) -> int:
    if table.name == "score":
        return SCORES_PER_BATCH
    return FILES_PER_BATCH if table.name == "finding_artifact" else TEXTS_PER_BATCH


def _insert(cursor: Any, table: sa.Table, rows: Sequence[Row]) -> None:
    whole = len(rows) - len(rows) % ROWS_PER_STATEMENT
    for n_rows, part in ((ROWS_PER_STATEMENT, rows[:whole]), (1, rows[whole:])):
        placeholders = ", ".join([f"({', '.join('?' * len(table.columns))})"] * n_rows)
        cursor.executemany(
            f'INSERT INTO "{table.name}" ({_names(table)}) VALUES {placeholders}',
            (tuple(chain.from_iterable(part[i : i + n_rows])) for i in range(0, len(part), n_rows)),
        )


def _copy(cursor: Any, table: sa.Table, batches: Iterable[Sequence[Row]]) -> None:
    refers_to_itself = any(key.column.table is table for key in table.foreign_keys)
    # References are checked when a statement ends. Within a table they may point ahead, so it is one statement.
    parts: Iterable[Iterable[Sequence[Row]]] = [batches] if refers_to_itself else ([batch] for batch in batches)
    for part in parts:
        _copy_batches(cursor, table, table.name, part, {})


def _copy_batches(
    cursor: Any, table: sa.Table, target: str, batches: Iterable[Sequence[Row]], further: Mapping[str, int]
) -> None:
    """Copy rows in one statement into a table or its partition; all have the same values in further columns."""
    types = [
        next((name for kind, name in _TYPES.items() if isinstance(column.type, kind)), "varchar")
        for column in table.columns
    ]
    names = ", ".join([_names(table), *further])
    with cursor.copy(f'COPY "{target}" ({names}) FROM STDIN (FORMAT BINARY)') as copy:
        copy.set_types([*types, *("int4" for _ in further)])
        write: Callable[[Row], None] = copy.write_row
        values = tuple(further.values())
        for rows in batches:
            for row in rows:
                write((*row, *values))


def _copy_into_partitions(connection: sa.Connection, cursor: Any, table: sa.Table, rows: Sequence[Row]) -> None:
    """Copy rows of runs, which are in the target already, into the partitions of their benchmarks."""
    place = list(table.columns.keys()).index("run_id")
    benchmark_of = find_benchmarks(connection, {row[place] for row in rows})
    parts: dict[int, list[Row]] = {}
    for row in rows:
        parts.setdefault(benchmark_of.get(row[place], NO_BENCHMARK), []).append(row)
    for benchmark, part in parts.items():
        target = target_table(connection, table.name, benchmark)
        if table.name == "score":
            scores = score_array(part)
            run, metric, prompt, trial = (scores[name] for name in ("run", "metric", "prompt", "trial"))
            copy_scores(cursor, target, [pack_scores(run, metric, prompt, trial, benchmark, scores["value"])])
        else:
            _copy_batches(cursor, table, target, [part], {BENCHMARK: benchmark})
