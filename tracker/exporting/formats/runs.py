"""Write the runs of the store, or of a benchmark: who answered, how, when, from which files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlmodel import Session

from tracker.errors import SelectionError
from tracker.exporting.declaration import export
from tracker.exporting.table_files import StreamedTable
from tracker.queries.catalogue.listing import list_runs

if TYPE_CHECKING:
    import pyarrow as pa


@export
def export_runs(session: Session, benchmark: str | None = None) -> StreamedTable:
    """Every run of the store, or of a benchmark, in the order in which they were taken in.

    Columns: ``run_id`` (the key, by which --runs chooses), ``benchmark``, ``model``, ``condition``, ``variant``,
    ``run`` (its label), ``few_shot``, ``limited``, ``status``, ``n_scores``, ``means`` and ``settings`` (JSON),
    ``started``, ``ingested``, ``sources`` (a list of files).

    Raises:
        NotFoundError: there is no such benchmark.
        SelectionError: there are no runs.
    """
    import pyarrow as pa

    rows = list_runs(session, benchmark=benchmark)[::-1]
    if not rows:
        raise SelectionError(f"{benchmark or 'The store'} has no runs yet. Take some in: suffrage ingest PATH")
    texts, counts, moment = pa.string(), pa.int64(), pa.timestamp("us", "UTC")
    columns: dict[str, pa.Array] = {
        "run_id": pa.array([row.id for row in rows], counts),
        "benchmark": pa.array([row.benchmark for row in rows], texts),
        "model": pa.array([row.model for row in rows], texts),
        "condition": pa.array([row.condition for row in rows], texts),
        "variant": pa.array([row.variant for row in rows], texts),
        "run": pa.array([row.label for row in rows], texts),
        "few_shot": pa.array([row.few_shot for row in rows], counts),
        "limited": pa.array([row.limited for row in rows], pa.bool_()),
        "status": pa.array([row.status for row in rows], texts),
        "n_scores": pa.array([row.n_scores for row in rows], counts),
        "means": pa.array([json.dumps(row.means, ensure_ascii=False) for row in rows], texts),
        "settings": pa.array([json.dumps(row.settings, ensure_ascii=False) if row.settings else None for row in rows]),
        "started": pa.array([row.started for row in rows], moment),
        "ingested": pa.array([row.ingested for row in rows], moment),
        "sources": pa.array([row.sources for row in rows], pa.list_(texts)),
    }
    return StreamedTable.from_table(pa.table({**columns, "settings": columns["settings"].cast(texts)}))
