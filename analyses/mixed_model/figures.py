"""Figures of a mixed model: effects of the models, and shares of the variance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from analyses.mixed_model.method import METRIC_NAMES, MixedModel
from analyses.numerics.mixed.effects import share_intervals
from tracker.figures.canvas import (
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    add_legend_below,
    create_figure,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 120
"""Models that one picture shows, the best first."""
LABELS = {"model_task": "model × task"}


def draw_effects(finding: MixedModel) -> Figure:
    """The effect of each model with its interval, on these tasks and on others like them."""
    on_these, elsewhere = finding.on_tasks, finding.other_tasks
    order = np.argsort(on_these.rank, kind="stable")[:MAX_ROWS]
    n = len(order)
    figure = create_figure(
        7.5,
        1.6 + max(0.17 if n > 40 else 0.24, 0.5 - 0.02 * n) * n,
        "Effect of each model, on these tasks and on other tasks like these",
    )
    axes = figure.subplots()
    rows = np.arange(n)
    axes.axvline(0, color=FAINT, linewidth=0.8)
    if elsewhere is not None:
        low, high = elsewhere.intervals(finding.level)
        label = f"other tasks like these ({finding.level:.0%})"
        axes.hlines(rows, low[order], high[order], color=DRAWN, linewidth=4 if n <= 40 else 2.5, label=label)
    low, high = on_these.intervals(finding.level)
    axes.hlines(rows, low[order], high[order], color=INK, linewidth=1.2, label=f"these tasks ({finding.level:.0%})")
    axes.plot(on_these.effect[order], rows, "o", markersize=5 if n <= 40 else 3, color=OBSERVED, label="effect")
    axes.set_yticks(rows, shorten([finding.models[column] for column in order]), fontsize=label_font_size(n))
    axes.set_ylim(n - 0.4, -0.6)
    unit = "logits" if finding.fit.response == "logistic" else "unit of the scores"
    axes.set_xlabel(f"effect beyond the average model ({unit})", fontsize=9)
    k = len(finding.models)
    axes.set_ylabel("models, by effect" + (f" (first {n} of {k:,})" if n < k else ""), fontsize=9)
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=label_font_size(n), length=0)
    add_legend_below(figure, axes, fontsize=8)
    return figure


def draw_variances(finding: MixedModel) -> Figure:
    """The share of the variance that each effect has, with its interval."""
    names = (*METRIC_NAMES, "residual")
    shares = finding.fit.shares
    low, high = share_intervals(finding.fit, float(ndtri((1 + finding.level) / 2)))
    rows_drawn = [row for row, name in enumerate(names) if name not in finding.inactive_reasons]
    figure = create_figure(6.0, 1.2 + 0.36 * len(rows_drawn), "Share of the variance of scores that each effect has")
    axes = figure.subplots()
    rows = np.arange(len(rows_drawn))
    axes.barh(rows, shares[rows_drawn], color=DRAWN, height=0.62)
    known = [place for place, row in enumerate(rows_drawn) if np.isfinite(low[row])]
    axes.hlines(known, low[rows_drawn][known], high[rows_drawn][known], color=INK, linewidth=1.2)
    axes.set_yticks(rows, [LABELS.get(names[row], names[row]) for row in rows_drawn])
    axes.set_ylim(len(rows_drawn) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"share of the variance, with {finding.level:.0%} intervals", fontsize=9)
    axes.set_ylabel("effect", fontsize=9)
    style_axes(axes)
    return figure
