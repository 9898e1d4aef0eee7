"""Terms of statements that read rows of some runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tracker.queries.sql.arrow import Reading, number_columns, read_arrow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def join_keys(keys: Sequence[int]) -> str:
    """Return keys as part of a statement; with parameters PostgreSQL would not use its fast path."""
    return ",".join(str(int(key)) for key in keys) or "NULL"


def run_terms(source: Session | sa.Engine | Reading, run_ids: Sequence[int]) -> str:
    """Return the terms by which rows of ``score`` or ``answer`` of some runs are read.

    On PostgreSQL they name the benchmarks of the runs, whose partitions are read and no others.

    Args:
        source: the store, of which only committed runs are visible; or an open connection for reading.
        run_ids: keys of the runs.
    """
    terms = f"run_id IN ({join_keys(run_ids)})"
    if _is_sqlite(source):
        return terms
    benchmarks = read_arrow(source, f"SELECT DISTINCT benchmark_id FROM run WHERE id IN ({join_keys(run_ids)})")
    return f"{terms} AND benchmark_id IN ({join_keys(number_columns(benchmarks)[0].tolist())})"


def _is_sqlite(source: Session | sa.Engine | Reading) -> bool:
    if isinstance(source, Reading):
        return source.is_sqlite
    return (source if isinstance(source, sa.Engine) else source.get_bind()).dialect.name == "sqlite"
