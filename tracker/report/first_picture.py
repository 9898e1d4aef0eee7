"""The picture of the first page: the ranks that the data allow, or means with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracker.queries.ranking.leaderboard_result import Leaderboard, LeaderboardRow
from tracker.report.number_format import format_count, format_number, format_score

MAX_ROWS = 30
WIDTH, LEFT, RIGHT, ROW, BELOW = 480.0, 190.0, 12.0, 15.0, 20.0
"""Lengths in units of the drawing: its width, the column of names, the margin, a row, and the axis."""
MAX_LABEL = 28
N_TICKS = 8

Ends = tuple[float, float]


def draw_first_picture(board: Leaderboard) -> dict[str, Any] | None:
    """Return the rank intervals of the first models as places in a drawing; their means where there are no ranks.

    Returns:
        Title, legend, lengths, ticks of the axis and rows; None with fewer than two ranked models.
    """
    ranked = [row for row in board.rows if row.rank is not None]
    if len(ranked) < 2:
        return None
    first = ranked[:MAX_ROWS]
    if board.rank_intervals:
        ranks = {model: (interval.low, interval.high) for model, interval in board.rank_intervals.items()}
        fixed: Mapping[str, Ends] = board.ranks_on_these_tasks or ranks
        return _draw(first, fixed, board.ranks_on_other_tasks) | _describe_ranks(board, fixed, len(first), len(ranked))
    intervals = {row.model: (row.low, row.high) for row in first if row.low is not None and row.high is not None}
    return _draw_means(first, intervals) | {
        "title": f"Means of the first {format_count(len(first), 'model')} with their 95 % intervals",
        "legend": f"Dot: mean {board.metric}. Line: 95 % interval.",
    }


def _describe_ranks(board: Leaderboard, fixed: Mapping[str, Ends], n_first: int, n_ranked: int) -> dict[str, str]:
    def count_first(ranks: Mapping[str, Ends]) -> int:
        return sum(low == 1 for low, _ in ranks.values())

    title = f"{count_first(fixed)} of {format_count(n_ranked, 'model')} may be first"
    line = "the ranks that the data allow"
    if board.ranks_on_other_tasks:
        title += f" on these tasks, {count_first(board.ranks_on_other_tasks)} on other tasks like these"
        line += " on these tasks. Pale: on other tasks like these"
    rest = f" The first {n_first} of {n_ranked} models are shown." if n_first < n_ranked else ""
    return {"title": title, "legend": f"Dot: rank by the mean. Line: {line} (95 % confidence together).{rest}"}


def _draw(rows: Sequence[LeaderboardRow], fixed: Mapping[str, Ends], random: Mapping[str, Ends]) -> dict[str, Any]:
    highs = [int(ranks[row.model][1]) for ranks in (fixed, random) for row in rows if row.model in ranks]
    last = max(len(rows), *highs)

    def place(rank: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (rank - 1) / max(last - 1, 1), 1)

    step = max(1, math.ceil((last - 1) / N_TICKS))
    ticks = [{"x": place(rank), "label": str(rank)} for rank in range(1, last + 1, step)]
    drawn = []
    for row in rows:
        narrow, wide = fixed[row.model], random.get(row.model)
        description = f"rank {format_number(row.rank)}, {_describe_ends(narrow)}"
        if wide is not None:
            description += f"; on other tasks {_describe_ends(wide)}"
        drawn.append(_row(row, place, row.rank or 0.0, narrow, wide, description))
    return _frame(drawn, ticks)


def _draw_means(rows: Sequence[LeaderboardRow], intervals: Mapping[str, Ends]) -> dict[str, Any]:
    ends: list[float] = [
        value for row in rows for value in (row.mean, *intervals.get(row.model, ())) if math.isfinite(value)
    ]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / span, 1)

    ticks = [{"x": place(value), "label": format_score(value)} for value in (low, low + span / 2, low + span)]
    drawn = [
        _row(row, place, row.mean, intervals.get(row.model), None, format_score(row.mean))
        for row in rows
        if math.isfinite(row.mean)
    ]
    return _frame(drawn, ticks)


def _row(
    row: LeaderboardRow,
    place: Callable[[float], float],
    dot: float,
    narrow: Ends | None,
    wide: Ends | None,
    description: str,
) -> dict[str, Any]:
    label = row.model if len(row.model) <= MAX_LABEL else f"{row.model[: MAX_LABEL - 8]}…{row.model[-7:]}"
    return {
        "model": row.model,
        "label": label,
        "description": description,
        "dot": place(dot),
        "narrow": narrow and tuple(map(place, narrow)),
        "wide": wide and tuple(map(place, wide)),
    }


def _frame(rows: list[dict[str, Any]], ticks: list[dict[str, Any]]) -> dict[str, Any]:
    for at, row in enumerate(rows):
        row["y"] = ROW * (at + 0.6)
    bottom = ROW * len(rows) + 2
    lengths = {"width": int(WIDTH), "height": int(bottom + BELOW), "left": int(LEFT), "bottom": int(bottom)}
    return {"rows": rows, "ticks": ticks, **lengths}


def _describe_ends(ends: Ends) -> str:
    low, high = map(format_number, ends)
    return f"rank {low} alone" if low == high else f"ranks {low} to {high}"
