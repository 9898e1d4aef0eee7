"""State in the summary of tests how many tests of the benchmark were recorded, and what Holm over all leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.looks import UNRECORDED, ReportMetrics, describe_looks, list_looks
from tracker.queries.sql import tables
from tracker.recording.record import MetricRow, Provenance
from tracker.recording.registry import discover_tests

if TYPE_CHECKING:
    from tracker.recording.finding import Report


def add_looks(
    session: Session, provenance: Provenance, report: Report, metrics: Sequence[MetricRow], key: int = UNRECORDED
) -> Report:
    """Return a report whose summary has the line about looks, if the analysis declares tests.

    Args:
        session: the store.
        provenance: of the report.
        report: the report.
        metrics: its metrics.
        key: of its finding, if it is recorded.
    """
    declared, benchmark, selection = discover_tests(), provenance.benchmark_id, provenance.selection
    if provenance.analysis not in declared or benchmark is None or selection is None:
        return report
    unrecorded = None
    if key == UNRECORDED:
        unrecorded = ReportMetrics(
            key=key,
            analysis=provenance.analysis,
            about=ReportMetrics.describe_data(provenance.parameters, selection.as_json(), provenance.input_digest),
            metrics={metric.name: metric.value for metric in metrics if metric.value is not None},
        )
    looks = list_looks(session, benchmark, declared, unrecorded)
    line = describe_looks(looks, key, selection.benchmark)
    return replace(report, summary=replace(report.summary, looks=line))


def add_recorded_looks(session: Session, records: Sequence[FindingRecord]) -> list[FindingRecord]:
    """Return findings whose summaries have the line about looks, where their analysis declares tests.

    Args:
        session: the store.
        records: the findings.
    """
    declared, finding = discover_tests(), tables.finding.c
    keys = [record.id for record in records if record.name in declared]
    benchmarks = dict(session.execute(sa.select(finding.id, finding.benchmark_id).where(finding.id.in_(keys))).all())
    looks = {key: list_looks(session, key, declared) for key in set(benchmarks.values()) - {None}}
    return [
        replace(record, summary=replace(record.summary, looks=line))
        if (line := describe_looks(looks.get(benchmarks.get(record.id), ()), record.id, record.benchmark or ""))
        else record
        for record in records
    ]
