"""Figures of prompt weighting: rank changes, and changes of means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.figures.canvas import (
    DIVERGING,
    FAINT,
    INK,
    SERIES,
    create_figure,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = 0.195
"""Inches for a model in the heat map."""
MIN_SCALE = 3.0
"""Places at which colours end where no model moves as far: a change by one place must not look large."""


def draw_rank_changes(changes: NDArray[np.float64], schemes: Sequence[str], models: Sequence[str]) -> Figure:
    """Draw a cell for each scheme and model: its rank under equal weights minus its rank under the scheme.

    Args:
        changes: ``(n_schemes, n_models)``.
        schemes: name of each row.
        models: name of each column, the best under equal weights first.
    """
    from matplotlib.colors import SymLogNorm

    n_schemes, n_models = changes.shape
    names = shorten(models)
    longest = max(map(len, names))
    figure = create_figure(
        max(5.5, 2.6 + CELL * n_models),
        1.5 + 0.42 * n_schemes + 0.062 * longest,
        "Places that each model gains or loses if prompts are weighted",
    )
    axes = figure.subplots()
    most = max(MIN_SCALE, float(np.abs(changes).max()))
    drawn = axes.imshow(
        changes, cmap=DIVERGING, norm=SymLogNorm(1.0, linscale=0.4, vmin=-most, vmax=most, base=10), aspect="auto"
    )
    for i, j in np.ndindex(n_schemes, n_models):
        value = changes[i, j]
        red, green, blue, _ = drawn.cmap(drawn.norm(value))
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        color = "white" if is_dark else (INK if value else FAINT)
        axes.text(j, i, _signed(value), ha="center", va="center", fontsize=6, color=color)
    axes.set_xticks(np.arange(n_models), names, rotation=90, fontsize=label_font_size(min(n_models, 20)) - 1)
    axes.set_yticks(np.arange(n_schemes), schemes, fontsize=8)
    axes.set_xticks(np.arange(n_models + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(n_schemes + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0, colors=INK)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("models, the best under equal weights on the left", fontsize=9)
    axes.set_ylabel("prompts weighted by", fontsize=9)
    bar = figure.colorbar(drawn, ax=axes, fraction=0.03, pad=0.01, ticks=_ticks(most), format=lambda v, _: _signed(v))
    bar.minorticks_off()
    bar.set_label("places gained (+), lost (−)", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def draw_shifts(values: NDArray[np.float64], schemes: Sequence[str], models: Sequence[str], unit: str) -> Figure:
    """Draw the change of each model's mean under each scheme: a panel with a separate scale for each scheme.

    Args:
        values: ``(n_schemes, n_models)`` weighted mean minus plain mean.
        schemes: name of each panel.
        models: name of each line, the best under equal weights first.
        unit: what the scores are called.
    """
    n_schemes, n_models = values.shape
    figure = create_figure(
        2.2 + 1.45 * n_schemes, 1.3 + max(1.5, 0.18 * n_models), "Change of each model's mean if prompts are weighted"
    )
    panels = figure.subplots(1, n_schemes, sharey=True, squeeze=False)[0]
    place = np.arange(n_models)
    for number, (axes, row, name) in enumerate(zip(panels, values, schemes, strict=True)):
        color = SERIES[number % len(SERIES)]
        axes.axvline(0.0, color=FAINT, linewidth=0.8)
        axes.hlines(place, 0.0, row, color=color, linewidth=1.2)
        axes.plot(row, place, "o", markersize=3.5, color=color)
        axes.set_title(name.replace(" (", "\n("), fontsize=8.5, color=INK)
        axes.locator_params(axis="x", nbins=3)
        axes.grid(axis="y", color=FAINT, alpha=0.2, linewidth=0.5)
        style_axes(axes)
        low, high = min(0.0, float(row.min())), max(0.0, float(row.max()))
        margin = 0.06 * (high - low) or 1e-3
        axes.set_xlim(low - margin, high + margin)
    panels[0].set_yticks(place, shorten(models), fontsize=label_font_size(n_models))
    panels[0].set_ylim(n_models - 0.4, -0.6)
    figure.supxlabel(f"weighted mean minus plain mean ({unit or 'score'}); scales differ", fontsize=9)
    return figure


def _signed(value: Any) -> str:
    return "0" if value == 0 else f"{value:+g}".replace("-", "−")


def _ticks(most: float) -> list[float]:
    steps = [step for step in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0) if step <= most]
    return sorted([0.0, *steps, *(-step for step in steps)])
