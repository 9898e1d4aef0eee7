"""Colours, figures and axes that all figures share; no global state."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

OBSERVED, DRAWN, INK, FAINT = "#D55E00", "#56B4E9", "#222222", "#888888"
"""Vermilion and sky blue of Okabe & Ito's palette for all kinds of colour vision; two greys for text."""

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe & Ito's palette for a few distinct lines; more than these differ by position and label."""

DPI = 150
"""Dots per inch."""

TITLE_LETTERS, TITLE_LINE = 11.5, 0.22
"""Letters of a title in an inch, and inches of a line of it."""

EXPLANATION_LETTERS = 66
"""Letters of a line of an explanation above axes."""

LAYOUT: Literal["constrained"] | None = "constrained"
"""Layout engine of matplotlib: this one keeps labels from overlapping."""

DIVERGING, SEQUENTIAL = "RdBu_r", "viridis"
"""Colour maps: diverging around a middle, and from low to high."""

PAGE_WIDTH = 8.0
"""Largest width of a figure, in inches."""

SMALLEST_TEXT = 6.5
"""Points: the smallest text of a figure, 5.3 points on a page that shows a figure of `PAGE_WIDTH` in 6.5 inches."""

LABEL_PITCH = 0.11
"""Inches from one label of `SMALLEST_TEXT` to the next."""


def create_figure(width: float, height: float, title: str) -> Figure:
    """Return an empty figure, laid out without overlaps.

    Args:
        width: in inches; a larger one than `PAGE_WIDTH` becomes `PAGE_WIDTH`.
        height: in inches, without the title.
        title: what the figure shows; also in the metadata of its file. '' for none.
    """
    from matplotlib.figure import Figure

    width = min(width, PAGE_WIDTH)
    lines = textwrap.wrap(title, max(24, int(TITLE_LETTERS * width)))
    figure = Figure(figsize=(width, height + TITLE_LINE * len(lines)), dpi=DPI, layout=LAYOUT)
    if lines:
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10.5, color=INK)
    return figure


def style_axes(axes: Axes) -> None:
    """Remove the top and right spines, and set colours and font sizes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8, color=FAINT)


def add_explanation(axes: Axes, text: str) -> None:
    """Add an explanation above the axes, in lines that fit beside long labels."""
    axes.set_title("\n".join(textwrap.wrap(text, EXPLANATION_LETTERS)), fontsize=8, color=INK)


def add_legend_below(figure: Figure, axes: Axes, fontsize: float = 9) -> None:
    """Add a legend of one of the figure's axes below all of them; the last artist comes first."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=2, frameon=False, fontsize=fontsize)


def shorten(names: Sequence[str], longest: int = 34) -> list[str]:
    """Shorten names to fit beside a figure; long ones keep their beginning and end."""
    head = (longest - 1) // 2
    return [name if len(name) <= longest else f"{name[:head]}…{name[-(longest - 1 - head) :]}" for name in names]


def label_font_size(n: int) -> float:
    """Return the font size of ``n`` names, one under the other, in points."""
    return 8.0 if n <= 20 else SMALLEST_TEXT


def label_cells(axis: Axis, names: Sequence[str], inches: float, longest: int = 34) -> None:
    """Label the rows or columns of a heat map: all of them, or every second or third if they are denser than text.

    Args:
        axis: the axis of the rows or columns.
        names: their names.
        inches: length of the axis.
        longest: letters of a name.
    """
    step = max(1, math.ceil(LABEL_PITCH * len(names) / inches))
    axis.set_ticks(range(0, len(names), step), shorten(names[::step], longest))
    has_room = inches / max(len(names), 1) >= 0.15
    axis.set_tick_params(labelsize=8.0 if has_room else SMALLEST_TEXT, length=0 if step == 1 else 3)
    if axis is axis.axes.xaxis:
        axis.set_tick_params(rotation=90)
