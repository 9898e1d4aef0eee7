"""Data of the page's charts, without code or markup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.report.contents import Contents
from tracker.report.number_format import format_number, format_score, format_share
from tracker.report.score_patterns import bin_by_difficulty, compute_agreement, compute_correlations

MAX_MODELS = 150
"""Maximum number of models in a chart; the table has them all."""

MAX_CELLS = 20_000
"""Maximum number of cells of a heat map."""

N_BINS = 40
DIGITS = 4

Chart = dict[str, Any]


def build_charts(contents: Contents) -> dict[str, Chart]:
    """Return the charts of a report by name; charts without data are left out."""
    rows = contents.board.rows[:MAX_MODELS]
    names = [row.model for row in rows]
    drawn: dict[str, Chart | None] = {
        "means": _means(contents),
        "ranks": _ranks(contents),
        "tasks": _tasks(contents, names),
        "difficulty": _difficulty(contents, names),
        "agreement": _agreement(contents, names),
    }
    return {name: chart for name, chart in drawn.items() if chart is not None}


def _means(contents: Contents) -> Chart:
    board = contents.board
    rows = board.rows[:MAX_MODELS]
    hover = [
        f"mean {format_score(row.mean)}"
        + (
            f", 95 % interval {format_score(row.low)} to {format_score(row.high)}"
            if _plain(row.low) is not None
            else ""
        )
        + f"; {row.n:,} {board.unit}s"
        + (f"; listed apart: {row.excluded}" if row.excluded else "")
        for row in rows
    ]
    return {
        "kind": "intervals",
        "labels": [row.model for row in rows],
        "value": [_plain(row.mean) for row in rows],
        "low": [_plain(row.low) for row in rows],
        "high": [_plain(row.high) for row in rows],
        "dim": [bool(row.excluded) for row in rows],
        "hover": hover,
        "axis": f"mean {board.metric}",
    }


def _ranks(contents: Contents) -> Chart | None:
    low, high = contents.ranks.low, contents.ranks.high
    rows = [row for row in contents.board.rows if row.model in low][:MAX_MODELS]
    if not rows:
        return None
    return {
        "kind": "intervals",
        "labels": [row.model for row in rows],
        "value": [_plain(row.rank) for row in rows],
        "low": [low[row.model] for row in rows],
        "high": [high[row.model] for row in rows],
        "dim": [row.rank is None for row in rows],
        "hover": [
            f"between rank {format_number(low[row.model])} and rank {format_number(high[row.model])}" for row in rows
        ],
        "axis": "rank (1 is best)",
        "whole": True,
    }


def _tasks(contents: Contents, names: Sequence[str]) -> Chart | None:
    if contents.tasks is None:
        return None
    matrix = contents.tasks
    tasks = matrix.tasks[: max(1, MAX_CELLS // max(1, len(names)))]
    means = _in_order(matrix.models, matrix.T.T, names)[:, : len(tasks)]
    counts = _in_order(matrix.models, matrix.n_prompts.T.astype(np.float64), names)[:, : len(tasks)]
    hover = [
        [
            f"{format_score(means[i, j])}" + (f" over {counts[i, j]:,.0f} prompts" if counts[i, j] > 0 else "")
            for j in range(len(tasks))
        ]
        for i in range(len(names))
    ]
    return _heatmap(names, tasks, means, hover, "mean") | {"tilted": True}


def _difficulty(contents: Contents, names: Sequence[str]) -> Chart | None:
    scores = contents.scores
    if scores is None or scores.n_prompts < 2:
        return None
    by_bin = bin_by_difficulty(scores.Q, N_BINS)
    means = _in_order(scores.models, by_bin.means, names)
    if not scores.higher_is_better:  # the hardest first, whichever end that is
        means, overall, edges = means[:, ::-1], by_bin.overall[::-1], (scores.n_prompts - by_bin.edges)[::-1]
    else:
        overall, edges = by_bin.overall, by_bin.edges
    bins = [
        f"prompts {first + 1:,} to {last:,} of {scores.n_prompts:,}, hardest first; all models {format_score(mean)}"
        for first, last, mean in zip(edges[:-1].tolist(), edges[1:].tolist(), overall.tolist(), strict=True)
    ]
    hover = [[f"{format_score(means[i, j])}; {bins[j]}" for j in range(len(bins))] for i in range(len(names))]
    ticks = {"0": "hardest", str(len(bins) - 1): "easiest"}
    return _heatmap(names, [str(j) for j in range(len(bins))], means, hover, "mean") | {"ticks": ticks}


def _agreement(contents: Contents, names: Sequence[str]) -> Chart | None:
    scores = contents.scores
    if scores is None or scores.n_models < 2 or scores.n_prompts < 2:
        return None
    names = names[: int(math.sqrt(MAX_CELLS))]
    Q = _in_order(scores.models, scores.Q.T, names).T
    agreement = compute_agreement(Q) if scores.is_binary else compute_correlations(Q)
    format_cell = format_share if scores.is_binary else format_score
    unit = "of prompts with equal scores" if scores.is_binary else "correlation"
    hover = [
        [f"{format_cell(value)} {unit}" if value == value else "not known" for value in row]
        for row in agreement.tolist()
    ]
    off = agreement.copy()
    np.fill_diagonal(off, np.nan)  # every model agrees with itself; that would use up the colour scale
    return _heatmap(names, names, off, hover, "share" if scores.is_binary else "correlation") | {"tilted": True}


def _heatmap(
    rows: Sequence[str], columns: Sequence[str], values: NDArray[np.float64], hover: list[list[str]], unit: str
) -> Chart:
    return {
        "kind": "heatmap",
        "rows": list(rows),
        "columns": list(columns),
        "values": [[_plain(value) for value in row] for row in values.tolist()],
        "hover": hover,
        "unit": unit,
    }


def _in_order(models: Sequence[str], values: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.float64]:
    """Return rows of models in the order of some names; NaN for a name without a row."""
    place = {model: row for row, model in enumerate(models)}
    ordered = np.full((len(names), values.shape[1]), np.nan)
    for row, name in enumerate(names):
        if name in place:
            ordered[row] = values[place[name]]
    return ordered


def _plain(value: float | None) -> float | None:
    """Round a finite number to at least four significant digits, in as few characters as possible."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS + 1}g}")
