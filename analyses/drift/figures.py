"""Pictures of how models' scores changed over their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.drift.method import Drift
from tracker.figures.canvas import FAINT, INK, SERIES, add_explanation, create_figure, shorten, style_axes
from tracker.queries.comparing.run_means import RunMean
from tracker.queries.ranking.history import RunHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

MAX_LINES = len(SERIES)
LABEL_ROOM = 0.045
"""Least distance of two numbers of runs, as a share of the range of the means."""


def draw_history(runs: RunHistory, finding: Drift, run_means: Sequence[RunMean]) -> Figure:
    """The mean of every run over time; steps that are more than chance are drawn bold.

    Args:
        runs: of all models.
        finding: the steps between them.
        run_means: of each run.
    """
    scores = runs.scores
    series = sorted(runs.columns_by_model.items(), key=lambda line: (-len(line[1]), line[0]))
    series = [line for line in series if len(line[1]) > 1] or series
    lines = series[:MAX_LINES]
    means = np.array([mean.mean for mean in run_means])
    dated = all(runs.runs[column].is_dated for _, columns in lines for column in columns)
    figure = create_figure(7.5, 4.2, "Mean of each run over time; bold steps are more than chance")
    axes = figure.subplots()
    room = LABEL_ROOM * float(np.nanmax(means) - np.nanmin(means))
    labelled: list[tuple[int, float]] = []
    drifted = {(step.before, step.after) for step in finding.drifted}
    for color, (model, columns) in zip(SERIES, lines, strict=False):
        x: Any = [runs.runs[column].when for column in columns] if dated else list(range(1, len(columns) + 1))
        for place in range(len(columns) - 1):
            bold = (columns[place], columns[place + 1]) in drifted
            axes.plot(
                x[place : place + 2],
                means[columns[place : place + 2]],
                color=color,
                linewidth=2.6 if bold else 0.9,
                linestyle="-" if bold else (0, (4, 2)),
            )
        axes.plot(x, means[columns], "o", color=color, markersize=5, label=shorten([model])[0])
        _label_runs(axes, runs, x, columns, means, room, labelled)
    low, high = np.nanmin(means), np.nanmax(means)
    axes.set_ylim(low - 0.15 * (high - low or 1), high + 0.2 * (high - low or 1))
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.5)
    has_unshared = any(step.n_only_before or step.n_only_after for step in finding.steps)
    over = " over the run's own prompts" if has_unshared else ""
    axes.set_ylabel(f"mean {scores.metric or 'score'}{over}", fontsize=9)
    if dated:
        axes.set_xlabel("when it was run", fontsize=9)
        figure.autofmt_xdate(rotation=20)
    else:
        axes.set_xlabel("runs in the order of import", fontsize=9)
        axes.set_xticks(range(1, max(len(columns) for _, columns in lines) + 1))
    of = f" (the {len(lines)} of {len(series)} models with most runs)" if len(lines) < len(series) else ""
    add_explanation(axes, f"numbers: runs; bold: more than chance on shared prompts after Holm's correction{of}")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    style_axes(axes)
    return figure


def _label_runs(
    axes: Axes,
    runs: RunHistory,
    x: list[Any],
    columns: Sequence[int],
    means: NDArray[np.float64],
    room: float,
    labelled: list[tuple[int, float]],
) -> None:
    """Write the number of each run above its mean, and add its place to those in use.

    Args:
        axes, runs: where, and of which runs.
        x: position of each run of a model.
        columns: the columns of these runs.
        means: of all columns.
        room: least distance of two numbers at one place.
        labelled: place and mean of each number so far; a number that would cover one of them is left out.
    """
    for place, column in enumerate(columns):
        if any(place == used and abs(means[column] - mean) < room for used, mean in labelled):
            continue
        labelled.append((place, float(means[column])))
        axes.annotate(
            f"{runs.runs[column].id}",
            (x[place], means[column]),
            textcoords="offset points",
            xytext=(0, 7),
            ha="center",
            fontsize=6.5,
            color=INK,
        )
