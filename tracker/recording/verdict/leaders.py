"""The models that a finding ranks first, and why they differ from those of the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.name_lists import join_names
from tracker.queries.findings.summary import MAX_EVIDENCE, MAX_HEADLINE_WORDS, Summary
from tracker.queries.selection import Selection
from tracker.queries.task_matrix import TaskMatrix

if TYPE_CHECKING:
    from tracker.recording.finding import Report

MAX_NAMES = 3
"""Number of names that a headline lists."""


def name_leaders(report: Report, inputs: Sequence[Any], selection: Selection, expected: Sequence[str]) -> Report:
    """Return a report with its leaders; its headline states if they differ from those of the leaderboard.

    Args:
        report: the report.
        inputs: what it was computed from.
        selection: of these inputs.
        expected: models that the leaderboard ranks first; empty if it ranks none.
    """
    leaders = find_report_leaders(report, inputs)
    if not leaders:
        return report
    report = replace(report, leaders=leaders)
    if not expected or report.compared or set(leaders) == set(expected):
        return report
    rule, first = _describe_rule(report, inputs, selection), join_names(expected, MAX_NAMES)
    return replace(report, summary=_add_to_headline(report.summary, join_names(leaders, MAX_NAMES), rule, first))


def _add_to_headline(summary: Summary, leaders: str, rule: str, expected: str) -> Summary:
    """Return a summary whose headline names both leaders, in few words if it is long.

    Args:
        summary: the summary.
        leaders: of the finding.
        rule: why they lead.
        expected: leaders of the leaderboard.
    """
    headline, sentence = summary.headline.rstrip("."), f"{leaders}: first {rule}; on the leaderboard: {expected}."
    for text in (f"{headline}. {sentence}", f"{headline} ({leaders} {rule}; leaderboard: {expected})."):
        if len(text.split()) <= MAX_HEADLINE_WORDS:
            return replace(summary, headline=text)
    return replace(summary, headline=sentence, evidence=(f"{headline}.", *summary.evidence)[:MAX_EVIDENCE])


def find_report_leaders(report: Report, inputs: Sequence[Any]) -> tuple[str, ...]:
    """Return the models with the best rank in the first ranking of a report, else those of its scores."""
    if report.leaders:
        return report.leaders
    for ranking in report.rankings.values():
        ranks = np.asarray(ranking.rank, dtype=np.float64)
        if np.isfinite(ranks).any():
            return tuple(name for name, rank in zip(ranking.models, ranks, strict=True) if rank == np.nanmin(ranks))
    return next((loaded.leaders for loaded in inputs if getattr(loaded, "leaders", ())), ())


def _describe_rule(report: Report, inputs: Sequence[Any], selection: Selection) -> str:
    """Return why the leaders may differ from those of the leaderboard."""
    if selection.missing is None and any(isinstance(item, TaskMatrix) and not item.is_complete for item in inputs):
        return "over the tasks that each model has"
    if report.ranked_by:
        return report.ranked_by
    if selection.weights is not None:
        return f"with weights {selection.weights}"
    if selection.filter is not None:
        return f"on the prompts that finding {selection.filter} keeps"
    if any(isinstance(loaded, TaskMatrix) for loaded in inputs):
        return "by mean over tasks, not prompts"
    if selection.missing == "bounds":
        return "with missing scores at their bounds"
    if selection.missing == "common":
        return "on the prompts that all models share"
    return f"with --missing {selection.missing}" if selection.missing in ("worst", "impute") else "by another rule"
