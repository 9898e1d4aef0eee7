"""The partitions of a PostgreSQL store: one of ``score`` and one of ``answer`` for each benchmark.

A benchmark that is inserted gets empty partitions at once, unless `built_partitions` builds them with their first rows:
a table without keys is filled, then its keys and references are checked in one pass, and it is attached.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from tracker.integrity.sealed_rows import checked_term, require_benchmark, require_runs

PARTITIONED = ("score", "answer")
BENCHMARK = "benchmark_id"
"""The column that both tables have on PostgreSQL only."""
NO_BENCHMARK = 0
"""Key of no benchmark: the engine looks up the benchmark of each row, and rejects rows without a run."""
BUILT = "suffrage.partitions"
"""Key in the information of a connection: the table into which rows are copied, by table and benchmark."""

_TRIGGER = "benchmark_inserted"


def is_partitioned(connection: sa.Connection, table: str) -> bool:
    """Return whether a table of a store is partitioned by benchmark."""
    return connection.dialect.name == "postgresql" and table in PARTITIONED


class _InPartition(FunctionElement[bool]):
    """A term ``table.benchmark_id = value`` on PostgreSQL, which is always true on SQLite."""

    type = sa.Boolean()
    inherit_cache = True


@compiles(_InPartition)
def _compile(element: _InPartition, compiler: SQLCompiler, **options: Any) -> str:
    column, value = element.clauses
    return f"{compiler.process(column, **options)} = {compiler.process(value, **options)}"


@compiles(_InPartition, "sqlite")
def _compile_for_sqlite(element: _InPartition, compiler: SQLCompiler, **options: Any) -> str:
    return "1"


def in_partition(session: Session, table: sa.FromClause, benchmark: int) -> sa.ColumnElement[bool]:
    """Return the term of a query by which PostgreSQL reads the partition of one benchmark and no other.

    Args:
        session: the store.
        table: ``score`` or ``answer``; other terms select rows of runs of the benchmark.
        benchmark: its key.

    Raises:
        SealedRowsError: rows of the benchmark are in sealed files only.
    """
    require_benchmark(session, benchmark)
    return sa.and_(_InPartition(_benchmark_column(table), benchmark), checked_term(session))


def in_partition_of(table: sa.FromClause, benchmark: int | sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Return the term of a query by which PostgreSQL reads each row in the partition of its benchmark.

    Unlike with `in_partition`, the statement is taken to read the rows of every run.

    Args:
        table: ``score`` or ``answer``.
        benchmark: the key of the benchmark, such as a column of ``run``.
    """
    return _InPartition(_benchmark_column(table), benchmark)


def in_partitions_of_runs(session: Session, table: sa.FromClause, run_ids: Collection[int]) -> sa.ColumnElement[bool]:
    """Return the term of a query by which PostgreSQL reads the partitions of the benchmarks of some runs.

    Their keys are looked up first: PostgreSQL then plans for these partitions alone, however many there are.

    Args:
        session: the store.
        table: the table; other terms select rows of the runs. The term is always true for one without partitions.
        run_ids: keys of the runs.

    Raises:
        SealedRowsError: rows of the runs are in sealed files only.
    """
    if getattr(table, "name", "") not in PARTITIONED:
        return sa.true()
    require_runs(session, run_ids)
    if session.get_bind().dialect.name == "sqlite":
        return checked_term(session)
    benchmarks = sorted(set(find_benchmarks(session.connection(), run_ids).values()))
    # As literals: a statement that is executed for many rows takes no list of parameters.
    keys = ", ".join(map(str, benchmarks)) or "NULL"
    return sa.and_(sa.literal_column(f"{_benchmark_column(table)} IN ({keys})", sa.Boolean()), checked_term(session))


def _benchmark_column(table: sa.FromClause) -> sa.ColumnClause[int]:
    name = getattr(table, "name")  # noqa: B009
    return sa.literal_column(f"{name}.{BENCHMARK}", sa.Integer())


def find_benchmarks(connection: sa.Connection, run_ids: Collection[int]) -> dict[int, int]:
    """Return the benchmark of each of some runs, by key."""
    rows = connection.exec_driver_sql("SELECT id, benchmark_id FROM run WHERE id = ANY (%s)", (list(set(run_ids)),))
    return {run_id: benchmark_id for run_id, benchmark_id in rows}  # noqa: C416


@contextmanager
def built_partitions(connection: sa.Connection) -> Iterator[None]:
    """Build the partitions of benchmarks that the block inserts with the rows that `target_table` is used for.

    At the end of the block the partitions are checked and attached; until then, queries do not find their rows.
    Then benchmarks without rows get empty partitions.

    Args:
        connection: a connection with an open write transaction; nothing is done on SQLite.
    """
    if connection.dialect.name == "sqlite":
        yield
        return
    connection.exec_driver_sql(f"SET CONSTRAINTS {_TRIGGER} DEFERRED")
    information = connection.info  # a lost connection has none
    started: dict[tuple[str, int], str] = information.setdefault(BUILT, {})
    try:
        yield
        for (table, benchmark_id), target in started.items():
            if target != table:
                connection.execute(sa.select(sa.func.attach_partition(table, benchmark_id)))
        connection.exec_driver_sql(f"SET CONSTRAINTS {_TRIGGER} IMMEDIATE")
    finally:
        information.pop(BUILT, None)


def target_table(connection: sa.Connection, table: str, benchmark_id: int) -> str:
    """Return the table of a PostgreSQL store into which rows of a benchmark are copied.

    Within `built_partitions` it is the partition if that is new, which is created by the first call; else the table.
    """
    started: dict[tuple[str, int], str] | None = connection.info.get(BUILT)
    if started is None:
        return table
    key = table, benchmark_id
    if key not in started:
        started[key] = connection.scalar(sa.select(sa.func.start_partition(table, benchmark_id))) or table
    return started[key]
