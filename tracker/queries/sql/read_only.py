"""Run SQL of users, read-only as enforced by the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import sqlalchemy as sa

from tracker.database import create_unchecked_engine
from tracker.errors import SqlError
from tracker.queries.sql.leaderboard_columns import IntervalColumns, needs_intervals
from tracker.queries.sql.postgresql_statements import read_postgresql
from tracker.queries.sql.sqlite_statements import read_sqlite
from tracker.queries.sql.statement_limits import MAX_BYTES, ROWS_AT_ONCE, SqlResult, StatementClock, limit_bytes


@contextmanager
def read_only_sql(
    store: sa.Engine | str,
    statement: str,
    *,
    limit_seconds: float = 30.0,
    max_rows: int | None = None,
    max_bytes: int = MAX_BYTES,
    rows_at_once: int = ROWS_AT_ONCE,
) -> Iterator[SqlResult]:
    """Run one read-only statement; its rows are available within the context.

    Args:
        store: the store, or its URL.
        statement: one query.
        limit_seconds: time limit of the engine in seconds; the caller's own processing of rows is not counted.
        max_rows: maximum number of rows.
        max_bytes: maximum size of all values, 8 bytes for a number.
        rows_at_once: rows in memory at once.

    Raises:
        SealedRowsError: the statement may read scores or answers that are in sealed files only.
        SqlError: the statement is invalid, too slow, not a read, or its result is too large; also raised while rows
            are read.
        DatabaseError: the store cannot be reached.
    """
    engine = create_unchecked_engine(store) if isinstance(store, str) else store
    text = _checked(statement)
    clock = StatementClock(limit_seconds, rows_at_once=rows_at_once)
    read = read_sqlite if engine.dialect.name == "sqlite" else read_postgresql
    intervals = IntervalColumns(engine, text, limit_seconds) if needs_intervals(text) else None
    with read(engine, text, clock, intervals) as result:
        columns = _number_duplicates(result.columns)
        renamed = [name for name, original in zip(columns, result.columns, strict=True) if name != original]
        warnings = (f"duplicate column names are numbered: {', '.join(renamed)}; use AS to name them",) * bool(renamed)
        warnings = (*result.warnings, *(intervals.warnings if intervals else ()), *warnings)
        yield SqlResult(columns=columns, rows=limit_bytes(islice(result.rows, max_rows), max_bytes), warnings=warnings)


def _number_duplicates(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return unique column names: the second ``id`` is ``id_2``."""
    unique: list[str] = []
    for name in names:
        candidates = (name, *(f"{name}_{n}" for n in range(2, len(names) + 2)))
        free = (text for text in candidates if text not in unique and (text == name or text not in names))
        unique.append(next(free))
    return tuple(unique)


def _checked(statement: str) -> str:
    if not statement.strip().strip(";"):
        raise SqlError("The statement is empty. Try: SELECT * FROM leaderboard")
    if "\0" in statement:
        raise SqlError("The statement contains a NUL character. Remove it.")
    try:
        statement.encode()
    except UnicodeEncodeError:
        raise SqlError("The statement is not valid Unicode. Type it anew.") from None
    return statement
