"""Figures of the step `similar`: the density of distances, and results of other settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.similar_prompts.density import Density
from tracker.figures.canvas import DRAWN, FAINT, INK, OBSERVED, SEQUENTIAL, SERIES, create_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

MIN_DENSITY_SHARE = 1e-6
"""Share of the largest density at which the logarithmic panel ends."""
MAX_POINTS = 2000
"""Largest number of points of a curve; of more, only some and the maxima are drawn."""
MAX_TICKS = 12
"""Number of bandwidths above which only some have a label."""
MAX_NUMBERS = 8
"""Number of maxima whose positions have a label, the first ones; all have a mark."""


def draw_density(curve: Density, threshold: float | None, chosen_by: str) -> Figure:
    """Draw the density of distances with its maxima and the threshold; below it again, on a logarithmic scale.

    Args:
        curve: what to show; a density of nothing gives axes that say so.
        threshold: drawn as a line, pairs left of it shaded; None is no line.
        chosen_by: how it was chosen, or why there is none, in a few words.
    """
    figure = create_figure(7.0, 4.6, "Distances between prompts, and the threshold of near-duplicates")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    if curve.density.size and curve.density.max() > 0:
        x, y = _curve(curve, threshold)
        largest = float(y.max())
        heights = np.interp(curve.maxima, curve.grid, curve.density)
        cut = 0.0 if threshold is None else threshold
        for axes in (top, bottom):
            for part, colour in ((x <= cut, OBSERVED), (x >= cut, DRAWN)):
                axes.fill_between(
                    x[part], y[part], MIN_DENSITY_SHARE * largest / 10, color=colour, alpha=0.45, linewidth=0
                )
            axes.plot(x, y, color=INK, linewidth=1.0)
            axes.plot(
                curve.maxima, heights, color=SERIES[0], marker="o", markersize=4, linestyle="none", clip_on=False,
                zorder=3,
            )  # fmt: skip
        top.set_ylim(0, 1.12 * largest)
        bottom.set_yscale("log")
        bottom.set_ylim(MIN_DENSITY_SHARE * largest, 3 * largest)
        visible = x[y >= MIN_DENSITY_SHARE * largest]
        bottom.set_xlim(0, max(visible[-1], 0.0 if threshold is None else 1.05 * threshold))
    else:
        top.text(0.5, 0.5, "no density", transform=top.transAxes, ha="center", va="center", color=FAINT)
        bottom.set_xlim(0, 1.0 if threshold is None else 2 * threshold)
        for axes in (top, bottom):
            axes.set_yticks([])
    for axes in (top, bottom):
        style_axes(axes)
        if threshold is not None:
            axes.axvline(threshold, color=OBSERVED, linewidth=1.3, linestyle=(0, (4, 3)))
    _title(top, curve, threshold, chosen_by)
    top.set_ylabel("density", fontsize=9)
    bottom.set_ylabel("density, log scale", fontsize=9)
    bottom.set_xlabel("cosine distance between a prompt and one of its nearest neighbours", fontsize=9)
    return figure


def _title(axes: Axes, curve: Density, threshold: float | None, chosen_by: str) -> None:
    """Write the threshold, its choice, the bandwidth and the maxima above a panel."""
    chosen = "no threshold" if threshold is None else f"threshold {threshold:.4g}"
    axes.set_title(f"{chosen}: {chosen_by}", fontsize=9, color=INK, loc="left", pad=18, wrap=True)
    n = len(curve.maxima)
    numbers = ", ".join(f"{position:.3g}" for position in curve.maxima[:MAX_NUMBERS])
    maxima = f"maxima at {numbers}" + (f" and {n - MAX_NUMBERS} more" if n > MAX_NUMBERS else "")
    axes.annotate(
        f"bandwidth {curve.bandwidth:.3g}; {maxima if n else 'no maximum'}", (0, 1), xycoords="axes fraction",
        xytext=(0, 5), textcoords="offset points", fontsize=7.5, color=FAINT,
    )  # fmt: skip


def _curve(curve: Density, threshold: float | None) -> tuple[Floats, Floats]:
    """Return the points of the density to draw: along the grid, closer at its maxima, and at the threshold."""
    some = curve.grid[:: max(1, curve.grid.size // MAX_POINTS)]
    tops = (curve.maxima[:, None] + np.linspace(-4, 4, 33) * curve.bandwidth).ravel()
    x = np.concatenate([some, tops, [] if threshold is None else [threshold], curve.grid[-1:]])
    x = np.unique(np.clip(x, 0.0, curve.grid[-1]))
    return x, np.interp(x, curve.grid, curve.density)


def draw_path(
    bandwidths: Floats,
    n_neighbours: NDArray[np.int64],
    thresholds: Floats,
    shares: Floats,
    chosen: tuple[int, int] | None,
) -> Figure:
    """Draw the threshold and the share of prompts removed by the bandwidth and the number of neighbours.

    Crosses below a panel stand for settings without a value.

    Args:
        bandwidths: ``(b,)`` factors of the standard deviation, above 0.
        n_neighbours: ``(k,)`` of each prompt, whose distances make the density.
        thresholds: ``(b, k)``; NaN where there is none.
        shares: ``(b, k)`` of all prompts, removed; NaN where there is no threshold, or the groups are too large.
        chosen: places of the setting that was used; None where none of them was.
    """
    n_lines = len(n_neighbours)
    has_strips = bool(np.isnan(thresholds).any() or np.isnan(shares).any())
    figure = create_figure(
        8.0, 3.6 + 0.09 * n_lines * has_strips, "Threshold and share of removed prompts by the settings of the density"
    )
    panels: Any = figure.subplots(2, 2, sharex=True, height_ratios=[14, 1 + 0.5 * n_lines * has_strips])
    order = np.argsort(bandwidths, kind="stable")
    x = np.asarray(bandwidths, dtype=np.float64)[order]
    for (axes, strip), table, label in (
        (panels[:, 0], thresholds, "threshold (cosine distance)"),
        (panels[:, 1], shares, "share of prompts removed"),
    ):
        for k, colour in enumerate(_colours(n_lines)):
            y = np.asarray(table, dtype=np.float64)[order, k]
            axes.plot(
                x, y, color=colour, marker="o", markersize=3.5, linewidth=1.3, label=f"{n_neighbours[k]:,}",
                clip_on=False,
            )  # fmt: skip
            missing = x[np.isnan(y)]
            strip.plot(missing, np.full(missing.size, -k), color=colour, marker="x", markersize=4, linestyle="none")
        if chosen is not None:
            has_value = not np.isnan(table[chosen])
            (axes if has_value else strip).plot(
                bandwidths[chosen[0]], table[chosen] if has_value else -chosen[1], color=INK, marker="o", markersize=10,
                markerfacecolor="none", markeredgewidth=1.2, linestyle="none", label="used", clip_on=False,
            )  # fmt: skip
        _axes(axes, strip, x, n_lines)
        axes.set_ylabel(label, fontsize=9)
    panels[0, 1].yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
    for strip, table, label in ((panels[1, 0], thresholds, "none"), (panels[1, 1], shares, "none or\nrejected")):
        if np.isnan(table).any():
            strip.set_ylabel(label, fontsize=7, rotation=0, ha="right", va="center")
    described = [axes.get_legend_handles_labels() for axes in panels[:, 0]]
    handles, labels = ([each for part in kind for each in part] for kind in zip(*described, strict=True))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(8, len(labels)), frameon=False, fontsize=8,
        title="nearest neighbours of each prompt", title_fontsize=8,
    )  # fmt: skip
    return figure


def _axes(axes: Axes, strip: Axes, x: Floats, n_lines: int) -> None:
    """Style a panel from 0 and its strip of crosses, along the same bandwidths."""
    if x[-1] > 8 * x[0]:
        axes.set_xscale("log")
        axes.minorticks_off()
    if x.size <= MAX_TICKS:
        axes.set_xticks(x, [f"{value:.3g}" for value in x])
    axes.set_ylim(0, max(1.05 * axes.dataLim.y1, 1e-3))
    style_axes(axes)
    axes.set_axisbelow(True)
    axes.grid(color="#dddddd", linewidth=0.6)
    strip.set_ylim(-n_lines + 0.3, 0.7)
    strip.set_yticks([])
    strip.set_xlabel("bandwidth, in standard deviations of the distances", fontsize=9)
    style_axes(strip)
    strip.spines["left"].set_visible(False)


def _colours(n: int) -> list[Any]:
    """Return a colour for each line, from a palette for few or a colour map for many."""
    if n <= len(SERIES):
        return list(SERIES[:n])
    from matplotlib import colormaps

    return list(colormaps[SEQUENTIAL](np.linspace(0, 0.95, n)))
