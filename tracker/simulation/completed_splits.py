"""Split the prompts of a benchmark at random under a policy for missing scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlalchemy.orm import Session

from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.ranking.completions import load_completions
from tracker.queries.selection import Selection
from tracker.recording.finding import Report
from tracker.recording.inputs.combined_report import combine_reports
from tracker.recording.record import Provenance

Simulate = Callable[[PerformanceMatrix, str], tuple[Provenance, Report]]
"""Splits a table and analyzes the parts; the text describes what missing scores are, '' without any."""


def load_tables(session: Session, selection: Selection) -> dict[str, PerformanceMatrix]:
    """Load the tables to split: measured scores, and under ``bounds`` the extreme completions by label.

    Args:
        session: the store.
        selection: with a policy for missing scores.

    Raises:
        SelectionError: the selection is empty, or no prompt has a score from every model.
    """
    if selection.missing != "bounds":
        return {"": load_performance_matrix(session, selection)}

    def load(chosen: Selection) -> Mapping[str, PerformanceMatrix]:
        return {"scores": load_performance_matrix(session, chosen)}

    measured = load(replace(selection, missing="common"))
    completions = load_completions(load, selection, measured)
    return {"": measured["scores"], **{item.label: item.inputs["scores"] for item in completions}}


def simulate_tables(tables: Mapping[str, PerformanceMatrix], simulate: Simulate) -> tuple[Provenance, Report]:
    """Simulate splits of each table; the report is of the first one, with what the others change.

    Args:
        tables: as from `load_tables`.
        simulate: for one table.
    """
    results = {label: simulate(table, label) for label, table in tables.items()}
    provenance, report = results.pop("")
    if not results:
        return provenance, report
    digests = [provenance.input_digest, *(completed.input_digest for completed, _ in results.values())]
    completed = {label: report for label, (_, report) in results.items()}
    return (
        replace(provenance, input_digest=hashlib.sha256("\n".join(digests).encode()).hexdigest()),
        combine_reports(report, completed, policy="bounds", tests=()),
    )
