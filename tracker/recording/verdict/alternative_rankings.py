"""The first place under other treatments of the same scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.name_lists import join_names
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.ranking.leaderboard_result import Leaderboard
from tracker.queries.selection import Selection
from tracker.queries.weights import TASK_EQUAL
from tracker.recording.finding import VerdictLine

MAX_NAMES = 3


def compare_alternatives(
    session: Session, selection: Selection, board: Leaderboard
) -> Iterator[tuple[VerdictLine, str]]:
    """Yield a line for each treatment that applies, with the options of `suffrage leaderboard` that show it.

    Args:
        session: the store.
        selection: the selection of the leaderboard, with its metric.
        board: the leaderboard.

    Raises:
        SuffrageError: as for `load_leaderboard`.
    """
    if board.unit == "prompt" and board.n_tasks > 1 and selection.weights is None:
        yield _weigh_tasks_equally(session, selection, board), f"--weights {TASK_EQUAL}"


def _weigh_tasks_equally(session: Session, selection: Selection, board: Leaderboard) -> VerdictLine:
    topic = "equal weights of tasks"
    try:
        equal = load_leaderboard(session, replace(selection, weights=TASK_EQUAL), with_rank_intervals=False)
    except SelectionError as error:
        return VerdictLine(topic=topic, text=f"Equal weights of tasks cannot be applied: {error}", leader_changes=None)
    leaders = _leaders(equal)
    if leaders == _leaders(board):
        text = f"With equal weights of the {board.n_tasks} tasks the first place stays."
        return VerdictLine(topic=topic, text=text, leader_changes=False)
    verb = "is" if len(leaders) == 1 else "are"
    text = f"With equal weights of the {board.n_tasks} tasks {join_names(leaders, MAX_NAMES)} {verb} first."
    return VerdictLine(topic=topic, text=text, leader_changes=True)


def _leaders(board: Leaderboard) -> list[str]:
    best = min((row.rank for row in board.rows if row.rank is not None), default=None)
    return [row.model for row in board.rows if row.rank is not None and row.rank == best]
