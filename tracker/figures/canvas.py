"""Colours, figures and axes that all figures share; no global state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBSERVED, DRAWN, INK, FAINT = "#D55E00", "#56B4E9", "#222222", "#888888"
"""Vermilion and sky blue of Okabe & Ito's palette for all kinds of colour vision; two greys for text."""

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe & Ito's palette for a few distinct lines; more than these differ by position and label."""

DPI = 150
"""Dots per inch."""

LAYOUT: Literal["constrained"] | None = "constrained"
"""Layout engine of matplotlib: this one keeps labels from overlapping."""

DIVERGING, SEQUENTIAL = "RdBu_r", "viridis"
"""Colour maps: diverging around a middle, and from low to high."""


def create_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, laid out without overlaps."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=DPI, layout=LAYOUT)


def style_axes(axes: Axes) -> None:
    """Remove the top and right spines, and set colours and font sizes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8, color=FAINT)


def add_legend_above(figure: Figure, axes: Axes, fontsize: float = 9) -> None:
    """Add a legend of one of the figure's axes above all of them; the last artist comes first."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2, frameon=False, fontsize=fontsize)


def shorten(names: Sequence[str], longest: int = 34) -> list[str]:
    """Shorten names to fit beside a figure; long ones keep their beginning and end."""
    head = (longest - 1) // 2
    return [name if len(name) <= longest else f"{name[:head]}…{name[-(longest - 1 - head) :]}" for name in names]


def label_font_size(n: int) -> float:
    """Return the font size, in points, at which ``n`` names fit one under the other."""
    sizes: Any = ((20, 8.0), (40, 6.5), (70, 5.0))
    return float(next((size for most, size in sizes if n <= most), 4.0))
