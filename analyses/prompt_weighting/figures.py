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

MAX_ROWS = 100
"""Models of a figure, the best under equal weights."""
MIN_SCALE = 3.0
"""Places at which colours end where no model moves as far: a change by one place must not look large."""


def draw_rank_changes(changes: NDArray[np.float64], schemes: Sequence[str], models: Sequence[str]) -> Figure:
    """Draw a cell for each model and scheme: the rank under equal weights minus the rank under the scheme.

    Args:
        changes: ``(n_schemes, n_models)``.
        schemes: name of each column.
        models: name of each row, the best under equal weights first; `MAX_ROWS` of them are drawn.
    """
    from matplotlib.colors import SymLogNorm

    cells = changes.T[:MAX_ROWS]
    n_models, n_schemes = cells.shape
    figure = create_figure(
        3.4 + 1.0 * n_schemes,
        1.3 + max(1.2, (0.24 if n_models <= 40 else 0.16) * n_models),
        "Places that each model gains or loses if prompts are weighted",
    )
    axes = figure.subplots()
    most = max(MIN_SCALE, float(np.abs(changes).max()))
    drawn = axes.imshow(
        cells, cmap=DIVERGING, norm=SymLogNorm(1.0, linscale=0.4, vmin=-most, vmax=most, base=10), aspect="auto"
    )
    for i, j in np.ndindex(n_models, n_schemes):
        value = cells[i, j]
        red, green, blue, _ = drawn.cmap(drawn.norm(value))
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        color = "white" if is_dark else (INK if value else FAINT)
        axes.text(j, i, _signed(value), ha="center", va="center", fontsize=label_font_size(n_models), color=color)
    axes.set_yticks(np.arange(n_models), shorten(models[:n_models]), fontsize=label_font_size(n_models))
    axes.set_xticks(np.arange(n_schemes), schemes, fontsize=8)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(np.arange(n_schemes + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(n_models + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0, colors=INK)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("prompts weighted by", fontsize=9)
    axes.set_ylabel(_label_rows(n_models, len(models)), fontsize=9)
    bar = figure.colorbar(drawn, ax=axes, fraction=0.03, pad=0.02, ticks=_ticks(most), format=lambda v, _: _signed(v))
    bar.minorticks_off()
    bar.set_label("places gained (+), lost (−)", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def draw_shifts(values: NDArray[np.float64], schemes: Sequence[str], models: Sequence[str], unit: str) -> Figure:
    """Draw the change of each model's mean under each scheme: a panel with a separate scale for each scheme.

    Args:
        values: ``(n_schemes, n_models)`` weighted mean minus plain mean.
        schemes: name of each panel.
        models: name of each line, the best under equal weights first; `MAX_ROWS` of them are drawn.
        unit: what the scores are called.
    """
    n_schemes, n_models = len(values), min(len(models), MAX_ROWS)
    figure = create_figure(
        2.2 + 1.45 * n_schemes, 1.3 + max(1.5, 0.18 * n_models), "Change of each model's mean if prompts are weighted"
    )
    panels = figure.subplots(1, n_schemes, sharey=True, squeeze=False)[0]
    place = np.arange(n_models)
    for number, (axes, row, name) in enumerate(zip(panels, values[:, :n_models], schemes, strict=True)):
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
    panels[0].set_yticks(place, shorten(models[:n_models]), fontsize=label_font_size(n_models))
    panels[0].set_ylim(n_models - 0.4, -0.6)
    panels[0].set_ylabel(_label_rows(n_models, len(models)), fontsize=9)
    figure.supxlabel(f"weighted mean minus plain mean ({unit or 'score'}); scales differ", fontsize=9)
    return figure


def _label_rows(n_rows: int, n_models: int) -> str:
    return "models, by equal weights" + (f" (first {n_rows} of {n_models:,})" if n_rows < n_models else "")


def _signed(value: Any) -> str:
    return "0" if value == 0 else f"{value:+g}".replace("-", "−")


def _ticks(most: float) -> list[float]:
    steps = [step for step in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0) if step <= most]
    return sorted([0.0, *steps, *(-step for step in steps)])
