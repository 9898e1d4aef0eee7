"""Bulk inserts and reads, by the fastest method of each database that keeps its checks.

All statements use the connection of the session, inside its transaction. SQLite inserts many rows per statement, with
bound values that keep every bit. PostgreSQL uses binary COPY with packed arrays, into the partition of the benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tracker.binary_copy import copy_scores, pack_scores
from tracker.connections.partitions import (
    BENCHMARK,
    NO_BENCHMARK,
    find_benchmarks,
    in_partitions_of_runs,
    is_partitioned,
    target_table,
)
from tracker.ingest.write.score_columns import ScoreColumn, pack, unpack
from tracker.integrity.recorder import recorded_rows
from tracker.schema import Answer, Score

ROWS_PER_STATEMENT = 200
ROWS_PER_COPY = 200_000
ROWS_PER_PLAN = 1_000
"""New rows after which PostgreSQL plans statements of a session anew."""
_SINCE_PLAN = "rows since plans were discarded"

_ScoresOfRun = tuple[int, int, ScoreColumn]
"""Key of a run and of its benchmark, and scores of the run under one metric."""


def insert_scores(session: Session, columns: Iterable[tuple[int, ScoreColumn]]) -> None:
    """Insert new scores.

    Args:
        session: an open write transaction.
        columns: run and scores, preferably sorted by run and metric.

    Raises:
        sqlalchemy.exc.DBAPIError: a score exists, or its run, metric or prompt does not. In a new partition they are
            checked at the end of `tracker.connections.partitions.built_partitions`.
    """
    if session.connection().dialect.name == "sqlite":
        for run_id, column in columns:
            _insert_into_sqlite(session, run_id, column)
        return
    every = list(columns)
    benchmarks = find_benchmarks(session.connection(), [run_id for run_id, _ in every])
    by_target: dict[str, list[_ScoresOfRun]] = {}
    for run_id, column in every:
        benchmark = benchmarks.get(run_id, NO_BENCHMARK)
        of_target = by_target.setdefault(target_table(session.connection(), "score", benchmark), [])
        of_target.append((run_id, benchmark, column))
    for target, scores in by_target.items():
        for chunk in _split_by_size(scores):
            with driver_cursor(session) as cursor:
                copy_scores(cursor, target, map(_pack, chunk))


def insert_answers(session: Session, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert new answers.

    Args:
        session: an open write transaction.
        rows: run, prompt, extraction, trial, text, probability and status of each.
    """
    insert_rows(session, Answer, rows)


def insert_rows(session: Session, table: type[Any], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert new rows.

    Args:
        session: an open write transaction.
        table: table of the schema.
        rows: all columns in order; numbers, texts and None.
    """
    if not rows:
        return
    described: sa.Table = table.__table__
    names = [column.name for column in described.columns]
    with recorded_rows(session.connection(), described, rows), driver_cursor(session) as cursor:
        if session.connection().dialect.name == "sqlite":
            whole = len(rows) - len(rows) % ROWS_PER_STATEMENT
            for n_rows, part in ((ROWS_PER_STATEMENT, rows[:whole]), (1, rows[whole:])):
                placeholders = ", ".join([f"({', '.join('?' * len(names))})"] * n_rows)
                cursor.executemany(
                    f"INSERT INTO {described.name} ({', '.join(names)}) VALUES {placeholders}",
                    (tuple(chain.from_iterable(part[i : i + n_rows])) for i in range(0, len(part), n_rows)),
                )
        else:
            for target, with_benchmark, values in _split_by_partition(session.connection(), described, names, rows):
                with cursor.copy(f"COPY {target} ({', '.join(with_benchmark)}) FROM STDIN") as copy:
                    for row in values:
                        copy.write_row(row)
            _discard_plans(session.connection(), cursor, len(rows))


def insert_records(session: Session, table: type[Any], records: Sequence[Mapping[str, Any]]) -> None:
    """Insert new rows with values of JSON.

    Args:
        session: an open write transaction.
        table: table of the schema.
        records: a value of every column by name; numbers, texts, None, and values of JSON.
    """
    columns = [(column.name, isinstance(column.type, sa.JSON)) for column in table.__table__.columns]
    rows = [
        tuple(
            json.dumps(record[name]) if is_json and record[name] is not None else record[name]
            for name, is_json in columns
        )
        for record in records
    ]
    insert_rows(session, table, rows)


def reserve_keys(session: Session, table: type[Any], n: int) -> range | list[int]:
    """Return ``n`` new keys, which are reserved until this transaction ends."""
    name = table.__tablename__
    if session.connection().dialect.name == "sqlite":  # the only writer, because of BEGIN IMMEDIATE
        last = session.scalar(sa.select(sa.func.max(table.id))) or 0
        return range(last + 1, last + 1 + n)
    drawn = sa.func.nextval(sa.func.pg_get_serial_sequence(name, "id"))
    return list(session.scalars(sa.select(drawn).select_from(sa.func.generate_series(1, n))))


def load_scores(session: Session, run_id: int) -> dict[int, ScoreColumn]:
    """Return the scores of a run by metric."""
    statement = (
        sa.select(Score.metric_id, Score.prompt_id, Score.trial, Score.value)  # type: ignore[call-overload]
        .where(Score.run_id == run_id, in_partitions_of_runs(session, Score.__table__, [run_id]))  # type: ignore[attr-defined]
        .order_by(Score.metric_id, Score.prompt_id, Score.trial)
    )
    kind = np.dtype([("metric", np.int64), ("prompt", np.int64), ("trial", np.int64), ("value", np.float64)])
    rows = np.fromiter(fetch_raw_rows(session, statement), dtype=kind)
    if not len(rows):
        return {}
    metrics, starts = np.unique(rows["metric"], return_index=True)
    return {
        int(metric): ScoreColumn(
            metric_id=int(metric), keys=pack(part["prompt"], part["trial"]), values=part["value"].copy()
        )
        for metric, part in zip(metrics, np.split(rows, starts[1:]), strict=True)
    }


def fetch_raw_rows(session: Session, statement: sa.Select[Any]) -> list[tuple[Any, ...]]:
    """Return rows of a query as tuples of the driver, several times faster than objects.

    Args:
        session: an open transaction.
        statement: query of numbers and texts, which are not converted.
    """
    result = session.connection().execute(statement)
    cursor: Any = result.cursor
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    result.close()
    return rows


def fetch_chunks(session: Session, statement: sa.Select[Any], n_rows: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield rows of a query as tuples of the driver, in chunks.

    Args:
        session: an open transaction.
        statement: as for `fetch_raw_rows`.
        n_rows: number of rows per chunk.
    """
    result = session.connection().execute(statement)
    cursor: Any = result.cursor
    while rows := cursor.fetchmany(n_rows):
        yield rows
    result.close()


@contextmanager
def driver_cursor(session: Session) -> Iterator[Any]:
    """Open the driver's cursor in the session's transaction; its errors become SQLAlchemy's."""
    connection = session.connection()
    dialect = connection.dialect
    cursor = connection.connection.cursor()
    try:
        yield cursor
    except dialect.loaded_dbapi.Error as error:
        raise exc.DBAPIError.instance(
            "bulk insert", None, error, dialect.loaded_dbapi.Error, dialect=dialect
        ) from error
    finally:
        cursor.close()


def _discard_plans(connection: sa.Connection, cursor: Any, n_rows: int) -> None:
    """Have PostgreSQL plan what checks references anew: for a table that was small, it may read all of it each time.

    Args:
        connection: an open write transaction.
        cursor: of the driver.
        n_rows: the number of rows that were inserted.
    """
    n_since = connection.info.get(_SINCE_PLAN, ROWS_PER_PLAN) + n_rows
    if n_since >= ROWS_PER_PLAN:
        cursor.execute("DISCARD PLANS")
        n_since = 0
    connection.info[_SINCE_PLAN] = n_since


def _split_by_size(scores: Iterable[_ScoresOfRun]) -> Iterator[list[_ScoresOfRun]]:
    """Yield scores of runs in chunks of at least `ROWS_PER_COPY` rows, but for the last."""
    chunk: list[_ScoresOfRun] = []
    size = 0
    for of_run in scores:
        chunk.append(of_run)
        size += len(of_run[2])
        if size >= ROWS_PER_COPY:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _pack(scores: _ScoresOfRun) -> NDArray[Any]:
    run_id, benchmark, column = scores
    return pack_scores(run_id, column.metric_id, *unpack(column.keys), benchmark, column.values)


def _split_by_partition(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[str, Sequence[str], Sequence[tuple[Any, ...]]]]:
    """Yield the table, columns and rows of each COPY that inserts some rows into PostgreSQL."""
    if not is_partitioned(connection, table.name):
        yield table.name, names, rows
        return
    place = names.index("run_id")
    benchmarks = find_benchmarks(connection, {row[place] for row in rows})
    parts: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        benchmark = benchmarks.get(row[place], NO_BENCHMARK)
        parts.setdefault(benchmark, []).append((*row, benchmark))
    for benchmark, part in parts.items():
        yield target_table(connection, table.name, benchmark), [*names, BENCHMARK], part


def _insert_into_sqlite(session: Session, run_id: int, column: ScoreColumn) -> None:
    prompts, trials = unpack(column.keys)
    cells = np.empty((len(column), 3), dtype=object)
    cells[:, 0], cells[:, 1], cells[:, 2] = prompts.tolist(), trials.tolist(), column.values.tolist()
    whole = len(column) - len(column) % ROWS_PER_STATEMENT
    with driver_cursor(session) as cursor:
        for n_rows, part in ((ROWS_PER_STATEMENT, cells[:whole]), (1, cells[whole:])):
            placeholders = ", ".join(f"(?1, ?2, ?{3 * n + 3}, ?{3 * n + 4}, ?{3 * n + 5})" for n in range(n_rows))
            cursor.executemany(
                f"INSERT INTO score (run_id, metric_id, prompt_id, trial, value) VALUES {placeholders}",
                ((run_id, column.metric_id, *row) for row in part.reshape(-1, 3 * n_rows).tolist()),
            )
