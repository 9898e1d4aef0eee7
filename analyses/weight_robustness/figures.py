"""Figures of random weights: which model is ahead of which, distributions of means, and places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.numerics.weighting.random_weights import RandomWeights
from tracker.figures.canvas import (
    DIVERGING,
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    SEQUENTIAL,
    add_explanation,
    create_figure,
    label_cells,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WRITTEN_CELLS = 16
"""Up to this many models, each cell shows its number."""
RARE = 0.001
"""Places rarer than this are left white."""
RIDGE = 0.85
"""Height of the highest density, in rows."""


def draw_beats(models: Sequence[str], under: RandomWeights) -> Figure:
    """Draw how often the row is ahead of the column, best model first.

    Args:
        models: in the order of the rows.
        under: results under random weights.
    """
    k = len(models)
    figure = create_figure(
        _side(k) + 3.4, _side(k) + 2.4, "How often each model is ahead of each other one, in random weightings"
    )
    axes = figure.subplots()
    masked = np.ma.masked_array(under.beats, mask=np.eye(k, dtype=bool))
    image = axes.imshow(masked, cmap=DIVERGING, vmin=0, vmax=1, interpolation="nearest")
    style_axes(axes)
    for axis in (axes.yaxis, axes.xaxis):
        label_cells(axis, models, _side(k))
    axes.set_xlabel("… than this model", fontsize=9)
    axes.set_ylabel("this model has the better\nweighted mean …", fontsize=9)
    if k <= WRITTEN_CELLS:
        for i, j in zip(*np.nonzero(~np.eye(k, dtype=bool)), strict=True):
            far = abs(under.beats[i, j] - 0.5) > 0.35
            text = "=" if under.is_identical[i, j] else _percent(under, i, j)
            axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if far else INK)
    _bar(figure, image, axes, "share of random weightings")
    return figure


def draw_places(models: Sequence[str], under: RandomWeights) -> Figure:
    """Draw how often each model takes each place, with the expected place.

    Args:
        models: in the order of the rows.
        under: results under random weights.
    """
    from matplotlib.colors import PowerNorm

    k = len(models)
    figure = create_figure(_side(k) + 3.4, _side(k) + 1.1, "Places of each model in random weightings of the prompts")
    axes = figure.subplots()
    masked = np.ma.masked_less(under.places, RARE)
    image = axes.imshow(masked, cmap=f"{SEQUENTIAL}_r", norm=PowerNorm(0.5, 0, 1), interpolation="nearest")
    axes.scatter(under.expected_rank - 1, np.arange(k), s=10 if k > WRITTEN_CELLS else 18, color=OBSERVED, zorder=3)
    style_axes(axes)
    label_cells(axes.yaxis, models, _side(k))
    step = -(-k // 12)
    axes.set_xticks(np.arange(0, k, step), [str(place + 1) for place in range(0, k, step)])
    axes.set_xlabel(f"place, in {under.n_draws:,} random weightings", fontsize=9)
    add_explanation(axes, f"dot: expected place; white: in less than {RARE:.1%} of the weightings")
    _bar(figure, image, axes, "share of random weightings")
    return figure


def draw_weighted_performance(
    models: Sequence[str], under: RandomWeights, metric: str, higher_is_better: bool
) -> Figure:
    """Draw the distribution of each model's weighted mean, best model first.

    Args:
        models: in the order of the rows.
        under: results under random weights.
        metric: name of the scores' metric.
        higher_is_better: shown at the axis.
    """
    k = len(models)
    figure = create_figure(
        7.5,
        1.3 + max(0.22 if k <= 40 else 0.15, 0.5 - 0.02 * k) * k,
        "Weighted mean of each model, in random weightings of the prompts",
    )
    axes = figure.subplots()
    thin = k > WRITTEN_CELLS
    rows = np.arange(k)
    for row in rows:
        highest = under.height[row].max()
        if highest > 0:
            curve = RIDGE * under.height[row] / highest
            axes.fill_between(under.at[row], row, row - curve, color=DRAWN, alpha=0.75, linewidth=0, zorder=1)
    axes.hlines(rows, under.range_low, under.range_high, color=FAINT, linewidth=0.7, zorder=2)
    axes.hlines(rows, under.low, under.high, color=INK, linewidth=1.4 if thin else 2.2, zorder=3)
    axes.scatter(under.mean, rows, s=7 if thin else 16, color=OBSERVED, zorder=4)
    axes.set_yticks(rows, shorten(models))
    axes.set_ylim(k - 0.4, -1.0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    better = "higher" if higher_is_better else "lower"
    axes.set_xlabel(f"weighted mean of {metric or 'the scores'} ({better} is better)", fontsize=9)
    add_explanation(
        axes, f"dot: mean; thick: 95 % interval; thin: quantiles 1/(B + 1) to B/(B + 1), B = {under.n_draws:,}"
    )
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=label_font_size(k), length=0)
    return figure


def _side(k: int) -> float:
    """Inches of a side of a square of ``k`` by ``k`` cells."""
    return min(4.6, max(2.2, 0.42 * k))


def _percent(under: RandomWeights, i: int, j: int) -> str:
    """Format a probability as percent; 0 and 100 only if one model is never worse than the other."""
    share = under.beats[i, j]
    if under.better[i, j] == 0 or under.better[j, i] == 0:
        return f"{share:.0%}"
    if share < 0.01:
        return "<1%"
    return ">99%" if share > 0.99 else f"{share:.0%}"


def _bar(figure: Figure, image: Any, axes: Axes, label: str) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02)
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
