"""Run SQL of users, read-only as enforced by the engine.

On SQLite the file is opened read-only, and an authorizer allows only reads. On PostgreSQL the statement runs as a
server-side cursor in a read-only transaction, sent in a way that admits one statement only. A superuser's rights are
dropped first, since some of their functions write files from within a query.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.connections.sqlite_connections import BUSY_SECONDS
from tracker.connections.store_url import format_url
from tracker.database import create_unchecked_engine, make_read_only_uri
from tracker.errors import DatabaseError, SqlError
from tracker.integrity.sealed_rows import MOVED, raise_for_moved, reads_measurements
from tracker.queries.sql import tables
from tracker.queries.sql.leaderboard_columns import IntervalColumns, needs_intervals
from tracker.queries.sql.statement_errors import (
    READING_ONLY,
    as_sentence,
    explain_denied,
    explain_missing_name,
    explain_syntax,
)

if TYPE_CHECKING:
    import psycopg

ROWS_AT_ONCE = 1000
BYTES_AT_ONCE = 8 << 20
"""Size of values after which a block of rows ends."""
MAX_BYTES = 500_000_000
"""Default limit on the size of a result."""
BYTES_OF_NUMBER = 8
STOP_AGAIN_SECONDS = 0.2
MAX_VALUE_LENGTH = 50_000_000

READING_PRAGMAS = {"foreign_key_list", "index_info", "index_list", "table_info", "table_list", "table_xinfo"}
WRITING_FUNCTIONS = {"edit", "fts3_tokenizer", "load_extension", "readfile", "writefile"}
# A superuser whose rights were dropped could regain them with these, or hide their name.
LIFTING = re.compile(r"set_config|(query|cursor)_to_xml|ts_stat|ts_rewrite|u&\"", re.IGNORECASE)

# Tables and views with passwords or their hashes, and functions that read a table named in a text.
SECRET = re.compile(r"pg_authid|pg_shadow|pg_subscription|pg_user_mapping|pg_largeobject|_to_xml|u&\"", re.IGNORECASE)
READS_SECRETS = "SELECT has_table_privilege('pg_authid', 'SELECT')"

RELATIONS = """
SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname !~ '^(pg_|information_schema)'
"""

SUPERUSER_HINT = (
    "You are connected as a superuser; the statement runs with the rights of pg_read_all_data. Connect as a role "
    "with read rights only (see docs/how-to/sql.md)."
)


@dataclass(frozen=True, kw_only=True)
class SqlResult:
    """The result of a statement.

    Attributes:
        columns: their names, in order.
        rows: tuples of values as returned by the engine, read on demand.
        warnings: warnings for the user.
    """

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]
    warnings: tuple[str, ...] = ()


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
    clock = _Clock(limit_seconds, rows_at_once=rows_at_once)
    read = _read_sqlite if engine.dialect.name == "sqlite" else _read_postgresql
    intervals = IntervalColumns(engine, text, limit_seconds) if needs_intervals(text) else None
    with read(engine, text, clock, intervals) as result:
        columns = _number_duplicates(result.columns)
        renamed = [name for name, original in zip(columns, result.columns, strict=True) if name != original]
        warnings = (f"duplicate column names are numbered: {', '.join(renamed)}; use AS to name them",) * bool(renamed)
        warnings = (*result.warnings, *(intervals.warnings if intervals else ()), *warnings)
        yield SqlResult(columns=columns, rows=_limit_bytes(islice(result.rows, max_rows), max_bytes), warnings=warnings)


def _limit_bytes(rows: Iterator[tuple[Any, ...]], max_bytes: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows up to a total size.

    Raises:
        SqlError: the rows are larger.
    """
    size = 0
    for row in rows:
        size += measure_row(row)
        if size > max_bytes:
            raise SqlError(
                f"The result is larger than {max_bytes / 1e6:g} MB. Select fewer rows or columns, or raise the limit."
            )
        yield row


def measure_row(row: tuple[Any, ...]) -> int:
    """Return the size of a row in bytes: characters of texts, bytes, and 8 for any other value."""
    return sum(len(v) if isinstance(v, str | bytes | memoryview) else BYTES_OF_NUMBER for v in row)


class _Clock:
    """Limits the engine's time, counted only between entering and leaving.

    At the end of the time another thread stops the engine, again and again until it does: a first attempt may come
    just before the engine begins.
    """

    def __init__(
        self, seconds: float, on_end: Callable[[], object] | None = None, rows_at_once: int = ROWS_AT_ONCE
    ) -> None:
        self.limit, self.left, self.on_end, self.rows_at_once = seconds, seconds, on_end, rows_at_once
        self._deadline = 0.0
        self._left = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> None:
        self._deadline = time.monotonic() + self.left
        if self.on_end is not None:
            self._left.clear()
            self._watcher = threading.Thread(target=self._watch, args=(self.on_end,), daemon=True)
            self._watcher.start()

    def __exit__(self, *_: object) -> None:
        self.left = self._deadline - time.monotonic()
        if self._watcher is not None:
            self._left.set()
            self._watcher.join()  # what it stops must be this statement, not the next one
            self._watcher = None

    def _watch(self, stop: Callable[[], object]) -> None:
        wait = max(self.left, 0)
        while not self._left.wait(wait):
            stop()
            wait = STOP_AGAIN_SECONDS

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._deadline

    @property
    def error(self) -> SqlError:
        return SqlError(f"The statement was stopped after {self.limit:g} s. Narrow it down, or raise the limit.")


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


# --- SQLite ---


@contextmanager
def _read_sqlite(
    engine: sa.Engine, statement: str, clock: _Clock, intervals: IntervalColumns | None
) -> Iterator[SqlResult]:
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


def _guard_sqlite(raw: sqlite3.Connection, clock: _Clock) -> None:
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
    cursor: sqlite3.Cursor, clock: _Clock, explain: Callable[[sqlite3.Error], SqlError]
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
    error: sqlite3.Error | sqlite3.Warning, *, clock: _Clock, statement: str, engine: sa.Engine
) -> SqlError:
    message = str(error)
    if message == "interrupted":
        return clock.error
    if any(part in message for part in ("not authorized", "prohibited", "one statement", "readonly")):
        return explain_denied(message, statement)
    if match := re.match(r"no such (table|column): (.*)", message):
        return explain_missing_name(message, match[1], match[2], statement, engine)
    return explain_syntax(message, statement, engine) if "syntax error" in message else SqlError(as_sentence(message))


# --- PostgreSQL ---


@contextmanager
def _read_postgresql(
    engine: sa.Engine, statement: str, clock: _Clock, intervals: IntervalColumns | None
) -> Iterator[SqlResult]:
    import psycopg

    _, options = engine.dialect.create_connect_args(engine.url)
    try:
        raw = psycopg.connect(**options, autocommit=True)
    except psycopg.OperationalError as error:
        raise DatabaseError(
            f"{format_url(engine.url)}: the server does not answer. Check that it runs and that the URL is right."
        ) from error
    clock.on_end = raw.cancel
    try:
        if intervals is not None:
            intervals.add_to_postgresql(raw)
        warnings = _guard_postgresql(raw, statement, clock)
        try:
            if reads_measurements(statement, of_user=True) or _names_foreign_relation(raw, statement):
                raise_for_moved(engine, [run for run, _ in raw.execute(MOVED)])
        except psycopg.Error as error:
            raise _postgresql_error(error, clock, statement, engine) from error
        try:
            with clock, raw.cursor() as cursor:
                # Binary results go through the extended protocol, which admits one statement only.
                cursor.execute(f"DECLARE reading NO SCROLL CURSOR FOR {statement}".encode(), binary=True)
            with clock, raw.cursor() as cursor:
                cursor.execute("FETCH 0 FROM reading")
                columns = tuple(column.name for column in cursor.description or ())
        except psycopg.Error as error:
            raise _postgresql_error(error, clock, statement, engine) from error
        yield SqlResult(columns=columns, rows=_postgresql_rows(raw, clock, statement, engine), warnings=warnings)
    finally:
        raw.close()  # undoes the transaction


def _guard_postgresql(raw: psycopg.Connection[Any], statement: str, clock: _Clock) -> tuple[str, ...]:
    """Begin a read-only transaction with minimal rights, or make the one that is open read only."""
    from psycopg.pq import TransactionStatus

    is_open = raw.info.transaction_status != TransactionStatus.IDLE
    raw.execute("SET TRANSACTION READ ONLY" if is_open else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    raw.execute("SET LOCAL cursor_tuple_fraction = 1")
    # If the connection breaks, the server stops too. The statement could disable this timeout, but not the clock.
    raw.execute(f"SET LOCAL statement_timeout = {int(clock.limit * 1000) + 1000}")
    row = raw.execute(
        "SELECT rolsuper, EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'pg_read_all_data') "
        "FROM pg_roles WHERE rolname = session_user"
    ).fetchone()
    is_superuser, can_step_down = row or (True, False)
    if is_superuser and not can_step_down:
        raise SqlError("No statement is safe as a superuser on this server. Connect as a role with read rights only.")
    if is_superuser:
        raw.execute("SET LOCAL ROLE pg_read_all_data")
    reads_secrets = raw.execute(READS_SECRETS).fetchone() == (True,)
    patterns = [LIFTING] * is_superuser + [SECRET] * reads_secrets
    if match := next(filter(None, (pattern.search(statement) for pattern in patterns)), None):
        role = "superusers" if is_superuser else "a role that may read passwords"
        raise SqlError(f"{match.group()} is not allowed for {role}. Connect as a role with read rights only.")
    return (SUPERUSER_HINT,) if is_superuser else ()


def _names_foreign_relation(raw: psycopg.Connection[Any], statement: str) -> bool:
    """Return whether a statement names a partition, or a table or view of another program, which may read scores."""
    from tracker.schema.views import VIEWS

    words = {word.lower() for word in re.findall(r"\w+", statement)}
    known = {*vars(tables), *VIEWS}
    return "u&" in statement.lower() or any(name.lower() in words - known for (name,) in raw.execute(RELATIONS))


def _postgresql_rows(
    raw: psycopg.Connection[Any], clock: _Clock, statement: str, engine: sa.Engine
) -> Iterator[tuple[Any, ...]]:
    import psycopg

    n = 1
    while True:
        try:
            with clock:
                rows = raw.execute(f"FETCH {n} FROM reading").fetchall()
        except psycopg.Error as error:
            raise _postgresql_error(error, clock, statement, engine) from error
        if not rows:
            return
        # Few rows at first, and never more than fit if all are as large as the largest.
        n = max(1, min(4 * n, BYTES_AT_ONCE // max(1, *map(measure_row, rows)), clock.rows_at_once))
        yield from rows


def _postgresql_error(error: psycopg.Error, clock: _Clock, statement: str, engine: sa.Engine) -> SqlError:
    from psycopg import errors

    if isinstance(error, errors.QueryCanceled):
        return clock.error
    message = error.diag.message_primary or str(error).splitlines()[0]
    if isinstance(error, errors.ReadOnlySqlTransaction | errors.InsufficientPrivilege | errors.FeatureNotSupported):
        return explain_denied(message, statement)
    if isinstance(error, errors.SyntaxError):
        return explain_syntax(message, statement, engine)
    kind = "table" if isinstance(error, errors.UndefinedTable) else "column"
    undefined = isinstance(error, errors.UndefinedTable | errors.UndefinedColumn)
    if undefined and (match := re.search(r'(?:relation|column) "?([^" ]+)"?', message)):
        return explain_missing_name(message, kind, match[1], statement, engine)
    return SqlError(as_sentence(message))
