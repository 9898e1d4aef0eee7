"""Rows of sealed runs, which are in files outside the store: what would read a table without them raises an error.

A statement on ``score``, ``answer`` or a view of them is taken to read the rows of every run, unless the terms of
`tracker.connections.partitions` limit it to some. What is moved is looked up in the transaction of the statement, so
that it sees the same state; on PostgreSQL the lookup keeps the rows in the store until the transaction ends.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from tracker.errors import SealedRowsError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

TABLE = "sealed_run"
IGNORED = "sealed_rows_ignored"
"""Execution option of connections whose statements are to see the rows in the store alone."""
MOVED = (
    f"SELECT {TABLE}.run_id, run.benchmark_id FROM {TABLE} JOIN run ON run.id = {TABLE}.run_id "
    f"WHERE NOT {TABLE}.rows_in_store"
)
"""The query for the runs whose rows are not in the store, and their benchmarks."""

CHECKED = "/* rows in store */"
"""Part of statements whose rows are known to be in the store."""

_INFO = "suffrage.sealed"
_NAMES = "(score|answer|leaderboard|run_history)"
# Not after a dot, which begins a column such as prompt.answer, unless the part before it is a schema.
_READS = re.compile(rf'(?<![\w.]){_NAMES}\b|\b(FROM|JOIN|UPDATE|INTO)\s+"?\w+"?\s*\.\s*"?{_NAMES}\b', re.IGNORECASE)
_NOT_READING = ("PRAGMA", "VACUUM")
_ANYWHERE = re.compile(rf"\b{_NAMES}\b", re.IGNORECASE)
_ONLY_INSERTS = re.compile(r"\s*INSERT INTO (score|answer) \([^()]*\) VALUES\b", re.IGNORECASE)
_HAS_TABLE = {
    "sqlite": f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '{TABLE}'",
    "postgresql": f"SELECT to_regclass('{TABLE}') IS NOT NULL",
}


def watch_statements(engine: sa.Engine) -> None:
    """Let statements of an engine raise `SealedRowsError` where they would miss rows."""
    event.listen(engine, "begin", lambda connection: connection.info.pop(_INFO, None))
    event.listen(engine, "before_cursor_execute", _check_statement)


def reads_measurements(statement: str, *, of_user: bool = False) -> bool:
    """Return whether a statement may read scores or answers.

    Args:
        statement: one statement.
        of_user: whether anybody may have written it, in any way that SQL allows.
    """
    if of_user:
        return _ANYWHERE.search(statement) is not None
    return _READS.search(statement) is not None and not statement.startswith(_NOT_READING)


def find_moved(connection: sa.Connection) -> Mapping[int, int]:
    """Return the runs whose rows are not in the store, with their benchmarks; kept until the transaction ends."""
    if connection.get_execution_options().get(IGNORED):
        return {}
    moved: dict[int, int] | None = connection.info.get(_INFO)
    if moved is None:
        moved = connection.info[_INFO] = list_moved(connection)
    return moved


def list_moved(connection: sa.Connection) -> dict[int, int]:
    """Return the runs whose rows are in sealed files only, with their benchmarks; none in an older store."""
    if not connection.exec_driver_sql(_HAS_TABLE[connection.dialect.name]).scalar():
        return {}
    return {run: benchmark for run, benchmark in connection.exec_driver_sql(MOVED)}  # noqa: C416


def require_runs(session: Session, run_ids: Collection[int]) -> None:
    """Check that the rows of some runs are in the store.

    Raises:
        SealedRowsError: they are in sealed files only.
    """
    moved = find_moved(session.connection())
    raise_for_moved(session.get_bind().engine, moved.keys() & set(run_ids))


def require_benchmark(session: Session, benchmark_id: int) -> None:
    """Check that the rows of all runs of a benchmark are in the store; see `require_runs`."""
    moved = find_moved(session.connection())
    raise_for_moved(session.get_bind().engine, {run for run, key in moved.items() if key == benchmark_id})


def require_all(connection: sa.Connection) -> None:
    """Check that the rows of all runs are in the store; see `require_runs`."""
    raise_for_moved(connection.engine, find_moved(connection))


def raise_for_moved(engine: sa.Engine, run_ids: Collection[int]) -> None:
    """Raise an error if there are any runs.

    Raises:
        SealedRowsError: with the runs.
    """
    if run_ids:
        raise SealedRowsError(engine.url.render_as_string(hide_password=False), sorted(run_ids))


def checked_term(session: Session) -> sa.ColumnElement[bool]:
    """Return a term, always true, of a statement whose runs have been required by `require_runs` and the like."""
    if not find_moved(session.connection()):
        return sa.true()
    return sa.literal_column(f"(1 = 1 {CHECKED})", sa.Boolean())


def _check_statement(
    connection: sa.Connection, _cursor: Any, statement: str, _parameters: Any, _context: Any, _many: bool
) -> None:
    if reads_measurements(statement) and not _ONLY_INSERTS.match(statement) and CHECKED not in statement:
        require_all(connection)
