"""Pictures of the trade-off: each benchmark a numbered point, diversity against sensitivity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.tradeoff_panel import TradeoffPanel, format_correlation
from tracker.figures.canvas import FAINT, INK, OBSERVED, PAGE_WIDTH, SERIES, create_figure, shorten, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BENCHMARK, SIMULATED, FITTED = SERIES[0], OBSERVED, SERIES[2]
SENSITIVITY = {"tau": "largest share of pairs reversed (tau)", "mrc": "largest rank change, as a share (MRC)"}
DIVERSITY = {
    "diversity": "diversity: reversed Kendall's W",
    "diversity.tie_corrected": "diversity: reversed Kendall's W, corrected for ties",
    "diversity.complete_tasks": "diversity: reversed Kendall's W of complete tasks",
}
NAME_COLUMN, LEGEND_LINE, MAX_MARKS = 2.6, 0.17, 5
"""Inches of a column and of a line of the legend; lines and marks that it explains at most."""
RADII, N_ANGLES = (7.5, 12.0, 17.0, 23.0, 30.0), 16
"""Where a number may stand: points of distance from its mark, in so many directions."""
FONT = 7.5
"""Size of names and numbers, in points."""
N_LINE_POINTS = 120
"""Points of a line, near enough to each other that a number on the line covers some."""
LETTER_SIZE, MARK_SIZE = (3.6, 7.0), 5.0
"""Half a digit's and a line's extent, and that of a mark with some air, in points."""


def draw_tradeoff(panels: Sequence[TradeoffPanel], numbers: Mapping[str, int], diversity: str) -> Figure:
    """Systems side by side, tau above MRC.

    Args:
        panels: tau, then MRC of each system.
        numbers: of each name, from 1.
        diversity: name of the number on the horizontal axis.
    """
    n_systems = len(panels) // 2
    width = 5.6 if n_systems == 1 else PAGE_WIDTH
    n_columns = int(width / NAME_COLUMN)
    n_lines = -(-(len(numbers) + MAX_MARKS) // n_columns)
    figure = create_figure(width, 7.6 + LEGEND_LINE * n_lines, "Diversity of tasks against sensitivity of the ranking")
    grid = figure.subplots(2, n_systems, squeeze=False, sharex=True)
    for place, panel in enumerate(panels):
        axes = grid[place % 2, place // 2]
        _draw_panel(axes, panel)
        if place % 2:
            axes.set_xlabel(DIVERSITY[diversity], fontsize=9)
        axes.set_ylabel(f"{panel.system}: {SENSITIVITY[panel.change]}", fontsize=9)
    _draw_legend(figure, panels, numbers, n_columns)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for place, panel in enumerate(panels):
        _number_points(grid[place % 2, place // 2], panel, numbers)
    return figure


def _draw_panel(axes: Axes, panel: TradeoffPanel) -> None:
    x, lower, upper, end = panel.diversity, panel.sensitivity, panel.upper_bound, 1.04
    axes.vlines(x, lower, upper, color=FAINT, linewidth=1.2, zorder=2)
    for simulated, marker, colour in ((False, "o", BENCHMARK), (True, "s", SIMULATED)):
        for exact in (False, True):
            chosen = (panel.is_simulated == simulated) & (panel.is_exact == exact)
            axes.scatter(
                x[chosen],
                lower[chosen],
                s=26,
                marker=marker,
                facecolor=colour if exact else "white",
                edgecolor=colour,
                linewidth=1.3,
                zorder=3,
            )
    slope = panel.association.slope
    if np.isfinite(slope):
        along = np.linspace(0, end, N_LINE_POINTS)
        axes.plot(along, slope * along, color=FITTED, linewidth=1.6, zorder=1)
    if panel.constant is not None and panel.random is not None and panel.baseline_line(lower):
        (x0, x1), (y0, y1) = x[[panel.constant, panel.random]], lower[[panel.constant, panel.random]]
        axes.plot(
            np.linspace(x0, x1, N_LINE_POINTS),
            np.linspace(y0, y1, N_LINE_POINTS),
            color=INK,
            linewidth=1.1,
            linestyle=(0, (4, 3)),
            zorder=1,
        )
    association = panel.association
    title = "no correlation"
    if np.isfinite(association.pearson):
        title = f"r = {format_correlation(association.pearson)}"
    if np.isfinite(association.low):
        title += f" (95 %: {format_correlation(association.low)} to {format_correlation(association.high)})"
    change = panel.change.replace("mrc", "MRC")
    axes.set_title(f"{panel.system}, {change}: {title}, n = {association.n}", fontsize=9, color=INK)
    axes.set_xlim(-0.04, end)
    axes.set_ylim(-0.04, end)
    axes.set_axisbelow(True)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    style_axes(axes)


def _draw_legend(figure: Figure, panels: Sequence[TradeoffPanel], numbers: Mapping[str, int], n_columns: int) -> None:
    """The legend below the panels: what lines and marks mean, and whose point each number is."""
    from matplotlib.lines import Line2D

    def mark(shape: str, colour: str, filled: bool) -> Line2D:
        return Line2D([], [], marker=shape, color=colour, markerfacecolor=colour if filled else "white", linestyle="")

    simulated = {
        name for panel in panels for name, is_so in zip(panel.names, panel.is_simulated.tolist(), strict=True) if is_so
    }
    handles = [(mark("o", BENCHMARK, True), "benchmark")]
    if simulated:
        handles.append((mark("s", SIMULATED, True), "simulated"))
    if not all(panel.is_exact.all() for panel in panels):
        handles.append((mark("o", BENCHMARK, False), "lower end of an interval"))
    handles.append((Line2D([], [], color=FITTED), "least squares through the origin"))
    if any(panel.baseline_line(panel.sensitivity) for panel in panels):
        handles.append((Line2D([], [], color=INK, linestyle=(0, (4, 3))), "Constant to Random"))
    nothing = Line2D([], [], linestyle="")
    numbered = [
        (nothing, f"{number:>3}  {name}")
        for number, name in zip(numbers.values(), shorten(list(numbers), 32), strict=True)
    ]
    marks, texts = zip(*handles, *numbered, strict=True)
    legend = figure.legend(
        marks, texts, loc="outside lower center", ncols=n_columns, frameon=False, fontsize=FONT, handlelength=1.6
    )
    for text, name in zip(legend.get_texts()[len(handles) :], numbers, strict=True):
        text.set_color(SIMULATED if name in simulated else BENCHMARK)
        text.set_x(-2.2 * FONT)


def _number_points(axes: Axes, panel: TradeoffPanel, numbers: Mapping[str, int]) -> None:
    """Write each point's number where it hides no mark, no bar and no other number, as near as can be."""
    scale = 72 / axes.figure.dpi
    marks = axes.transData.transform(np.column_stack([panel.diversity, panel.sensitivity])) * scale
    tops = axes.transData.transform(np.column_stack([panel.diversity, panel.upper_bound])) * scale
    lines = (
        np.vstack([axes.transData.transform(line.get_xydata()) for line in axes.lines] or [np.empty((0, 2))]) * scale
    )
    frame = np.array(axes.get_window_extent().extents) * scale
    occupied: list[NDArray[np.float64]] = []
    turn = np.linspace(0, 2 * np.pi, N_ANGLES, endpoint=False) + np.pi / 4
    around = np.array([(r * np.cos(a), r * np.sin(a)) for r in RADII for a in turn])
    for i in np.argsort(-panel.diversity, kind="stable"):
        text = str(numbers[panel.names[i]])
        half = np.array([LETTER_SIZE[0] * len(text), LETTER_SIZE[1] / 2 + 1])
        centres = marks[i] + around * (1 + 0.25 * (len(text) - 1))
        cost = np.hypot(*around.T) * 0.02
        for mark, top in zip(marks, tops, strict=True):
            off_x = np.abs(centres[:, 0] - mark[0])
            off_y = np.maximum(np.maximum(mark[1] - centres[:, 1], centres[:, 1] - top[1]), 0)
            cost += 4.0 * ((off_x < half[0] + MARK_SIZE / 2) & (off_y < half[1] + MARK_SIZE / 2))
        for point in lines:
            cost += 0.3 * (np.abs(centres - point) < half + 0.5).all(axis=1)
        for box in occupied:
            gap = np.abs(centres - box[:2]) - half - box[2:]
            cost += 10.0 * (gap < 0).all(axis=1)
        outside = (centres - half < frame[:2]).any(axis=1) | (centres + half > frame[2:]).any(axis=1)
        cost += 20.0 * outside
        best = int(np.argmin(cost))
        occupied.append(np.concatenate([centres[best], half]))
        far = float(np.hypot(*(centres[best] - marks[i]))) > RADII[1] * (1 + 0.25 * (len(text) - 1))
        colour = SIMULATED if panel.is_simulated[i] else BENCHMARK
        axes.annotate(
            text,
            (panel.diversity[i], panel.sensitivity[i]),
            xytext=tuple(centres[best] - marks[i]),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=FONT,
            color=colour,
            zorder=4,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
            if far
            else None,
        )
