"""Run SQL of users on PostgreSQL: as a server-side cursor in a read-only transaction.

It is sent in a way that admits one statement only. A superuser's rights are dropped first, since some of their
functions write files from within a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.connections.store_url import format_url
from tracker.errors import DatabaseError, SqlError
from tracker.integrity.sealed_rows import MOVED, raise_for_moved, reads_measurements
from tracker.queries.sql import tables
from tracker.queries.sql.leaderboard_columns import IntervalColumns
from tracker.queries.sql.statement_errors import as_sentence, explain_denied, explain_missing_name, explain_syntax
from tracker.queries.sql.statement_limits import BYTES_AT_ONCE, SqlResult, StatementClock, measure_row

if TYPE_CHECKING:
    import psycopg

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


@contextmanager
def read_postgresql(
    engine: sa.Engine, statement: str, clock: StatementClock, intervals: IntervalColumns | None
) -> Iterator[SqlResult]:
    """Run one statement; see `tracker.queries.sql.read_only.read_only_sql`.

    Args:
        engine: the store.
        statement: the statement.
        clock: limits its time.
        intervals: columns that the view `leaderboard` gets; None for none.
    """
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


def _guard_postgresql(raw: psycopg.Connection[Any], statement: str, clock: StatementClock) -> tuple[str, ...]:
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
    raw: psycopg.Connection[Any], clock: StatementClock, statement: str, engine: sa.Engine
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


def _postgresql_error(error: psycopg.Error, clock: StatementClock, statement: str, engine: sa.Engine) -> SqlError:
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
