"""The verdict on a benchmark: recorded, or computed in the background."""

from __future__ import annotations

from typing import Any

from tracker.errors import SuffrageError
from tracker.queries.browsing.keys import find_benchmark_label
from tracker.queries.selection import Selection
from tracker.recording.verdict.benchmark_verdict import Verdict, load_verdict
from tracker.recording.verdict.recorded_lines import find_recorded_verdict
from tracker.recording.verdict.recorded_verdict import RecordedVerdict, find_current_verdict
from tracker.report.number_format import format_minute
from tracker.web.background import Outcome
from tracker.web.page import Page
from tracker.web.pages.selections import load_board, make_selection
from tracker.web.query import Query
from tracker.web.records import finding_record
from tracker.web.verdict_process import load_verdict_in_process


def show_verdict(query: Query) -> Page:
    """Return the verdict on a benchmark; it is computed in the background, and the page loads itself again."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)
    selection = make_selection(query, label)
    verdict = _load_recorded_verdict(query, selection)
    outcome = _request_verdict(query, selection) if verdict is None else Outcome(value=verdict)
    data = {
        "benchmark": {"id": query.key, "label": label},
        "options": dict(query.parameters),
        "headline": _describe_lead(query, selection),
        "recorded": _load_recorded(query, selection),
        **_describe_outcome(outcome, verdict),
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Verdict on {label}", template="verdict.html", data=data, table="checks", trail=trail)


def describe_recorded_verdict(query: Query, selection: Selection) -> dict[str, Any] | None:
    """Return the recorded verdict, if its data and choices are the present ones; else None."""
    verdict = _load_recorded_verdict(query, selection)
    return None if verdict is None else _describe_outcome(Outcome(value=verdict), verdict)


def _describe_outcome(outcome: Outcome, recorded: RecordedVerdict | None) -> dict[str, Any]:
    """Return the part of the page that a verdict fills.

    Args:
        outcome: the verdict, or how far its computation is.
        recorded: the verdict, if it was recorded.
    """
    finding = recorded and {"id": recorded.finding_id, "recorded": format_minute(recorded.recorded)}
    verdict = _EMPTY if outcome.value is None else _verdict_record(outcome.value)
    return {**outcome.as_record(), **verdict, "recorded_verdict": finding}


def _request_verdict(query: Query, selection: Selection) -> Outcome:
    """Return the verdict if it is computed; else begin to compute it."""
    compute = load_verdict_in_process if query.background.uses_processes else load_verdict
    return query.background.request(
        ("verdict", selection), lambda report: compute(query.engine, selection, report=report)
    )


def _load_recorded_verdict(query: Query, selection: Selection) -> RecordedVerdict | None:
    """Return the recorded verdict, if its data and choices are the present ones; else None."""

    def compute() -> tuple[RecordedVerdict | None]:
        try:
            board, _ = load_board(query, selection)
            with query.session() as session:
                return (find_current_verdict(session, selection, board),)
        except SuffrageError:  # nothing can be ranked
            return (None,)

    return query.cache.get(("recorded_whole_verdict", selection), compute)[0]


def _describe_lead(query: Query, selection: Selection) -> str:
    """Return who is first, which is known before the verdict; '' if nothing can be ranked."""
    try:
        return load_board(query, selection)[0].describe_lead()
    except SuffrageError:
        return ""


def _load_recorded(query: Query, selection: Selection) -> dict[str, Any] | None:
    """Return the recorded test of the first place, if its data and choices are the present ones; else None."""

    def compute() -> tuple[dict[str, Any] | None]:
        try:
            board, _ = load_board(query, selection)
            with query.session() as session:
                row = find_recorded_verdict(session, selection, board)
        except SuffrageError:  # nothing can be ranked
            row = None
        return (None if row is None else finding_record(row),)

    return query.cache.get(("recorded_verdict", selection), compute)[0]


_EMPTY: dict[str, Any] = {"looks": "", "checks": [], "open_questions": []}


def _verdict_record(verdict: Verdict | RecordedVerdict) -> dict[str, Any]:
    return {
        "looks": verdict.looks,
        "checks": [
            {
                "topic": check.line.topic,
                "text": check.line.text,
                "answer": check.line.answer,
                "command": check.command,
            }
            for check in verdict.checks
        ],
        "open_questions": list(verdict.open_questions),
    }
