"""Export the numbers of findings, one row each.

Exports all findings, those about a benchmark, or one by its ID.

Examples:
    suffrage export findings --output findings.csv
    suffrage export findings mmlu_pro --format jsonl
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.exporting.declaration import export
from tracker.exporting.table_files import StreamedTable
from tracker.plugins.parameters import ValueHint
from tracker.queries.findings.finding_records import load_finding_records
from tracker.queries.resolution import find_benchmark
from tracker.queries.selected_runs.conditions import MAX_KEY
from tracker.queries.sql import tables

if TYPE_CHECKING:
    import pyarrow as pa


@export
def export_findings(
    session: Session, selector: Annotated[str | None, ValueHint(metavar="[BENCHMARK|ID]")] = None
) -> StreamedTable:
    """Return every metric of every finding, of those about a benchmark, or of one, in the order of recording.

    Columns: ``finding`` (the key), ``analysis``, ``benchmark``, ``recorded``, ``status``, ``stale`` (why it no longer
    holds), ``parameters`` and ``selection`` (JSON), ``seed``, ``headline``, ``evidence``, ``caveats``, then ``metric``,
    ``value`` and ``reason`` (why there is no value). A finding without metrics, such as one that failed, has one row.

    Args:
        session: the store.
        selector: a benchmark, or the key of a finding; None for all findings.

    Raises:
        NotFoundError: the benchmark or finding does not exist.
        SelectionError: there are no findings.
    """
    import pyarrow as pa

    terms = []
    if selector is not None and selector.isdecimal():
        key = int(selector)
        terms = [tables.finding.c.id == (key if key <= MAX_KEY else -1)]
    elif selector is not None:
        terms = [tables.finding.c.benchmark_id == find_benchmark(session, selector).id]
    records = load_finding_records(session, *terms)[::-1]
    if not records and selector is not None and selector.isdecimal():
        known = session.scalars(tables.finding.select().with_only_columns(tables.finding.c.id)).all()
        raise NotFoundError("finding", selector, sorted(known))
    if not records:
        raise SelectionError(
            f"There are no findings{f' about {selector}' if selector else ''} yet. Run an analysis: suffrage analyze …"
        )
    rows = [
        {
            "finding": record.id,
            "analysis": record.name,
            "benchmark": record.benchmark,
            "recorded": record.recorded,
            "status": record.status,
            "stale": record.stale or None,
            "parameters": json.dumps(record.parameters, ensure_ascii=False),
            "selection": json.dumps(record.selection, ensure_ascii=False),
            "seed": record.seed,
            "headline": record.summary.headline or record.error,
            "evidence": "\n".join(record.summary.evidence),
            "caveats": "\n".join(record.summary.caveats),
            "metric": number.name if number else None,
            "value": number.value if number else None,
            "reason": (number.reason or None) if number else None,
        }
        for record in records
        for number in record.numbers or (None,)
    ]
    kinds: dict[str, pa.DataType] = dict.fromkeys(rows[0], pa.string())
    kinds |= {"finding": pa.int64(), "seed": pa.int64(), "value": pa.float64(), "recorded": pa.timestamp("us", "UTC")}
    return StreamedTable.from_table(pa.Table.from_pylist(rows, pa.schema(list(kinds.items()))))
