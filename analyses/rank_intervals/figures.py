"""Figures of ranks with their intervals, and of the pairs that differ significantly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracker.figures.canvas import (
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    add_legend_below,
    create_figure,
    label_cells,
    label_font_size,
    shorten,
    style_axes,
)
from tracker.statistics.rank_intervals import RankIntervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 120
"""Models that one picture shows, the best first."""
BETTER, OPEN, WORSE = "#0072B2", "#eeeeee", "#E69F00"
"""Of a pair: the row is significantly better, neither is, the row is significantly worse."""


def draw_ranks(intervals: RankIntervals, models: Sequence[str]) -> Figure:
    """The rank of each model with both intervals.

    Args:
        intervals: as computed.
        models: names of columns.
    """
    order = np.argsort(intervals.rank, kind="stable")[:MAX_ROWS]
    n, k = len(order), len(models)
    figure = create_figure(
        7.5, 1.6 + max(0.17 if n > 40 else 0.24, 0.5 - 0.02 * n) * n, "Ranks that the data allow for each model"
    )
    axes = figure.subplots()
    rows = np.arange(n)
    axes.hlines(
        rows,
        intervals.rank_low[order],
        intervals.rank_high[order],
        color=DRAWN,
        linewidth=4 if n <= 40 else 2.5,
        label=f"all ranks at once ({intervals.level:.0%}, Holm)",
    )
    if not np.isnan(intervals.bootstrap_low).any():
        axes.hlines(
            rows,
            intervals.bootstrap_low[order],
            intervals.bootstrap_high[order],
            color=INK,
            linewidth=1.2,
            label=f"each rank for itself ({intervals.level:.0%} of resamples)",
        )
    axes.plot(intervals.rank[order], rows, "o", markersize=5 if n <= 40 else 3, color=OBSERVED, label="rank")
    axes.set_yticks(rows, shorten([models[column] for column in order]), fontsize=label_font_size(n))
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_xlim(0.5, k + 0.5)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.5)
    axes.set_xlabel("rank, 1 is best", fontsize=9)
    axes.set_ylabel("models, by mean" + (f" (first {n} of {k:,})" if n < k else ""), fontsize=9)
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=label_font_size(n), length=0)
    add_legend_below(figure, axes, fontsize=8)
    return figure


def draw_separable_pairs(intervals: RankIntervals, models: Sequence[str]) -> Figure:
    """Which models are significantly better than which others, the best first.

    Args:
        intervals: as computed.
        models: names of columns.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch, Rectangle

    order = np.argsort(intervals.rank, kind="stable")[:MAX_ROWS]
    n, k = len(order), len(models)
    better = intervals.better[np.ix_(order, order)]
    cells = np.ma.masked_array(better.astype(int) - better.T.astype(int), mask=np.eye(n, dtype=bool))
    side = min(4.8, max(2.4, 0.26 * n))
    figure = create_figure(side + 3.2, side + 3.0, "Pairs of models that differ significantly")
    axes = figure.subplots()
    axes.imshow(cells, cmap=ListedColormap([WORSE, OPEN, BETTER]), vmin=-1, vmax=1, interpolation="nearest")
    place = {int(column): row for row, column in enumerate(order)}
    for group in intervals.groups:
        if all(column in place for column in group):
            corner = place[group[0]] - 0.5
            axes.add_patch(
                Rectangle((corner, corner), len(group), len(group), fill=False, edgecolor=INK, linewidth=1.1)
            )
    style_axes(axes)
    for axis in (axes.yaxis, axes.xaxis):
        label_cells(axis, [models[column] for column in order], side)
    axes.set_ylabel("this model" + (f" (first {n} of {k:,})" if n < k else "") + " …", fontsize=9)
    axes.set_xlabel("… against this one", fontsize=9)
    legend = ((BETTER, "significantly better"), (OPEN, "no significant difference"), (WORSE, "significantly worse"))
    handles = [Patch(facecolor=color, edgecolor=FAINT, label=label) for color, label in legend]
    handles += [Rectangle((0, 0), 1, 1, fill=False, edgecolor=INK, label="framed: a group")] if intervals.groups else []
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure
