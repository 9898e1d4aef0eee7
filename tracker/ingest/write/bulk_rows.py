"""Rows in bulk, into the store and out of it, the fastest way of each engine that keeps its checks.

All of it runs on the connection of the session, inside its transaction. SQLite takes many rows per
statement: binding is then the cost, and values arrive bit for bit, which text would not promise.
PostgreSQL takes binary COPY, packed as arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tracker.binary_copy import copy_scores, pack_scores
from tracker.ingest.write.score_columns import ScoreColumn, pack, unpack
from tracker.schema import Answer, Score

ROWS_PER_STATEMENT = 200
ROWS_PER_COPY = 1_000_000


def insert_scores(session: Session, columns: Iterable[tuple[int, ScoreColumn]]) -> None:
    """Insert scores that the store does not hold yet.

    Args:
        session: where to.
        columns: run and scores, best in ascending order of run and metric.

    Raises:
        sqlalchemy.exc.DBAPIError: a score exists, or its run, metric or prompt does not.
    """
    if session.connection().dialect.name == "sqlite":
        for run_id, column in columns:
            _insert_into_sqlite(session, run_id, column)
        return
    chunks: list[NDArray[Any]] = []
    size = 0
    for run_id, column in columns:
        chunks.append(pack_scores(run_id, column.metric_id, *unpack(column.keys), column.values))
        size += len(column)
        if size >= ROWS_PER_COPY:
            with driver_cursor(session) as cursor:
                copy_scores(cursor, chunks)
            chunks, size = [], 0
    if chunks:
        with driver_cursor(session) as cursor:
            copy_scores(cursor, chunks)


def insert_answers(session: Session, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert answers that the store does not hold yet.

    Args:
        session: where to.
        rows: run, prompt, extraction, trial, text, probability, status of each.
    """
    insert_rows(session, Answer, rows)


def insert_rows(session: Session, table: type[Any], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows that the store does not hold yet.

    Args:
        session: where to.
        table: as in the schema.
        rows: every column of it in order; numbers, texts and None.
    """
    if not rows:
        return
    described: sa.Table = table.__table__
    names = [column.name for column in described.columns]
    with driver_cursor(session) as cursor:
        if session.connection().dialect.name == "sqlite":
            whole = len(rows) - len(rows) % ROWS_PER_STATEMENT
            for n_rows, part in ((ROWS_PER_STATEMENT, rows[:whole]), (1, rows[whole:])):
                placeholders = ", ".join([f"({', '.join('?' * len(names))})"] * n_rows)
                cursor.executemany(
                    f"INSERT INTO {described.name} ({', '.join(names)}) VALUES {placeholders}",
                    (tuple(chain.from_iterable(part[i : i + n_rows])) for i in range(0, len(part), n_rows)),
                )
        else:
            with cursor.copy(f"COPY {described.name} ({', '.join(names)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)


def reserve_keys(session: Session, table: type[Any], n: int) -> range | list[int]:
    """Keys for ``n`` new rows; nobody else can be given them before this transaction ends."""
    name = table.__tablename__
    if session.connection().dialect.name == "sqlite":  # the only writer, since BEGIN IMMEDIATE
        last = session.scalar(sa.select(sa.func.max(table.id))) or 0
        return range(last + 1, last + 1 + n)
    drawn = sa.func.nextval(sa.func.pg_get_serial_sequence(name, "id"))
    return list(session.scalars(sa.select(drawn).select_from(sa.func.generate_series(1, n))))


def load_scores(session: Session, run_id: int) -> dict[int, ScoreColumn]:
    """The scores of a run by metric."""
    statement = (
        sa.select(Score.metric_id, Score.prompt_id, Score.trial, Score.value)  # type: ignore[call-overload]
        .where(Score.run_id == run_id)
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
    """Rows of a query as the driver gives them, several times faster than as objects.

    Args:
        session: where from.
        statement: a query whose columns are numbers and texts: nothing is converted.
    """
    result = session.connection().execute(statement)
    cursor: Any = result.cursor
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    result.close()
    return rows


def fetch_chunks(session: Session, statement: sa.Select[Any], n_rows: int) -> Iterator[list[tuple[Any, ...]]]:
    """Rows of a query as the driver gives them, some at a time.

    Args:
        session: where from.
        statement: as for `fetch_raw_rows`.
        n_rows: how many at a time.
    """
    result = session.connection().execute(statement)
    cursor: Any = result.cursor
    while rows := cursor.fetchmany(n_rows):
        yield rows
    result.close()


@contextmanager
def driver_cursor(session: Session) -> Iterator[Any]:
    """The driver's own cursor inside the session's transaction; its errors become SQLAlchemy's."""
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
