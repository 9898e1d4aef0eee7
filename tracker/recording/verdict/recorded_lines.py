"""Lines of the verdict from recorded findings, for analyses that take long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy.orm import Session

from tracker.name_lists import join_names
from tracker.queries.findings.finding_records import FindingRow, get_finding, list_findings
from tracker.queries.ranking.leaderboard_result import Leaderboard
from tracker.queries.selection import Selection
from tracker.recording.finding import LeaderChange, VerdictLine, compare_leaders
from tracker.recording.verdict.recorded_tests import ANALYSIS

UNCOMPARED = ("benchmark", "missing", "min_coverage", "task_effects", "cluster")
"""Recorded choices that need not be those of the verdict."""


def find_recorded_line(
    session: Session, analysis: str, selection: Selection, board: Leaderboard
) -> tuple[VerdictLine, int] | None:
    """Return the leader of the latest current finding of an analysis on the same scores, and the finding's key.

    If the finding has the metric ``n_may_lead``, the line states how many other models may be first.

    Args:
        session: the store.
        analysis: name of the analysis.
        selection: of the verdict, with its metric.
        board: its leaderboard.

    Returns:
        None if there is no such finding.
    """
    rows = [row for row in list_findings(session, benchmark=selection.benchmark) if row.name == analysis]
    row = next((row for row in rows if _is_usable(row, selection)), None)
    if row is None:
        return None
    leaders = row.leader.split(", ")
    verb = "is" if len(leaders) == 1 else "are"
    text = f"{join_names(leaders, 3)} {verb} first in the recorded finding {row.id}"
    metrics = {number.name: number.value for number in get_finding(session, row.id).numbers}
    n_rivals = int(metrics.get("n_may_lead") or len(leaders)) - len(leaders)
    rivals = f"; {n_rivals} other model{'s' * (n_rivals > 1)} may be first too" if n_rivals > 0 else ""
    change = compare_leaders(leaders, board.leaders)
    changes: LeaderChange = "maybe" if rivals and change == "no" else change
    return VerdictLine(topic=analysis.replace("-", " "), text=f"{text}{rivals}.", leader_changes=changes), row.id


def find_recorded_verdict(session: Session, selection: Selection, board: Leaderboard) -> FindingRow | None:
    """Return the latest recorded test of the first place with the runs and choices of a leaderboard; None without one.

    Args:
        session: the store.
        selection: of the leaderboard.
        board: the leaderboard.
    """
    rows = (row for row in list_findings(session, benchmark=selection.benchmark) if row.name == ANALYSIS)
    return next((row for row in rows if is_of_leaderboard(session, row, selection, board)), None)


def is_of_leaderboard(session: Session, row: FindingRow, selection: Selection, board: Leaderboard) -> bool:
    """Return whether a finding is complete, current, and has the runs and choices of a leaderboard.

    Args:
        session: the store.
        row: the finding.
        selection: of the leaderboard.
        board: the leaderboard.
    """
    chosen = {
        "missing": board.missing, "min_coverage": selection.least_coverage, "task_effects": board.task_effects,
        "cluster": board.cluster,
    }  # fmt: skip
    if not (_is_current(row, replace(selection, metric=board.metric)) and _has_choices(row, selection, chosen)):
        return False
    return set(get_finding(session, row.id).run_ids) == {entry.run_id for entry in board.rows}


def _has_choices(row: FindingRow, selection: Selection, chosen: Mapping[str, object]) -> bool:
    """Return whether a finding has the choices of a leaderboard.

    Version 0.1 recorded none of them, so each was the default; it matches a selection that keeps the default.
    """
    recorded, defaults = row.selection or {}, Selection(benchmark=selection.benchmark)
    return all(
        recorded[name] == value if name in recorded else getattr(selection, name) == getattr(defaults, name)
        for name, value in chosen.items()
    )


def _is_usable(row: FindingRow, selection: Selection) -> bool:
    """Return whether a finding is complete, current, of the selection, and names a leader."""
    return bool(row.leader) and _is_current(row, selection)


def _is_current(row: FindingRow, selection: Selection) -> bool:
    """Return whether a finding is complete, current, and of the selection."""
    if row.status != "complete" or row.stale:
        return False
    recorded = {"metric": selection.metric, **(row.selection or {})}  # not recorded if it is the only one
    return _comparable(recorded) == _comparable(selection.as_json())


def _comparable(selection: dict[str, object]) -> dict[str, object]:
    chosen = {name: value for name, value in selection.items() if name not in UNCOMPARED}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()}
