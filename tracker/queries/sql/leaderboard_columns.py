"""Intervals as further columns of the view `leaderboard`, for one statement.

They are computed when the statement runs, by the code of `suffrage leaderboard`, so that they are never out of date. A
temporary table on the statement's own connection holds them, and a temporary view of the same name adds them to the
permanent one. Rows whose run, number of scores or mean are not those of the intervals get NULL: where scores are
missing under a metric without bounds, the leaderboard uses the prompts of all models, and the view those of each.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import transaction
from tracker.errors import SuffrageError
from tracker.name_lists import join_names
from tracker.queries.selection import ALL_SPLITS, Selection
from tracker.queries.sql import tables

if TYPE_CHECKING:
    import sqlite3

    import psycopg

COLUMNS = ("stderr", "low", "high", "rank_low", "rank_high")
"""The further columns."""
KEY = ("run_id", "metric", "unit", "n", "mean")
MAX_NAMES = 3
MAX_ATTEMPTS = 3

VIEW = re.compile(r"\bleaderboard\b", re.IGNORECASE)
COUNT = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
NEED = re.compile(rf"\*|\b({'|'.join(COLUMNS)})\b", re.IGNORECASE)
SEVERAL = re.compile(r"\b(or|not|case|join|union|except|intersect|with)\b", re.IGNORECASE)
EQUALITY = re.compile(r"\bwhere\b.*(?<![.\w\"])benchmark\s*=\s*'((?:[^']|'')*)'", re.IGNORECASE | re.DOTALL)

ALONE = re.compile(
    r"^\s*select\b(?:(?!\b(?:select|from)\b).)*\bfrom\s+leaderboard\s+where\b(?:(?!\bselect\b).)*$",
    re.IGNORECASE | re.DOTALL,
)
"""One SELECT from the view alone, with conditions."""

STATE = (
    "SELECT count(*), max(id), sum(n_scores), count(CASE WHEN status = 'complete' THEN 1 END), max(ingested) FROM run"
)
SCHEMA = (
    "SELECT quote_ident(n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.oid = 'leaderboard'::regclass"
)
TABLE = (
    "CREATE TEMPORARY TABLE leaderboard_interval (run_id INTEGER, metric TEXT, unit TEXT, n INTEGER, "
    f"mean DOUBLE PRECISION, {', '.join(f'{name} DOUBLE PRECISION' for name in COLUMNS)})"
)
INSERT = "INSERT INTO leaderboard_interval VALUES ({})"
N_VALUES = len(KEY + COLUMNS)
EXTENDED = (
    "CREATE TEMPORARY VIEW leaderboard AS "
    f"SELECT board.*, {', '.join(f'added.{name}' for name in COLUMNS)} FROM {{view}} AS board "
    "LEFT JOIN leaderboard_interval AS added ON added.run_id = board.run_id AND added.metric = board.metric "
    "AND added.unit = board.unit AND added.n = board.n "
    "AND abs(added.mean - board.mean) <= 1e-9 * (1 + abs(board.mean))"
)


@dataclass(frozen=True, kw_only=True)
class IntervalRows:
    """Intervals of leaderboards.

    Attributes:
        rows: values of `KEY`, then of `COLUMNS`.
        state: of the runs that they were computed from.
        warnings: leaderboards without intervals.
    """

    rows: Sequence[tuple[Any, ...]]
    state: tuple[Any, ...]
    warnings: tuple[str, ...] = ()


def needs_intervals(statement: str) -> bool:
    """Return whether a statement may read the columns of intervals of the view."""
    return VIEW.search(statement) is not None and NEED.search(COUNT.sub("", statement)) is not None


def find_benchmark_name(statement: str) -> str | None:
    """Return the only benchmark whose rows a statement can return; None if it is not certain.

    A single SELECT from the view alone, whose conditions are joined by AND, with one equality of ``benchmark``.
    """
    if len(VIEW.findall(statement)) != 1 or SEVERAL.search(statement) or not ALONE.search(statement):
        return None
    names = EQUALITY.findall(statement)
    return names[0].replace("''", "'") if len(names) == 1 else None


def compute_intervals(engine: sa.Engine, statement: str, limit_seconds: float) -> IntervalRows:
    """Compute the intervals of the leaderboards that a statement may read.

    Args:
        engine: the store.
        statement: the statement.
        limit_seconds: no leaderboard is begun after that time.
    """
    end = time.monotonic() + limit_seconds
    rows: list[tuple[Any, ...]] = []
    failed: dict[str, str] = {}
    with transaction(engine, write=False) as session:
        state = tuple(session.execute(sa.text(STATE)).one())
        for selection in _list_boards(session, find_benchmark_name(statement)):
            label = selection.benchmark
            if time.monotonic() > end:
                failed[label] = f"not computed within {limit_seconds:g} s; name a benchmark with WHERE benchmark = '…'"
                continue
            try:
                rows += _compute_board(session, selection)
            except SuffrageError as error:
                failed[label] = str(error).rstrip(".")
    reasons: dict[str, list[str]] = {}
    for label, reason in failed.items():
        reasons.setdefault(reason, []).append(label)
    warnings = tuple(f"No intervals of {join_names(names, MAX_NAMES)}: {reason}." for reason, names in reasons.items())
    return IntervalRows(rows=rows, state=state, warnings=warnings)


class IntervalColumns:
    """Adds columns of intervals to the view `leaderboard` of one connection, before it can only read.

    The snapshot that the intervals hold in stays open. Without intervals, the view is the permanent one.

    Args:
        engine: the store.
        statement: the statement.
        limit_seconds: no leaderboard is begun after that time.

    Attributes:
        warnings: leaderboards without intervals, or why there are none.
    """

    def __init__(self, engine: sa.Engine, statement: str, limit_seconds: float) -> None:
        self._compute = partial(compute_intervals, engine, statement, limit_seconds)
        self.warnings: tuple[str, ...] = ()

    def add_to_sqlite(self, raw: sqlite3.Connection) -> None:
        """Add the columns on a connection without a transaction."""

        def begin() -> Any:
            raw.execute("BEGIN")
            return raw.execute(STATE).fetchone()

        intervals = self._find_current(begin, raw.rollback)
        if intervals is not None:
            raw.execute(TABLE)
            raw.executemany(INSERT.format(", ".join("?" * N_VALUES)), intervals.rows)
            raw.execute(EXTENDED.format(view="main.leaderboard"))

    def add_to_postgresql(self, raw: psycopg.Connection[Any]) -> None:
        """Add the columns on a connection without a transaction; needs the right to create temporary tables."""
        import psycopg

        def begin() -> Any:
            raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            return raw.execute(STATE).fetchone()

        intervals = self._find_current(begin, raw.rollback)
        if intervals is None:
            return
        try:
            [schema] = raw.execute(SCHEMA).fetchone() or [""]
            raw.execute(TABLE)
            with raw.cursor() as cursor:
                cursor.executemany(INSERT.format(", ".join(["%s"] * N_VALUES)), intervals.rows)
            raw.execute(EXTENDED.format(view=f"{schema}.leaderboard").encode())
        except psycopg.Error as error:
            raw.rollback()
            reason = (error.diag.message_primary or str(error)).rstrip(".")
            self.warnings = (f"The columns of intervals need the right to create temporary tables: {reason}.",)

    def _find_current(self, begin: Callable[[], Any], rollback: Callable[[], Any]) -> IntervalRows | None:
        """Begin a snapshot, and return intervals of the runs in it; None without a snapshot if there are none.

        Args:
            begin: begins a snapshot, and returns the state of the runs in it.
            rollback: ends it.
        """
        for _ in range(MAX_ATTEMPTS):
            try:
                intervals = self._compute()
            except (SuffrageError, sa.exc.DatabaseError):
                return None  # the statement finds out what is wrong with the store
            if list(map(str, begin())) == list(map(str, intervals.state)):
                self.warnings = intervals.warnings
                return intervals
            rollback()
        self.warnings = ("The columns of intervals are left out, because runs change meanwhile. Try again.",)
        return None


def _list_boards(session: Session, name: str | None) -> list[Selection]:
    """Return the selection of each leaderboard, over all splits as the view."""
    from tracker.queries.resolution import benchmark_label
    from tracker.queries.selected_runs.conditions import has_scores

    run, metric, benchmark = tables.run.c, tables.metric.c, tables.benchmark.c
    query = (
        sa.select(benchmark.name, benchmark.revision, metric.name.label("metric"), run.condition, run.variant)
        .select_from(sa.join(tables.run, tables.benchmark, benchmark.id == run.benchmark_id))
        .join(tables.metric, sa.true())
        .where(run.status == "complete", sa.or_(has_scores(session, "prompt"), has_scores(session, "task")))
        .distinct()
        .order_by(benchmark.name, benchmark.revision, metric.name, run.condition, run.variant)
    )
    if name is not None:
        query = query.where(benchmark.name == name)
    return [
        Selection(
            benchmark=benchmark_label(row.name, row.revision),
            metric=row.metric,
            condition=row.condition,
            variant=row.variant,
            split=(ALL_SPLITS,),
        )
        for row in session.execute(query)
    ]


def _compute_board(session: Session, selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Yield the intervals of each model of a leaderboard."""
    from tracker.queries.ranking.leaderboard import load_leaderboard

    board = load_leaderboard(session, selection, n_resamples=0)
    for row in board.rows:
        errors = (row.stderr_clustered, row.stderr_stratified, row.stderr)
        stderr = next((error for error in errors if error is not None), None)
        ranks = board.rank_intervals.get(row.model)
        ends = (None, None) if ranks is None else (ranks.low, ranks.high)
        yield (row.run_id, board.metric, board.unit, row.n, row.mean, stderr, row.low, row.high, *ends)
