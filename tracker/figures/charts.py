"""Charts of results: points with intervals, lines, heat maps, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracker.figures.canvas import (
    DPI,
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    SEQUENTIAL,
    SERIES,
    create_figure,
    label_cells,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 120
"""Rows of a chart, the first ones."""


def draw_intervals(
    labels: Sequence[str],
    values: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    xlabel: str,
    legend: tuple[str, str],
    title: str = "",
) -> Figure:
    """Draw a row for each label: a point, and a line for its interval.

    Args:
        labels: ``(n,)`` texts beside the rows, the first one on top.
        values: ``(n,)`` positions of the points; NaN for none.
        low, high: ``(n,)`` ends of the intervals; NaN for none.
        xlabel: quantity and unit.
        legend: what the points and what the lines are.
        title: the verdict.
    """
    n = min(len(labels), MAX_ROWS)
    figure = create_figure(7.5, 1.6 + max(0.17 if n > 40 else 0.24, 0.5 - 0.02 * n) * n, title)
    axes = figure.subplots()
    rows = np.arange(n)
    if not np.isnan(low[:n]).all():
        axes.hlines(rows, low[:n], high[:n], color=DRAWN, linewidth=4 if n <= 40 else 2.5, label=legend[1])
    axes.plot(values[:n], rows, "o", markersize=5 if n <= 40 else 3, color=OBSERVED, label=legend[0])
    axes.set_yticks(rows, shorten(labels[:n]))
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.5)
    axes.set_xlabel(xlabel + (f" (first {n} of {len(labels):,})" if n < len(labels) else ""), fontsize=9)
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=label_font_size(n), length=0)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def draw_bars(labels: Sequence[str], lengths: Sequence[float], *, xlabel: str, title: str = "") -> Figure:
    """Draw a row for each label: a bar from 0, and its length as a number.

    Args:
        labels: texts beside the rows, the first one on top.
        lengths: ``(n,)`` lengths of the bars; NaN for none.
        xlabel: quantity and unit.
        title: the verdict.
    """
    n = min(len(labels), MAX_ROWS)
    figure = create_figure(7.5, 1.2 + (0.17 if n > 40 else 0.24) * max(n, 2), title)
    axes = figure.subplots()
    rows, values = np.arange(n), np.asarray(lengths[:n], dtype=np.float64)
    axes.barh(rows, np.nan_to_num(values), color=DRAWN)
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        text = "–" if np.isnan(value) else f"{value:,.6g}"
        axes.annotate(
            text, (max(np.nan_to_num(value), 0), row), xytext=(3, 0), textcoords="offset points", va="center",
            fontsize=label_font_size(n), color=INK,
        )  # fmt: skip
    axes.set_yticks(rows, shorten(labels[:n]))
    axes.set_ylim(max(n, 1) - 0.4, -0.6)
    axes.margins(x=0.12)
    axes.set_xlabel(xlabel + (f" (first {n} of {len(labels):,})" if n < len(labels) else ""), fontsize=9)
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=label_font_size(n), length=0)
    return figure


def draw_lines(
    x: Sequence[str],
    lines: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
    level: tuple[float, str],
    title: str = "",
) -> Figure:
    """Draw lines over a few categories, and a horizontal line for a level.

    Args:
        x: labels of the categories.
        lines: values by name of the line; infinite ones are left out.
        xlabel, ylabel: quantities and units.
        level: position and name of the horizontal line.
        title: the verdict.
    """
    figure = create_figure(7.5, 4.2, title)
    axes = figure.subplots()
    places = np.arange(len(x))
    for color, (name, values) in zip(SERIES, lines.items(), strict=False):
        y = np.array(values, dtype=np.float64)
        axes.plot(places, np.where(np.isfinite(y), y, np.nan), "o-", color=color, label=name)
    axes.axhline(level[0], color=INK, linewidth=0.9, linestyle=(0, (4, 2)), label=level[1])
    axes.set_xticks(places, list(x))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.5)
    style_axes(axes)
    axes.legend(frameon=False, fontsize=8)
    return figure


def draw_matrix(
    matrix: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str], *, unit: str, title: str = ""
) -> Figure:
    """Draw a matrix as a heat map; dense sides have labels at every second or third row, sides over `MAX_ROWS` none.

    Args:
        matrix: ``(n_rows, n_columns)`` values; NaN is left blank.
        rows, columns: names of the rows and columns.
        unit: what the colours mean.
        title: size and contents.
    """
    width, height = min(4.5, max(1.5, 0.22 * len(columns))), min(6.5, max(1.0, 0.22 * len(rows)))
    figure = create_figure(width + 3.5, height + 2.5, title)
    axes = figure.subplots()
    image = axes.imshow(matrix, cmap=SEQUENTIAL, aspect="auto", interpolation="nearest")
    for axis, names, inches in ((axes.yaxis, rows, height), (axes.xaxis, columns, width)):
        if len(names) <= MAX_ROWS:
            label_cells(axis, names, inches)
        else:
            axis.set_ticks([])
    figure.colorbar(image, ax=axes, label=unit)
    return figure


def draw_picture(png: bytes) -> Figure:
    """Return a figure that holds a PNG file, in its size."""
    from io import BytesIO

    from matplotlib.image import imread

    pixels = imread(BytesIO(png))
    figure = create_figure(pixels.shape[1] / DPI, pixels.shape[0] / DPI, "")
    figure.figimage(pixels)
    return figure
