"""Run SQL of users on SQLite: the file is opened read-only, and an authorizer allows only reads."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tracker.connections.sqlite_connections import BUSY_SECONDS
from tracker.database import make_read_only_uri
from tracker.errors import DatabaseError, SqlError
from tracker.integrity.sealed_rows import MOVED, raise_for_moved, reads_measurements
from tracker.queries.sql.leaderboard_columns import IntervalColumns
from tracker.queries.sql.statement_errors import (
    READING_ONLY,
    as_sentence,
    explain_denied,
    explain_missing_name,
    explain_syntax,
)
from tracker.queries.sql.statement_limits import BYTES_AT_ONCE, SqlResult, StatementClock, measure_row

MAX_VALUE_LENGTH = 50_000_000

READING_PRAGMAS = {"foreign_key_list", "index_info", "index_list", "table_info", "table_list", "table_xinfo"}
WRITING_FUNCTIONS = {"edit", "fts3_tokenizer", "load_extension", "readfile", "writefile"}


@contextmanager
def read_sqlite(
    engine: sa.Engine, statement: str, clock: StatementClock, intervals: IntervalColumns | None
) -> Iterator[SqlResult]:
    """Run one statement; see `tracker.queries.sql.read_only.read_only_sql`.

    Args:
        engine: the store.
        statement: the statement.
        clock: limits its time.
        intervals: columns that the view `leaderboard` gets; None for none.
    """
    path = Path(engine.url.database or "").resolve()
    try:
        raw = sqlite3.connect(make_read_only_uri(path), uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise DatabaseError(f"{path}: {error}. Check that the file exists and is readable.") from error
    try:
        if intervals is not None:
            intervals.add_to_sqlite(raw)
        explain = partial(_sqlite_error, clock=clock, statement=statement, engine=engine)
        moved = _find_moved_sqlite(raw, explain)
        _guard_sqlite(raw, clock)
        if moved and _reads_measurements(raw, statement):
            raise_for_moved(engine, moved)
        try:
            with clock:
                cursor = raw.execute(statement)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise explain(error) from error
        if cursor.description is None:
            raise SqlError(READING_ONLY)
        yield SqlResult(columns=tuple(c[0] for c in cursor.description), rows=_sqlite_rows(cursor, clock, explain))
    finally:
        raw.close()


def _find_moved_sqlite(raw: sqlite3.Connection, explain: Callable[[sqlite3.Error], SqlError]) -> list[int]:
    """Return the runs whose rows are in sealed files only, in the transaction of the statement."""
    try:
        if not raw.in_transaction:
            raw.execute("BEGIN")
        return [run for run, _ in raw.execute(MOVED)]
    except sqlite3.Error as error:
        raise explain(error) from error


def _reads_measurements(raw: sqlite3.Connection, statement: str) -> bool:
    """Return whether a statement reads scores or answers, also through views of other programs."""
    tables = set()

    def authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            tables.add((first or "").lower())
        return _authorize(action, first, second, database, trigger)

    raw.set_authorizer(authorize)
    try:
        raw.execute(f"EXPLAIN {statement}").close()
    except (sqlite3.Error, sqlite3.Warning):  # what is wrong with the statement is explained when it runs
        return reads_measurements(statement, of_user=True)
    finally:
        raw.set_authorizer(_authorize)
    return not tables.isdisjoint(("score", "answer"))


def _guard_sqlite(raw: sqlite3.Connection, clock: StatementClock) -> None:
    """Deny everything but reading, on the connection itself."""
    try:
        raw.execute("PRAGMA query_only = ON")
        raw.execute("PRAGMA trusted_schema = OFF")
        for table in ("json_each('[]')", "json_tree('[]')", "pragma_table_info('run')", "pragma_table_list"):
            raw.execute(f"SELECT 1 FROM {table}").fetchall()  # built on first use, which the authorizer would reject
    except sqlite3.DatabaseError as error:
        raise DatabaseError(f"The store cannot be read: {error}.") from error
    raw.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_LENGTH)
    raw.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
    raw.set_authorizer(_authorize)
    clock.on_end = raw.interrupt


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None) -> int:
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in WRITING_FUNCTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in READING_PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _sqlite_rows(
    cursor: sqlite3.Cursor, clock: StatementClock, explain: Callable[[sqlite3.Error], SqlError]
) -> Iterator[tuple[Any, ...]]:
    while True:
        try:
            with clock:
                rows = _take_block(cursor, clock.rows_at_once)
        except sqlite3.Error as error:
            raise explain(error) from error
        if not rows:
            return
        yield from rows


def _take_block(rows: Iterator[tuple[Any, ...]], n: int) -> list[tuple[Any, ...]]:
    """Return the next ``n`` rows, or fewer if they are large."""
    block, size = [], 0
    for row in islice(rows, n):
        block.append(row)
        size += measure_row(row)
        if size > BYTES_AT_ONCE:
            break
    return block


def _sqlite_error(
    error: sqlite3.Error | sqlite3.Warning, *, clock: StatementClock, statement: str, engine: sa.Engine
) -> SqlError:
    message = str(error)
    if message == "interrupted":
        return clock.error
    if any(part in message for part in ("not authorized", "prohibited", "one statement", "readonly")):
        return explain_denied(message, statement)
    if match := re.match(r"no such (table|column): (.*)", message):
        return explain_missing_name(message, match[1], match[2], statement, engine)
    return explain_syntax(message, statement, engine) if "syntax error" in message else SqlError(as_sentence(message))
