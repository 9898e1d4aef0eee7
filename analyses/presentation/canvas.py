"""What all pictures share: colours, an empty figure, axes without ornaments; no global state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBSERVED, DRAWN, INK, FAINT = "#D55E00", "#56B4E9", "#222222", "#888888"
"""Vermilion and sky blue of Okabe & Ito's palette for all kinds of colour vision; two greys for text."""

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe & Ito's palette for a few lines that must be told apart; more than these differ by place and label."""

DIVERGING, SEQUENTIAL = "RdBu_r", "viridis"
"""Colour maps: around a middle, and from little to much."""


def create_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, laid out without overlaps."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def style_axes(axes: Axes) -> None:
    """Take away what carries no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8, color=FAINT)


def add_legend_above(figure: Figure, axes: Axes, fontsize: float = 9) -> None:
    """What is drawn in one of the figure's axes, named above all of them; what was drawn last comes first."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2, frameon=False, fontsize=fontsize)


def shorten(names: Sequence[str], longest: int = 34) -> list[str]:
    """Names that fit beside a picture: those too long keep their beginning and end."""
    head = (longest - 1) // 2
    return [name if len(name) <= longest else f"{name[:head]}…{name[-(longest - 1 - head) :]}" for name in names]


def label_font_size(n: int) -> float:
    """Font size at which ``n`` names fit one under the other, in points."""
    sizes: Any = ((20, 8.0), (40, 6.5), (70, 5.0))
    return float(next((size for most, size in sizes if n <= most), 4.0))
