"""Move the scores and answers of a PostgreSQL store into partitions by benchmark, in steps that can be killed.

A store whose upgrade has begun is at version `BEGUN`: nothing reads or writes it, and the rows are in tables that no
longer change. Each step moves some whole runs and commits; a later call continues with the runs that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy as sa

from tracker.connections.partitions import PARTITIONED

BEGUN, DONE = "0015", "0016"
"""Versions of a store whose rows are being moved, and whose rows are in partitions."""
ROWS_PER_STEP = 1_000_000

Progress = Callable[[int, int], None]
Step = Callable[[], AbstractContextManager[sa.Connection]]


def convert_rows(connection: sa.Connection) -> None:
    """Move what remains, inside the transaction of a connection."""

    @contextmanager
    def step() -> Iterator[sa.Connection]:
        yield connection

    _convert(step, None)


def convert_in_steps(engine: sa.Engine, progress: Progress | None = None) -> None:
    """Move the rows in committed steps of about `ROWS_PER_STEP` rows.

    Args:
        engine: a store at version `BEGUN`; no other process may convert it at the same time.
        progress: receives the number of rows moved, and the estimated total.
    """
    _convert(engine.begin, progress)


def _convert(step: Step, progress: Progress | None) -> None:
    with step() as connection:
        n_total = sum(_estimate_rows(connection, table) for table in PARTITIONED)
        benchmarks = connection.exec_driver_sql("SELECT id FROM benchmark ORDER BY id").scalars().all()
    n_moved = 0
    for table in PARTITIONED:
        for benchmark in benchmarks:
            with step() as connection:
                portions, n_here = _start(connection, table, benchmark)
            n_moved += n_here
            for portion in portions or ():
                with step() as connection:
                    n_moved += _move(connection, table, benchmark, portion)
                if progress is not None:
                    progress(min(n_moved, n_total), n_total)
            if portions is not None:
                with step() as connection:
                    connection.execute(sa.select(sa.func.attach_partition(table, benchmark)))
    if progress is not None:
        progress(n_total, n_total)


def _estimate_rows(connection: sa.Connection, table: str) -> int:
    """Return about how many rows a former table has."""
    known = f"SELECT reltuples::bigint FROM pg_class WHERE oid = '{table}_unpartitioned'::regclass"
    estimate = int(connection.exec_driver_sql(known).scalar_one())
    return max(estimate, 0) or int(
        connection.exec_driver_sql(f"SELECT count(*) FROM {table}_unpartitioned").scalar_one()
    )


def _start(connection: sa.Connection, table: str, benchmark: int) -> tuple[list[Sequence[int]] | None, int]:
    """Return the runs to move into a partition, in portions, and the number of rows that are there.

    The partition is created if it does not exist; None instead of portions if it is complete.
    """
    partition = f"{table}_{benchmark}"
    attached = "SELECT count(*) FROM pg_inherits WHERE inhrelid = to_regclass(%s)"
    if connection.exec_driver_sql(attached, (partition,)).scalar_one():
        return None, int(connection.exec_driver_sql(f"SELECT count(*) FROM {partition}").scalar_one())
    connection.execute(sa.select(sa.func.start_partition(table, benchmark)))
    counted = connection.exec_driver_sql(f"SELECT run_id, count(*) FROM {partition} GROUP BY run_id")
    moved = {run_id: n_rows for run_id, n_rows in counted}  # noqa: C416
    runs = connection.exec_driver_sql(
        "SELECT id, greatest(n_scores, 1) FROM run WHERE benchmark_id = %s ORDER BY id", (benchmark,)
    ).all()
    portions: list[Sequence[int]] = []
    portion: list[int] = []
    n_rows = 0
    for run_id, n_scores in runs:
        if run_id in moved:
            continue
        portion.append(run_id)
        n_rows += n_scores
        if n_rows >= ROWS_PER_STEP:
            portions.append(portion)
            portion, n_rows = [], 0
    return ([*portions, portion] if portion else portions), sum(moved.values())


def _move(connection: sa.Connection, table: str, benchmark: int, run_ids: Sequence[int]) -> int:
    """Copy the rows of some runs into a partition; return their number."""
    columns = ", ".join(
        connection.exec_driver_sql(
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 "
            "AND NOT attisdropped ORDER BY attnum",
            (f"{table}_unpartitioned",),
        ).scalars()
    )
    moved = connection.exec_driver_sql(
        f"INSERT INTO {table}_{benchmark} ({columns}) SELECT {columns} FROM {table}_unpartitioned "
        "WHERE run_id = ANY (%s)",
        (list(run_ids),),
    )
    return moved.rowcount
