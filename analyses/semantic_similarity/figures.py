"""Pictures of semantic similarity: the lines' slopes, their false discovery rates, and what the draws gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.numerics.semantic.semantic_null import Bars
from analyses.numerics.semantic.semantic_partners import Curve
from analyses.presentation.null_panel import draw_null_panel
from tracker.figures.canvas import DRAWN, FAINT, INK, OBSERVED, PAGE_WIDTH, add_legend_below, create_figure, style_axes
from tracker.statistics.resampling import ALPHA, PermutationTest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "slope.mean": "mean slope",
    "n_discoveries": f"discoveries\n(FDR ≤ {ALPHA})",
    "ks_slope": "KS distance,\nslopes",
    "ks_fdr": "KS distance,\nFDR values",
    "max_t": "largest |t|",
}
POINTS = 24
"""At most so many points on the curve; each holds at least `MIN_PAIRS` pairs."""
MIN_PAIRS = 1000


def draw_distributions(slopes: Bars, fdr: Bars, drawn: str) -> Figure:
    """Slopes and FDR values over the prompts, observed beside all draws together.

    Args:
        slopes, fdr: what to show.
        drawn: the null in a few words.
    """
    figure = create_figure(8.0, 3.4, "Whether similar prompts are solved by the same models: slopes of all prompts")
    left, right = figure.subplots(1, 2)
    for axes, bars, label in (
        (left, slopes, "slope of performance similarity on semantic similarity"),
        (right, fdr, "FDR value of the slope (Benjamini-Hochberg)"),
    ):
        axes.stairs(bars.drawn, bars.edges, fill=True, color=DRAWN, alpha=0.75, label=f"{drawn} (all draws)")
        axes.stairs(bars.observed, bars.edges, color=OBSERVED, linewidth=1.6, label="observed")
        axes.set_xlabel(label, fontsize=9)
        axes.set_xlim(bars.edges[0], bars.edges[-1])
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        style_axes(axes)
    left.set_ylabel("share of prompts", fontsize=9)
    _line(left, 0.0, "no relation")
    _line(right, ALPHA, f"{ALPHA}")
    add_legend_below(figure, left)
    return figure


def _line(axes: Axes, at: float, label: str) -> None:
    axes.axvline(at, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        label, (at, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -1), textcoords="offset points",
        fontsize=7.5, color=INK, va="top",
    )  # fmt: skip


def draw_null_distributions(comparisons: Mapping[str, PermutationTest], drawn: str) -> Figure:
    """Each statistic over the draws with the observed value as a line.

    Args:
        comparisons: by name, as in `TITLES`.
        drawn: the null in a few words.
    """
    figure = create_figure(
        max(5.0, min(PAGE_WIDTH, 2.5 * len(comparisons))),
        2.8,
        "Statistics of the slopes, observed and under the null",
    )
    panels: Any = figure.subplots(1, len(comparisons))
    for axes, (name, comparison) in zip(panels, comparisons.items(), strict=True):
        draw_null_panel(axes, comparison, drawn, two_sided=name == "slope.mean")
        axes.set_title(TITLES[name], fontsize=9, color=INK, pad=24)
        axes.set_xlabel("value of the statistic", fontsize=8)
        axes.locator_params(axis="x", nbins=3)
    panels[0].set_ylabel("draws", fontsize=9)
    add_legend_below(figure, panels[0])
    return figure


def draw_performance_by_meaning(curve: Curve, similarity: str) -> Figure:
    """Performance similarity of pairs by their semantic similarity, above where the pairs are.

    Args:
        curve: what to show.
        similarity: of performance, as written.
    """
    x, excess = _points(curve)
    figure = create_figure(6.0, 4.2, "Similarity of scores by the similarity of meaning")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    top.axhline(0.0, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    top.plot(x, excess, color=OBSERVED, marker="o", markersize=3.5, linewidth=1.4)
    top.set_ylabel(f"{similarity} of performance,\nabove each prompt's mean", fontsize=9)
    bottom.stairs(curve.share, curve.edges, fill=True, color=DRAWN, alpha=0.75)
    bottom.set_yscale("log")
    bottom.set_ylabel("share of pairs", fontsize=9)
    bottom.set_xlabel("semantic similarity of two prompts (cosine of their vectors)", fontsize=9)
    filled = np.flatnonzero(curve.share)
    bottom.set_xlim(curve.edges[filled[0]], curve.edges[filled[-1] + 1])
    for axes in (top, bottom):
        style_axes(axes)
    return figure


def _points(curve: Curve) -> tuple[list[float], list[float]]:
    """Centres and means of neighbouring bins put together until each holds enough pairs."""
    filled = np.flatnonzero(curve.share)
    width = max(1, -(-len(filled) // POINTS))
    middle = (curve.edges[:-1] + curve.edges[1:]) / 2
    least = min(MIN_PAIRS / curve.n_pairs, 1.0 / POINTS)
    x, y, share, total, at, n = [], [], 0.0, 0.0, 0.0, 0
    for i in range(filled[0], filled[-1] + 1):
        mass = float(curve.share[i])
        if mass:
            share, total, at = share + mass, total + mass * float(curve.excess[i]), at + mass * float(middle[i])
        n += 1
        if (share >= least and n >= width) or (i == filled[-1] and share > 0):
            x.append(at / share)
            y.append(total / share)
            share, total, at, n = 0.0, 0.0, 0.0, 0
    return x, y
