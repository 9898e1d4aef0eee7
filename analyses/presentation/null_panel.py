"""The figure of one statistic of a permutation test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.figures.canvas import DRAWN, INK, OBSERVED, style_axes
from tracker.statistics.resampling import SPREAD_TOLERANCE, PermutationTest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_null_panel(axes: Axes, comparison: PermutationTest, drawn: str, *, two_sided: bool = True) -> None:
    """Draw one null distribution with the observed value as a line, and the p-value above.

    Args:
        axes: where to draw.
        comparison: the test.
        drawn: short label of the null.
        two_sided: whether small values of the statistic are evidence too.
    """
    null = comparison.null[np.isfinite(comparison.null)]
    values = np.append(null, comparison.observed) if np.isfinite(comparison.observed) else null
    if values.size:
        low, high = float(values.min()), float(values.max())
        one_value = high - low <= SPREAD_TOLERANCE * max(abs(low), abs(high))
        margin = max(1e-3 * abs(high), 1e-6) if one_value else 0.06 * (high - low)
        edges: Any = np.linspace(low - margin, high + margin, 52)
        counts = np.histogram(null, edges)[0]
        axes.stairs(counts, edges, fill=True, color=DRAWN, alpha=0.85, label=f"null: {drawn}")
        axes.set_xlim(edges[0], edges[-1])
    if np.isfinite(comparison.observed):
        axes.axvline(comparison.observed, color=OBSERVED, linewidth=1.8, label="observed")
    pvalue = comparison.pvalue_two_sided if two_sided else comparison.pvalue
    label = "no test" if comparison.reason else f"p = {pvalue:.3g}"
    if comparison.is_discrete and not comparison.reason:
        label += "\n(discrete)"
    axes.text(0.98, 1.0, label, transform=axes.transAxes, ha="right", va="bottom", fontsize=7.5, color=INK)
    axes.locator_params(axis="x", nbins=3)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.7g}")
    axes.locator_params(axis="y", nbins=3)
    style_axes(axes)
