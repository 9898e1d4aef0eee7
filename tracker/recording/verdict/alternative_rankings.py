"""The first place under other treatments of the same scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.name_lists import join_names
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.ranking.leaderboard_result import Leaderboard, LeaderboardRow
from tracker.queries.selection import Selection
from tracker.queries.weights import TASK_EQUAL
from tracker.recording.finding import VerdictLine, compare_leaders

MAX_NAMES = 3


def compare_alternatives(
    session: Session, selection: Selection, board: Leaderboard
) -> Iterator[tuple[VerdictLine, Mapping[str, Any]]]:
    """Yield a line for each treatment that applies, with the fields of the selection that show it on the leaderboard.

    Args:
        session: the store.
        selection: the selection of the leaderboard, with its metric.
        board: the leaderboard.

    Raises:
        SuffrageError: as for `load_leaderboard`.
    """
    if any(row.coverage < 1 for row in board.rows if row.rank is not None):
        yield _vary_missing_scores(board), {}
    if excluded := [row for row in board.rows if row.excluded]:
        coverage = math.floor(100 * min(row.coverage for row in excluded)) / 100
        changes: dict[str, Any] = {"min_coverage": coverage}
        yield _rank_excluded_models(session, replace(selection, **changes), board, excluded), changes
    if not board.leaders:
        return
    if board.ranks_on_other_tasks and selection.task_effects == "random":
        yield _compare_ranks("these tasks", board, board.ranks_on_these_tasks), {"task_effects": "fixed"}
    elif board.ranks_on_other_tasks:
        choices = {"task_effects": "random"} | ({"cluster": None} if selection.cluster else {})
        yield _compare_ranks("other tasks like these", board, board.ranks_on_other_tasks), choices
    if board.unit == "prompt" and board.n_tasks > 1 and selection.weights is None:
        yield _weigh_tasks_equally(session, selection, board), {"weights": TASK_EQUAL}


def _vary_missing_scores(board: Leaderboard) -> VerdictLine:
    topic, leaders = "missing scores", join_names(board.leaders, MAX_NAMES)
    if board.missing != "bounds":
        text = f"Missing scores are treated by the policy {board.missing}; their true values are not known."
        if any(row.rank is not None and row.coverage < 1 and row.worst_mean is None for row in board.rows):
            text += f" The metric {board.metric} has no bounds: declare them with `suffrage ingest --bounds LOW HIGH`."
        return VerdictLine(topic=topic, text=text, leader_changes="unknown")
    first = [row for row in board.rows if row.model in board.leaders]
    n_missing = sum(board.n_units - row.n for row in first)
    if rivals := _list_possible_rivals(board):
        text = f"{join_names(rivals, MAX_NAMES)} can have the best mean, depending on the missing scores."
        return VerdictLine(topic=topic, text=text, leader_changes="maybe")
    if len(first) > 1 and n_missing:
        text = f"{leaders} share the first place; which of them has the best mean depends on the missing scores."
        return VerdictLine(topic=topic, text=text, leader_changes="maybe")
    subject = f"{leaders} lacks {n_missing:,} of {board.n_units:,} {board.unit}s and" if n_missing else leaders
    verb = "have" if len(first) > 1 else "has"
    text = f"{subject} {verb} the best mean whatever the missing scores are."
    return VerdictLine(topic=topic, text=text, leader_changes="no")


def _list_possible_rivals(board: Leaderboard) -> list[str]:
    """Return the ranked models not in the first place that some values of the missing scores put there."""
    ranked = [row for row in board.rows if row.rank is not None]
    return [row.model for row in ranked if row.model not in board.leaders and _can_be_best(row, ranked, board)]


def _can_be_best(row: LeaderboardRow, ranked: Sequence[LeaderboardRow], board: Leaderboard) -> bool:
    """Return whether no other ranked model is ahead if its own missing scores are the best, and theirs the worst."""
    least = max((_merit(board, rival.worst_mean) for rival in ranked if rival is not row), default=-math.inf)
    return not _merit(board, row.best_mean) < least


def _rank_excluded_models(
    session: Session, selection: Selection, board: Leaderboard, excluded: Sequence[LeaderboardRow]
) -> VerdictLine:
    """State whether a model with too few scores can be first.

    Args:
        session: the store.
        selection: with a least coverage that these models reach.
        board: the leaderboard.
        excluded: rows of these models.
    """
    topic = "models listed apart"
    try:
        lenient = load_leaderboard(session, selection, n_resamples=0)
    except SelectionError as error:
        return VerdictLine(topic=topic, text=f"They cannot be ranked: {error}", leader_changes="unknown")
    change, names = compare_leaders(lenient.leaders, board.leaders), [row.model for row in excluded]
    if change != "no":
        text = f"If they are ranked, {join_names(lenient.leaders, MAX_NAMES)} {_lead_verb(lenient.leaders)} first."
        return VerdictLine(topic=topic, text=text, leader_changes=change)
    ranked = [row for row in board.rows if row.rank is not None]
    if possible := [row.model for row in excluded if _can_be_best(row, ranked, board)]:
        text = f"{join_names(possible, MAX_NAMES)} can be first: too many scores are missing."
        return VerdictLine(topic=topic, text=text, leader_changes="maybe")
    if rivals := [name for name in lenient.contenders or () if name in names]:
        text = f"{join_names(rivals, MAX_NAMES)} may be first too: the difference is not significant."
        return VerdictLine(topic=topic, text=text, leader_changes="maybe")
    text = f"{join_names(names, MAX_NAMES)} cannot be first, whatever the missing scores are."
    return VerdictLine(topic=topic, text=text, leader_changes="no")


def _compare_ranks(topic: str, board: Leaderboard, ranks: Mapping[str, tuple[int, int]]) -> VerdictLine:
    """State which models may be first under other task effects.

    Args:
        topic: of the line.
        board: the leaderboard.
        ranks: rank intervals under these task effects, by model.
    """
    possible = [model for model, (low, _) in ranks.items() if low == 1]
    is_certain_here = [model for model, (low, _) in board.ranks_on_these_tasks.items() if low == 1] == [*board.leaders]
    reason = ", because tasks differ" if ranks is board.ranks_on_other_tasks and is_certain_here else ""
    rivals = [row.model for row in board.rows if row.model in possible and row.model not in board.leaders]
    if rivals:
        text = f"{join_names(rivals, MAX_NAMES)} may be first too{reason}."
        return VerdictLine(topic=topic, text=text, leader_changes="maybe")
    return VerdictLine(topic=topic, text="No other model may be first (95% confidence).", leader_changes="no")


def _merit(board: Leaderboard, mean: float | None) -> float:
    """Return a mean such that larger is better; NaN, which no comparison prefers, without one."""
    return math.nan if mean is None else mean if board.higher_is_better else -mean


def _weigh_tasks_equally(session: Session, selection: Selection, board: Leaderboard) -> VerdictLine:
    topic = "equal weights of tasks"
    try:
        equal = load_leaderboard(session, replace(selection, weights=TASK_EQUAL), with_rank_intervals=False)
    except SelectionError as error:
        return VerdictLine(
            topic=topic, text=f"Equal weights of tasks cannot be applied: {error}", leader_changes="unknown"
        )
    leaders, change = equal.leaders, compare_leaders(equal.leaders, board.leaders)
    place = (
        "the first place stays" if change == "no" else f"{join_names(leaders, MAX_NAMES)} {_lead_verb(leaders)} first"
    )
    text = f"With equal weights of the {board.n_tasks} tasks {place}."
    if change == "no" and board.missing == "bounds" and (rivals := _list_possible_rivals(equal)):
        text += f" That is on measured scores: {join_names(rivals, MAX_NAMES)} can have the best mean."
        change = "maybe"
    return VerdictLine(topic=topic, text=text, leader_changes=change)


def _lead_verb(leaders: Sequence[str]) -> str:
    return "is" if len(leaders) == 1 else "are"
