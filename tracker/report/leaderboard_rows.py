"""Leaderboard rows and summary sentences of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

from tracker.name_lists import join_names
from tracker.queries.ranking.leaderboard import Leaderboard
from tracker.report.contents import RankSpans
from tracker.report.number_format import NOTHING, format_count, format_number, format_score, format_share

MAX_NAMES = 5
LEFT, RIGHT = 6.0, 144.0
"""Horizontal positions of the smallest and the largest value in a drawing of width 150."""


def compute_axis_limits(board: Leaderboard) -> tuple[float, float]:
    """Return the smallest and the largest value that the drawings must hold."""
    ends = [value for row in board.rows for value in (row.mean, row.low, row.high) if _is_finite(value)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def build_leaderboard_rows(board: Leaderboard, ranks: RankSpans) -> list[dict[str, Any]]:
    """Return the cells of each row, with the numbers by which columns are sorted."""
    low, high = compute_axis_limits(board)

    def place(value: float) -> str:
        return f"{LEFT + (RIGHT - LEFT) * (value - low) / (high - low):.1f}"

    return [
        {
            "model": row.model,
            "excluded": row.excluded,
            "rank": format_number(row.rank),
            "rank_value": _sortable(row.rank),
            "span": _format_rank_span(ranks, row.model),
            "span_value": _sortable(ranks.low.get(row.model)),
            "mean": format_score(row.mean),
            "mean_value": _sortable(row.mean),
            "interval": f"{format_score(row.low)} to {format_score(row.high)}" if _is_finite(row.low) else NOTHING,
            "low_value": _sortable(row.low),
            "line": (place(row.low), place(row.high)) if _is_finite(row.low) and _is_finite(row.high) else None,
            "dot": place(row.mean),
            "n": f"{row.n:,}",
            "n_value": row.n,
            "coverage": format_share(row.coverage),
            "coverage_value": _sortable(row.coverage),
        }
        for row in board.rows
    ]


def describe_intervals(board: Leaderboard) -> str:
    """Return what the intervals account for."""
    reasons = {row.unclustered for row in board.rows}
    if board.unit == "task":
        return "Intervals generalize to other tasks like these."
    if reasons != {""} and "" in reasons:
        return "Some intervals treat prompts as independent, because the model's prompts are in fewer than two groups."
    about = "are about these tasks, and about other prompts like these" if board.task_effects == "fixed" else ""
    if reasons == {""} and board.cluster != "task":
        about = about or f"generalize to other groups of {board.unit}s like these"
        return f"Intervals {about}. They account for dependence between prompts of one group."
    if reasons == {""}:
        return " ".join(
            filter(
                None,
                (
                    "Intervals generalize to other tasks like these. Prompts of one task resemble each other, so many "
                    "prompts in few tasks leave much uncertainty.",
                    board.describe_task_spread(),
                ),
            )
        )
    return f"Intervals {about}." if about else "Intervals treat prompts as independent."


def list_limits(board: Leaderboard) -> list[str]:
    """Return what limits the leaderboard, one sentence each: unverified runs, and models listed apart."""
    sentences = []
    if unverified := [row.model for row in board.rows if row.unverified]:
        sentences.append(f"The harness reports other scores than its rows give for {_join_names(unverified)}.")
    if excluded := [row for row in board.rows if row.excluded]:
        sentences.append(
            f"{format_count(len(excluded), 'model')} {'is' if len(excluded) == 1 else 'are'} listed apart, because too "
            f"many scores are missing: {_join_names([row.model for row in excluded])}.{_better_excluded(board)}"
        )
    return sentences


def _better_excluded(board: Leaderboard) -> str:
    """Return a sentence about models listed apart with better means than the first; '' without any."""
    ranked = [row.mean for row in board.rows if row.rank is not None]
    sign = 1 if board.higher_is_better else -1
    better = [row for row in board.rows if row.rank is None and ranked and sign * row.mean > sign * ranked[0]]
    if not better:
        return ""
    models = _join_names([f"{row.model} {format_score(row.mean)}" for row in better])
    return f" Over the {board.unit}s with a score, some have better means than the first: {models}."


def _format_rank_span(ranks: RankSpans, model: str) -> str:
    if model not in ranks.low:
        return NOTHING
    low, high = format_number(ranks.low[model]), format_number(ranks.high[model])
    return low if low == high else f"{low} to {high}"


def _join_names(names: Sequence[str]) -> str:
    return join_names(names, MAX_NAMES)


def _is_finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _sortable(value: float | None) -> str:
    return repr(float(value)) if _is_finite(value) else ""
