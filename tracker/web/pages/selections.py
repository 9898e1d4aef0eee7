"""The selection of a page, from its query parameters, and what is loaded for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tracker.queries.notices import list_notices
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.ranking.leaderboard_result import Leaderboard
from tracker.queries.selection import POLICIES, TASK_EFFECTS, Selection
from tracker.queries.task_matrix import TaskMatrix, load_task_matrix
from tracker.report.number_format import format_share
from tracker.web.query import Query

SELECTION_OPTIONS = ("metric", "split", "task_effects", "missing", "min_coverage")
"""Query parameters that select data; they are on every page of a benchmark."""
POLICY_MEANINGS = {
    "bounds": "any value that the metric allows; intervals and ranks hold for all of them",
    "common": "left out: only prompts with a score of every ranked model count",
    "worst": "the worst score that the metric allows",
    "impute": "estimated from the other scores",
    "fail": "not allowed",
}
"""What each policy takes a missing score for."""
EFFECT_MEANINGS = {
    "random": "other tasks like these",
    "fixed": "these tasks",
    "none": "prompts, whatever their task",
}
"""What means and intervals are about under each kind of task effects."""


def make_selection(query: Query, label: str) -> Selection:
    """Return the selection of a page.

    Raises:
        SelectionError: a parameter has an invalid value.
    """
    split = tuple(part.strip() for part in query.text("split").split(",") if part.strip())
    options: dict[str, Any] = {"metric": query.text("metric") or None, "split": split}
    if effects := query.choice("task_effects", ("", *TASK_EFFECTS), ""):
        options["task_effects"] = effects
    if missing := query.choice("missing", ("", *POLICIES), ""):
        options["missing"] = missing
    coverage = query.number("min_coverage", None, low=0, high=1, kind=float)
    if coverage is not None:
        options["min_coverage"] = coverage
    return Selection(benchmark=label, **options)


def load_board(query: Query, selection: Selection) -> tuple[Leaderboard, tuple[str, ...]]:
    """Return the leaderboard of a selection without its scores, with the choices that were made for the reader.

    Raises:
        SuffrageError: as for `load_leaderboard`.
    """

    def compute() -> tuple[Leaderboard, tuple[str, ...]]:
        with query.session() as session:
            board = load_leaderboard(session, selection, n_resamples=0)
            return replace(board, scores=None), tuple(list_notices(session))  # nearly all of its size

    return query.cache.get(("leaderboard", selection), compute)


def load_tasks(query: Query, selection: Selection) -> TaskMatrix:
    """Return the means of tasks by model.

    Raises:
        SuffrageError: as for `load_task_matrix`.
    """

    def compute() -> TaskMatrix:
        with query.session() as session:
            return load_task_matrix(session, selection)

    return query.cache.get(("task_matrix", selection), compute)


def describe_choices(board: Leaderboard, selection: Selection, options: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the present choices of a leaderboard, each with what it means and the parameter that made it.

    Args:
        board: the leaderboard.
        selection: its selection.
        options: query parameters of the page.

    Returns:
        ``parameter`` is '' for a choice that the reader did not make: there is nothing to remove.
    """
    n_incomplete = sum(row.coverage < 1 for row in board.rows)
    missing = POLICY_MEANINGS[board.missing] if n_incomplete else "there are none"
    coverage = f"models with fewer than {format_share(selection.least_coverage)} of the {board.unit}s are listed apart"
    values = {
        "metric": ("metric", board.metric, ""),
        "missing": ("missing scores", board.missing, missing),
        "task_effects": ("intervals are about", EFFECT_MEANINGS[board.task_effects], board.task_effects),
        "min_coverage": ("least coverage", format_share(selection.least_coverage), coverage),
        "split": ("split", options.get("split", ""), ""),
        "model": ("model", options.get("model", ""), "names that contain it"),
        "family": ("family", options.get("family", ""), ""),
    }
    return [
        {"name": name, "value": value, "meaning": meaning, "parameter": key if options.get(key) else ""}
        for key, (name, value, meaning) in values.items()
        if value
    ]
