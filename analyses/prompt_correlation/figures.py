"""Figures of prompt correlation: how similar prompts are, and the null distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.similarities import BY_NAME
from analyses.numerics.similarity.similarity_test import SimilarityTest
from analyses.presentation.null_panel import draw_null_panel
from tracker.figures.canvas import DRAWN, INK, OBSERVED, add_legend_below, create_figure, style_axes
from tracker.statistics.ranking import TIE_TOLERANCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BARS, FEW_BARS = 40, 20
NARROW = 0.9
"""Similarities all above this get a separate axis, or one bar would hold them all."""
STATISTIC_TITLES = {
    "mean": "mean",
    "p75": "75th percentile",
    "p95": "95th percentile",
    "variance": "variance",
    "ks_d": "KS distance D",
}


def draw_observed_and_permuted(tests: Sequence[SimilarityTest], drawn: str) -> Figure:
    """How similar pairs of prompts are, beside pairs of prompts in the drawn tables: one panel per similarity.

    Args:
        tests: what to show.
        drawn: the null in a few words.
    """
    n_columns = min(3, len(tests))
    n_rows = -(-len(tests) // n_columns)
    figure = create_figure(
        max(5.0, 2.65 * n_columns), 0.6 + 2.4 * n_rows, "Similarity of pairs of prompts, observed and under the null"
    )
    panels = np.atleast_1d(figure.subplots(n_rows, n_columns, squeeze=False)).ravel()
    for axes, test in zip(panels, tests, strict=False):
        edges, observed, permuted = bin_shares(test)
        axes.stairs(permuted, edges, fill=True, color=DRAWN, alpha=0.75, label=f"{drawn} (all draws)")
        axes.stairs(observed, edges, color=OBSERVED, linewidth=1.6, label="observed")
        axes.set_title(format_similarity(test, tests).replace("\n", " "), fontsize=10, color=INK)
        axes.set_xlabel("similarity of two prompts", fontsize=9)
        weighted = np.issubdtype(test.observed.dtype, np.floating)
        axes.set_ylabel("share of weighted pairs" if weighted else "share of pairs", fontsize=9)
        axes.set_xlim(edges[0], edges[-1])
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        style_axes(axes)
    for axes in panels[len(tests) :]:
        axes.set_visible(False)
    add_legend_below(figure, panels[0])
    return figure


def format_similarity(test: SimilarityTest, tests: Sequence[SimilarityTest]) -> str:
    """A similarity's name, with its convention where another one is shown beside it."""
    similarity = BY_NAME[test.name]
    has_variant = any(BY_NAME[variant.name].choice == similarity.choice for variant in tests if variant is not test)
    title = similarity.choice.capitalize()
    return f"{title}\n({similarity.convention})" if has_variant else title


def bin_shares(test: SimilarityTest) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Edges of at most `MAX_BARS` bars, and the share of pairs in each, observed and drawn.

    A similarity with few evenly spaced values gets one bar per value; any other gets equal bins, wide ones
    if it has so few values that narrow ones would stay empty.
    """
    bars = FEW_BARS if test.values.size < MAX_BARS**2 else MAX_BARS
    least = float(test.values[np.flatnonzero(test.observed + test.pooled)].min())
    low = min(0.0, float(np.floor(least * 10) / 10))
    if least > NARROW:
        low = least
    steps = np.diff(test.values)
    if test.width == 0 and test.values.size <= MAX_BARS and np.allclose(steps, steps[0]):
        edges = np.concatenate([test.values - steps[0] / 2, [test.values[-1] + steps[0] / 2]])
    else:
        edges = np.linspace(low, 1.0, bars + 1)
    place = np.clip(
        np.searchsorted(edges, test.values + test.width / 2 + TIE_TOLERANCE, side="right") - 1, 0, edges.size - 2
    )

    def share(counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.bincount(place, weights=counts, minlength=edges.size - 1) / (counts.sum() or 1))

    return edges, share(test.observed), share(test.pooled)


def draw_null_distributions(tests: Sequence[SimilarityTest], drawn: str) -> Figure:
    """Each statistic under the null with the observed value as a line: similarities down, statistics across.

    A p-value is written only where there is one.

    Args:
        tests: what to show.
        drawn: the null in a few words.
    """
    statistics = list(tests[0].comparisons)
    figure = create_figure(
        max(5.0, 1.6 * len(statistics)),
        0.7 + 1.5 * len(tests),
        "Statistics of similarity, observed and under the null",
    )
    panels = figure.subplots(len(tests), len(statistics), squeeze=False)
    for row, test in zip(panels, tests, strict=True):
        for axes, statistic in zip(row, statistics, strict=True):
            draw_null_panel(axes, test.comparisons[statistic], drawn, two_sided=statistic != "ks_d")
            axes.locator_params(axis="x", nbins=2)
            axes.set_yticks([])
        row[0].set_ylabel(f"{format_similarity(test, tests)}\ndraws", fontsize=8)
    for top, bottom, statistic in zip(panels[0], panels[-1], statistics, strict=True):
        top.set_title(STATISTIC_TITLES.get(statistic, statistic), fontsize=9, color=INK, pad=24)
        bottom.set_xlabel("value", fontsize=8)
    add_legend_below(figure, panels[0][-1])
    return figure
