"""Pictures of rankings by a few tasks: how near sets of each size come, and tasks one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from analyses.numerics.elections.subsets.task_subsets import SubsetDistances
from analyses.task_subsets.method import TaskSubsets
from tracker.figures.canvas import (
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    PAGE_WIDTH,
    SERIES,
    add_explanation,
    add_legend_below,
    create_figure,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, GREEN = SERIES[0], SERIES[2]
MAX_ROWS = 120
"""Tasks that one picture names."""
PANELS = {
    "tau_paper": "pairs of models changed (tau_paper)",
    "mrc": "largest change of rank (MRC)",
}


def build_figures(finding: TaskSubsets) -> Mapping[str, Callable[[], Figure]]:
    """A function for each figure that draws it."""
    return {"distance": lambda: draw_distances(finding), "greedy": lambda: draw_greedy_order(finding)}


def draw_distances(finding: TaskSubsets) -> Figure:
    """How far rankings by sets of each size are from the ranking by all tasks."""
    sizes, within = finding.sizes, finding.within
    figure = create_figure(PAGE_WIDTH, 4.4, "How far rankings by fewer tasks are from the ranking by all")
    for axes, (measure, label) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        _draw_quantiles(axes, sizes, measure)
        at = [subsets.sample.size for subsets in sizes]
        steps = getattr(finding.greedy.distances, measure)[: len(sizes)]
        axes.plot(at, steps, color=GREEN, linewidth=1.2, marker="s", markersize=4, label="greedy order")
        if measure == "tau_paper":
            if finding.holdout is not None:
                test = finding.holdout.test.mean(axis=0)
                name = "greedy, on held-out models"
                axes.plot(at, test, color=GREEN, linewidth=1.2, linestyle="--", marker="D", markersize=3, label=name)
            axes.set_ylim(0, max(axes.get_ylim()[1], 1.3 * within))
            axes.axhline(within, color=INK, linewidth=0.8, linestyle=":")
            axes.text(at[-1] + 0.35, within, f"{within:.0%}", fontsize=8, color=INK, va="bottom", ha="right")
        axes.set_ylabel(label, fontsize=9)
        style_axes(axes)
        if measure == "tau_paper":
            legend_axes = axes
    add_legend_below(figure, legend_axes, 8)
    return figure


def _draw_quantiles(axes: Axes, sizes: Sequence[SubsetDistances], measure: str) -> None:
    at = np.array([subsets.sample.size for subsets in sizes])
    levels = [np.quantile(getattr(subsets.distances, measure), [0, 0.25, 0.5, 0.75, 1]) for subsets in sizes]
    best, lower, median, upper, worst = np.array(levels).T
    axes.vlines(at, best, worst, color=FAINT, linewidth=0.8, label="from the best set to the worst")
    axes.bar(at, upper - lower, 0.36, lower, color=DRAWN, alpha=0.55, label="the middle half of all sets")
    axes.plot(at, median, color=BLUE, linewidth=1.4, marker="_", markersize=16, markeredgewidth=2, label="median set")
    axes.plot(at, best, color=OBSERVED, linewidth=1.4, marker="o", markersize=5, label="best set (a selection)")
    axes.set_ylim(0, max(float(worst.max()) * 1.05, 0.01))
    axes.set_xlim(at[0] - 0.4, at[-1] + 0.4)
    names = [
        f"{subsets.sample.size}" if subsets.sample.is_exhaustive else f"{subsets.sample.size}*" for subsets in sizes
    ]
    axes.set_xticks(at, names) if len(at) <= 20 else None
    is_sampled = any(not subsets.sample.is_exhaustive for subsets in sizes)
    axes.set_xlabel("tasks in the set" + " (*: a random sample of the sets)" * is_sampled, fontsize=9)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def draw_greedy_order(finding: TaskSubsets) -> Figure:
    """What each task adds, in the order in which they are added."""
    greedy, within, size = finding.greedy, finding.within, finding.greedy_size_within
    n_shown = min(len(greedy.order), MAX_ROWS)
    rows = np.arange(n_shown)
    figure = create_figure(
        7.5, 1.5 + max(0.13, 0.3 - 0.004 * n_shown) * n_shown, "Tasks in the order in which they help the ranking most"
    )
    axes = figure.subplots()
    axes.axhspan(-0.6, min(size, n_shown) - 0.5, color=DRAWN, alpha=0.18, linewidth=0)
    for measure, colour, marker, name in (
        ("mrc", BLUE, "D", PANELS["mrc"]),
        ("tau_paper", OBSERVED, "o", PANELS["tau_paper"]),
    ):
        values = getattr(greedy.distances, measure)[:n_shown]
        axes.plot(
            values, rows, color=colour, linewidth=1, marker=marker, markersize=4 if n_shown <= 40 else 2.5, label=name
        )
    axes.axvline(within, color=INK, linewidth=0.8, linestyle=":")
    names = shorten([finding.tasks[task] for task in greedy.order[:n_shown]], 60 if n_shown > 20 else 44)
    style_axes(axes)
    labels = [f"{'+ ' * (i > 0)}{name}" for i, name in enumerate(names)]
    axes.set_yticks(rows, labels, fontsize=label_font_size(n_shown))
    axes.set_ylim(n_shown - 0.4, -0.6)
    farthest = max(getattr(greedy.distances, measure)[:n_shown].max() for measure in PANELS)
    axes.set_xlim(0, max(1.05 * float(farthest), 1.3 * within))
    axes.tick_params(axis="y", labelsize=label_font_size(n_shown), length=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("distance from the ranking by all tasks", fontsize=9)
    axes.set_ylabel(
        "tasks, as they are added" + f" (first {n_shown:,} of {len(greedy.order):,})" * (n_shown < len(greedy.order)),
        fontsize=9,
    )
    add_explanation(
        axes, f"shaded: the first {size}, with which at most {within:.0%} of the pairs are changed (dotted)"
    )
    add_legend_below(figure, axes, 8)
    return figure
