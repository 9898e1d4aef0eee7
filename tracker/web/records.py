"""Rows of lists as records of plain values, with the keys that links need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracker.queries.browsing.keys import ModelEntry
from tracker.queries.catalogue.listing import RunRow
from tracker.queries.findings.finding_records import FindingRow
from tracker.report.number_format import format_minute


def run_record(run: RunRow, models: Mapping[str, ModelEntry]) -> dict[str, Any]:
    """Return a run as a record."""
    record = run.as_record()
    record["means"] = dict(run.means)
    record["ingested"] = format_minute(run.ingested)
    record["started"] = None if run.started is None else format_minute(run.started)
    record["sources"] = list(run.sources)
    record["model_id"] = models[run.model].id if run.model in models else None
    return record


def finding_record(row: FindingRow) -> dict[str, Any]:
    """Return a finding in a list as a record."""
    return {
        "id": row.id,
        "analysis": row.name,
        "benchmark": row.benchmark,
        "status": row.status,
        "headline": row.summary.headline or row.error,
        "recorded": format_minute(row.recorded),
        "stale": row.stale,
        "leader": row.leader,
    }
