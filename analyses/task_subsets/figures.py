"""Pictures of rankings by a few tasks: how near sets of each size come, and tasks one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analyses.numerics.elections.subsets.task_subsets import GreedyOrder, HoldoutDistances, SubsetDistances
from analyses.presentation.canvas import (
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    SERIES,
    add_legend_above,
    create_figure,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, GREEN = SERIES[0], SERIES[2]
MOST_ROWS = 120
"""Tasks that one picture names."""
PANELS = {
    "tau_paper": "pairs of models changed (tau_paper)",
    "mrc": "largest change of rank (MRC)",
}


def distance(
    sizes: Sequence[SubsetDistances], greedy: GreedyOrder, held: HoldoutDistances | None, within: float
) -> Figure:
    """How far rankings by sets of each size are from the ranking by all tasks.

    Args:
        sizes: sets of 1, 2, … tasks.
        greedy: tasks one by one.
        held: the greedy choice on other models, or None.
        within: what is near enough.
    """
    figure = create_figure(9.5, 4.6)
    for axes, (measure, label) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        _curves(axes, sizes, measure)
        at = [size.sets.size for size in sizes]
        steps = getattr(greedy.distances, measure)[: len(sizes)]
        axes.plot(at, steps, color=GREEN, linewidth=1.2, marker="s", markersize=4, label="greedy order")
        if measure == "tau_paper":
            if held is not None:
                judged = held.judged.mean(axis=0)
                name = "greedy, judged on other models"
                axes.plot(at, judged, color=GREEN, linewidth=1.2, linestyle="--", marker="D", markersize=3, label=name)
            axes.set_ylim(0, max(axes.get_ylim()[1], 1.3 * within))
            axes.axhline(within, color=INK, linewidth=0.8, linestyle=":")
            axes.text(at[-1] + 0.35, within, f"{within:.0%}", fontsize=8, color=INK, va="bottom", ha="right")
        axes.set_ylabel(label, fontsize=9)
        style_axes(axes)
        if measure == "tau_paper":
            shown = axes
    add_legend_above(figure, shown, 8)
    return figure


def _curves(axes: Axes, sizes: Sequence[SubsetDistances], measure: str) -> None:
    at = np.array([size.sets.size for size in sizes])
    levels = [np.quantile(getattr(size.distances, measure), [0, 0.25, 0.5, 0.75, 1]) for size in sizes]
    best, lower, median, upper, worst = np.array(levels).T
    axes.vlines(at, best, worst, color=FAINT, linewidth=0.8, label="from the best set to the worst")
    axes.bar(at, upper - lower, 0.36, lower, color=DRAWN, alpha=0.55, label="the middle half of all sets")
    axes.plot(at, median, color=BLUE, linewidth=1.4, marker="_", markersize=16, markeredgewidth=2, label="median set")
    axes.plot(at, best, color=OBSERVED, linewidth=1.4, marker="o", markersize=5, label="best set (a selection)")
    axes.set_ylim(0, max(float(worst.max()) * 1.05, 0.01))
    axes.set_xlim(at[0] - 0.4, at[-1] + 0.4)
    names = [f"{size.sets.size}" if size.sets.is_exhaustive else f"{size.sets.size}*" for size in sizes]
    axes.set_xticks(at, names) if len(at) <= 20 else None
    sampled = any(not size.sets.is_exhaustive for size in sizes)
    axes.set_xlabel("tasks in the set" + " (*: a random sample of the sets)" * sampled, fontsize=9)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def greedy(found: GreedyOrder, tasks: Sequence[str], within: float, size: int) -> Figure:
    """What each task adds, in the order in which they are added.

    Args:
        found: the order.
        tasks: names.
        within: what is near enough.
        size: how many tasks are.
    """
    n = min(len(found.order), MOST_ROWS)
    rows = np.arange(n)
    figure = create_figure(7.5, 1.5 + max(0.13, 0.3 - 0.004 * n) * n)
    axes = figure.subplots()
    axes.axhspan(-0.6, min(size, n) - 0.5, color=DRAWN, alpha=0.18, linewidth=0)
    for measure, colour, marker, name in (
        ("mrc", BLUE, "D", PANELS["mrc"]),
        ("tau_paper", OBSERVED, "o", PANELS["tau_paper"]),
    ):
        values = getattr(found.distances, measure)[:n]
        axes.plot(values, rows, color=colour, linewidth=1, marker=marker, markersize=4 if n <= 40 else 2.5, label=name)
    axes.axvline(within, color=INK, linewidth=0.8, linestyle=":")
    names = shorten([tasks[task] for task in found.order[:n]], 60 if n > 20 else 44)
    style_axes(axes)
    labels = [f"{'+ ' * (i > 0)}{name}" for i, name in enumerate(names)]
    axes.set_yticks(rows, labels, fontsize=label_font_size(n))
    axes.set_ylim(n - 0.4, -0.6)
    farthest = max(getattr(found.distances, measure)[:n].max() for measure in PANELS)
    axes.set_xlim(0, max(1.05 * float(farthest), 1.3 * within))
    axes.tick_params(axis="y", labelsize=label_font_size(n), length=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("distance from the ranking by all tasks", fontsize=9)
    axes.set_ylabel(
        "tasks, as they are added" + f" (first {n:,} of {len(found.order):,})" * (n < len(found.order)), fontsize=9
    )
    axes.set_title(
        f"shaded: the first {size}, with which at most {within:.0%} of the pairs are changed (dotted)",
        fontsize=8,
        color=INK,
    )
    add_legend_above(figure, axes, 8)
    return figure
