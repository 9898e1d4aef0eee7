"""Read query results as Arrow tables.

Rows are read by ADBC on a separate connection, which does not see uncommitted changes of a session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.connections.schema_versions import VERSION_TABLE
from tracker.connections.store_url import format_url
from tracker.errors import DatabaseError
from tracker.integrity.sealed_rows import MOVED, raise_for_moved, reads_measurements
from tracker.queries.sql.arrow_connections import borrow_postgresql, execute, open_sqlite, stream_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy.orm import Session

BATCH_ROWS = 65_536


def read_arrow(
    source: Session | sa.Engine | sa.Connection | Reading,
    sql: str,
    parameters: Sequence[Any] = (),
    *,
    runs: Collection[int] | None = None,
) -> pa.Table:
    """Return the rows of a query as one Arrow table.

    Args:
        source: the store, a session on it, or an open connection for reading.
        sql: one query; each ``?`` stands for a parameter.
        parameters: numbers and texts, in the order of the question marks.
        runs: the runs whose scores or answers are read; None for any.

    Raises:
        SealedRowsError: scores or answers that are read are in sealed files only.
        DatabaseError: the engine rejected the query, or cannot be reached.
    """
    with arrow_reader(source, sql, parameters, runs=runs) as reader:
        return reader.read_all()


@contextmanager
def arrow_reader(
    source: Session | sa.Engine | sa.Connection | Reading,
    sql: str,
    parameters: Sequence[Any] = (),
    *,
    runs: Collection[int] | None = None,
) -> Iterator[pa.RecordBatchReader]:
    """Yield the rows of a query as Arrow batches; see `read_arrow`.

    SQLite has no strict column types. They are inferred from the first 65,536 rows, so a column fails if it is NULL in
    all of those and not later.
    """
    with open_reading(source) as reading, reading.reader(sql, parameters, runs=runs) as reader:
        yield reader


@contextmanager
def snapshot(source: Session | sa.Engine | sa.Connection, *, is_paired: bool = False) -> Iterator[Reading]:
    """Open a snapshot of the store for several queries, unaffected by later commits.

    Args:
        source: the store.
        is_paired: whether to open a second connection to a SQLite store, with which another thread can read.

    Raises:
        DatabaseError: the engine rejected a query, or cannot be reached.
    """
    with open_reading(source) as reading, ExitStack() as stack:
        if not reading.is_sqlite:
            reading.execute("SET default_transaction_isolation = 'repeatable read'")
        second = stack.enter_context(open_reading(source)) if is_paired and reading.is_sqlite else None
        version = _data_version(second)
        for each in filter(None, (reading, second)):
            each.connection.set_autocommit(False)  # an explicit BEGIN ends with the first query that has parameters
            each.execute(f"SELECT count(*) FROM {VERSION_TABLE}")  # the first rows read fix the snapshot
        if _data_version(second) == version:  # or another program has committed between the two
            reading.second = second
        reading.is_snapshot = True
        yield reading
        if not reading.is_sqlite:
            reading.connection.set_autocommit(True)
            reading.execute("RESET default_transaction_isolation")  # the connection is kept for the next read


class Reading:
    """A connection that reads rows as Arrow.

    Args:
        connection: an ADBC connection.
        engine: an engine on the store.

    Attributes:
        is_sqlite: whether it is SQLite; otherwise it is PostgreSQL.
        ignores_sealed: whether queries see the rows in the store alone, though others are in sealed files.
        is_snapshot: whether all queries see one state of the store.
        second: another connection that sees the same state of the store, for another thread; None without one.
    """

    def __init__(self, connection: Any, engine: sa.Engine) -> None:
        self.connection, self.engine, self.is_sqlite = connection, engine, engine.dialect.name == "sqlite"
        self.ignores_sealed = self.is_snapshot = False
        self.second: Reading | None = None

    def execute(self, sql: str) -> None:
        """Run a statement and discard its rows."""
        execute(self.connection, sql)

    @contextmanager
    def reader(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        *,
        runs: Collection[int] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatchReader]:
        """Return the rows of a query as batches; see `arrow_reader`. ``batch_rows`` is for SQLite only."""
        import adbc_driver_manager as adbc
        import pyarrow as pa

        if reads_measurements(sql) and not self.ignores_sealed:
            self._check_sealed(runs)
        with adbc.AdbcStatement(self.connection) as statement:
            if self.is_sqlite:
                statement.set_options(**{"adbc.sqlite.query.batch_rows": str(batch_rows)})
            if parameters:
                row = pa.RecordBatch.from_pydict({str(i): [value] for i, value in enumerate(parameters)})
                statement.set_sql_query(sql if self.is_sqlite else _numbered(sql))
                statement.bind(row)
            else:
                statement.set_sql_query(sql)
            with stream_rows(statement) as reader:
                yield reader

    def table(self, sql: str, parameters: Sequence[Any] = (), *, runs: Collection[int] | None = None) -> pa.Table:
        """Return the rows of a query as one table; see `read_arrow`."""
        with self.reader(sql, parameters, runs=runs) as reader:
            return reader.read_all()

    def _check_sealed(self, runs: Collection[int] | None) -> None:
        """Check that the rows of runs are in the store, and see this state of it from now on.

        Raises:
            SealedRowsError: they are in sealed files only.
        """
        self.connection.set_autocommit(False)
        rows = self.table(MOVED)
        moved = set(rows.column(0).to_pylist())
        raise_for_moved(self.engine, moved if runs is None else moved & set(runs))


@contextmanager
def open_reading(source: Session | sa.Engine | sa.Connection | Reading) -> Iterator[Reading]:
    """Open a connection for reading, unless the source is one.

    Raises:
        DatabaseError: the engine rejected a query, or cannot be reached.
    """
    if isinstance(source, Reading):
        yield source
        return
    # The packages' dbapi modules import pandas, which costs more than most queries.
    import adbc_driver_manager as adbc

    engine = _engine(source)
    opening = open_sqlite(engine) if engine.dialect.name == "sqlite" else borrow_postgresql(engine)
    try:
        with opening as connection:
            yield Reading(connection, engine)
    except adbc.Error as error:
        raise DatabaseError(f"{format_url(engine.url)}: {str(error).splitlines()[0]}") from error


def number_columns(rows: pa.Table | pa.RecordBatch) -> list[NDArray[Any]]:
    """Return numeric columns as arrays, without copying single chunks; NULL is not allowed."""
    # Arrow's own to_numpy imports pandas.
    return [
        np.from_dlpack(column)
        if not hasattr(column, "chunks")
        else np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks] or [np.empty(0, dtype=np.int64)])
        for column in rows.columns
    ]


def word_column(column: pa.Array) -> tuple[NDArray[np.int32], list[str]]:
    """Dictionary-encode a column of texts: the index of each row's text, and the texts in order of appearance.

    Args:
        column: of one batch; NULL is not allowed.
    """
    encoded = column.dictionary_encode()
    return np.from_dlpack(encoded.indices).astype(np.int32, copy=False), encoded.dictionary.to_pylist()


def _engine(source: Session | sa.Engine | sa.Connection) -> sa.Engine:
    if isinstance(source, sa.Engine):
        return source
    if isinstance(source, sa.Connection):
        return source.engine
    return source.get_bind().engine


def _data_version(reading: Reading | None) -> int | None:
    """Return a number that changes as soon as another connection of SQLite has committed; None without a connection."""
    return None if reading is None else int(reading.table("PRAGMA data_version").column(0)[0].as_py())


def _numbered(sql: str) -> str:
    first, *rest = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, start=1))
