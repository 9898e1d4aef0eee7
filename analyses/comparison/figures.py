"""Pictures of two models compared: the difference in each task, and the prompts that flip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analyses.comparison.method import ModelComparison
from tracker.figures.canvas import (
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    add_explanation,
    create_figure,
    label_font_size,
    shorten,
    style_axes,
)
from tracker.statistics.ranking import scale_exponent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 100
"""Tasks that one picture shows."""
MAX_DRAWN = 1e300
"""Largest value that an axis holds."""


def draw_differences(finding: ModelComparison, metric: str) -> Figure:
    """The difference in each task with its interval, and over all prompts.

    Args:
        finding: the numbers.
        metric: what the scores are.
    """
    exponent = _axis_exponent(finding)
    comparison = finding.comparison.scaled(-exponent)
    tasks = [task.scaled(-exponent) for task in finding.tasks]
    order = sorted(tasks, key=lambda task: -task.difference)[:MAX_ROWS]
    n = len(order)
    figure = create_figure(7.5, 1.9 + (0.27 if n <= 40 else 0.17) * (n + 1), "Difference of the means in each task")
    axes = figure.subplots()
    axes.axvline(0.0, color=FAINT, linewidth=0.9)
    for row, task in enumerate(order):
        is_significant = task.holm <= 1 - comparison.level
        color = INK if is_significant else FAINT
        if not np.isnan(task.low):
            axes.hlines(row, task.low, task.high, color=color, linewidth=1.3)
        fill = color if is_significant else "white"
        axes.plot(task.difference, row, "o", markersize=4.5, color=color, markerfacecolor=fill)
    best = comparison.best
    low, high = np.ldexp(finding.interval, -exponent)
    if not np.isnan(low):
        axes.hlines(n + 0.3, low, high, color=OBSERVED, linewidth=2.4)
    axes.plot(best.mean, n + 0.3, "D", markersize=6, color=OBSERVED)
    by = f", {best.n_units:,} clusters" if comparison.clustered is not None else ""
    labels = [*(f"{task.task or '(no task)'} ({task.n:,})" for task in order), f"all prompts ({comparison.n:,}){by}"]
    axes.set_yticks([*range(n), n + 0.3], shorten(labels), fontsize=label_font_size(n + 1))
    axes.set_ylim(n + 0.9, -0.7)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=FAINT, alpha=0.2, linewidth=0.5)
    a, b = shorten(finding.models, 30)
    scale = f" over 2^{exponent}" if exponent else ""
    axes.set_xlabel(f"difference of {metric or 'the scores'}{scale}\n← {b} better   |   {a} better →", fontsize=9)
    of = f" (first {n} of {len(finding.tasks)})" if n < len(finding.tasks) else ""
    axes.set_ylabel(f"tasks{of} (prompts)", fontsize=9)
    add_explanation(
        axes,
        f"lines: {comparison.level:.0%} intervals, each for itself; filled: more than chance after Holm's correction",
    )
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=label_font_size(n + 1), length=0)
    return figure


def _axis_exponent(finding: ModelComparison) -> int:
    """Return the exponent of 2 by which values are divided if they are too large for an axis; else 0."""
    ends = [end for task in finding.tasks for end in (task.difference, task.low, task.high)]
    return scale_exponent(np.array(ends)) if np.nanmax(np.abs(ends), initial=0.0) > MAX_DRAWN else 0


def draw_flips(finding: ModelComparison) -> Figure:
    """How many prompts of each task only one of the two does better on.

    Args:
        finding: the numbers.
    """
    order = sorted(finding.tasks, key=lambda task: -task.difference)[:MAX_ROWS]
    n = len(order)
    figure = create_figure(7.5, 1.9 + (0.27 if n <= 40 else 0.17) * n, "Prompts on which only one is better, by task")
    axes = figure.subplots()
    rows = np.arange(n)
    a, b = shorten(finding.models, 40)
    to_a, to_b = np.array([task.n_a_better for task in order]), np.array([task.n_b_better for task in order])
    axes.barh(rows, to_a, color=OBSERVED, height=0.7, label=f"{a} better")
    axes.barh(rows, -to_b, color=DRAWN, height=0.7, label=f"{b} better")
    most = max(1, int(to_a.max(initial=0)), int(to_b.max(initial=0)))
    if n <= 40:
        for row in range(n):
            axes.text(to_a[row] + 0.01 * most, row, f"{to_a[row]:,}", va="center", fontsize=7, color=INK)
            axes.text(-to_b[row] - 0.01 * most, row, f"{to_b[row]:,}", va="center", ha="right", fontsize=7, color=INK)
    axes.axvline(0.0, color=INK, linewidth=0.9)
    axes.set_xlim(-1.15 * most, 1.15 * most)
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
    axes.set_yticks(
        rows, shorten([f"{task.task or '(no task)'} ({task.n:,})" for task in order]), fontsize=label_font_size(n)
    )
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_xlabel("prompts on which one of the two is better", fontsize=9)
    axes.set_ylabel("tasks (prompts)", fontsize=9)
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=label_font_size(n), length=0)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure
