"""Export the runs of the store, or of a benchmark.

Each row has model, condition, settings, status, means, times and source files of a run.

Examples:
    suffrage export runs --output runs.csv
    suffrage export runs mmlu_pro --format jsonl
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.exporting.declaration import export
from tracker.exporting.table_files import StreamedTable
from tracker.queries.catalogue.listing import RunRow, list_runs
from tracker.queries.sql import tables
from tracker.run_fields import RUN_FIELDS, run_heading

if TYPE_CHECKING:
    import pyarrow as pa

LAST_FIELDS = ("settings", "started")
"""Fields of a run that follow its scores."""


@export
def export_runs(session: Session, benchmark: str | None = None) -> StreamedTable:
    """Return every run of the store, or of a benchmark, in the order of ingestion.

    Columns: ``run_id`` (the key, for --runs), ``benchmark``, ``model``, ``condition``, ``variant``, ``run`` (its
    label), ``few_shot``, ``limited``, ``status``, ``unverified``, ``n_scores``, ``means`` and ``settings`` (JSON),
    ``started``, ``ingested``, ``sources`` (a list of files).

    Raises:
        NotFoundError: the benchmark does not exist.
        SelectionError: there are no runs.
    """
    import pyarrow as pa

    rows = list_runs(session, benchmark=benchmark)[::-1]
    if not rows:
        raise SelectionError(f"{benchmark or 'The store'} has no runs yet. Ingest results: suffrage ingest PATH")
    texts, counts, moment = pa.string(), pa.int64(), pa.timestamp("us", "UTC")
    columns: dict[str, pa.Array] = {
        "run_id": pa.array([row.id for row in rows], counts),
        "benchmark": pa.array([row.benchmark for row in rows], texts),
        "model": pa.array([row.model for row in rows], texts),
        **{run_heading(name): _field_column(name, rows) for name in RUN_FIELDS if name not in LAST_FIELDS},
        "status": pa.array([row.status for row in rows], texts),
        "unverified": pa.array([row.unverified or None for row in rows], texts),
        "n_scores": pa.array([row.n_scores for row in rows], counts),
        "means": pa.array([json.dumps(row.means, ensure_ascii=False) for row in rows], texts),
        **{run_heading(name): _field_column(name, rows) for name in LAST_FIELDS},
        "ingested": pa.array([row.ingested for row in rows], moment),
        "sources": pa.array([row.sources for row in rows], pa.list_(texts)),
    }
    return StreamedTable.from_table(pa.table(columns))


def _field_column(name: str, rows: Sequence[RunRow]) -> pa.Array:
    """Return a field of runs as a column; mappings are JSON, empty ones null."""
    import pyarrow as pa

    values = [getattr(row, name) for row in rows]
    kind = tables.run.c[name].type
    if isinstance(kind, sa.JSON):
        return pa.array([json.dumps(value, ensure_ascii=False) if value else None for value in values], pa.string())
    arrow_types: tuple[tuple[Any, pa.DataType], ...] = (
        (sa.Boolean, pa.bool_()),
        (sa.Integer, pa.int64()),
        (sa.Float, pa.float64()),
        (sa.DateTime, pa.timestamp("us", "UTC")),
    )
    return pa.array(values, next((arrow for sql, arrow in arrow_types if isinstance(kind, sql)), pa.string()))
