"""Pictures of prompt clusters: how clear they are at each number, what draws gave, and who solves which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.null_panel import draw_null_panel
from tracker.figures.canvas import (
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    SEQUENTIAL,
    add_legend_below,
    create_figure,
    label_cells,
    shorten,
    style_axes,
)
from tracker.statistics.resampling import PermutationTest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAND = (2.5, 97.5)
"""Percentiles of the draws between which the band lies."""


def draw_by_number(
    observed: NDArray[np.float64], drawn: NDArray[np.float64], chosen: int, best: PermutationTest, words: str
) -> Figure:
    """Mean silhouette at each number of clusters with the band of the drawn tables, and the difference below.

    Args:
        observed: ``(m,)`` at 2, 3, ... clusters; NaN where there are none.
        drawn: ``(n_permutations, m)`` the same of drawn tables.
        chosen: the number of clusters with the largest silhouette.
        best: of the largest silhouettes.
        words: the null in a few words.
    """
    numbers = np.arange(2, observed.size + 2)
    defined = np.isfinite(observed) & np.isfinite(drawn).all(axis=0)
    figure = create_figure(6.6, 5.0, "How well clusters of prompts separate, by their number")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    x, kept = numbers[defined], drawn[:, defined]
    mean, (low, high) = kept.mean(axis=0), np.percentile(kept, BAND, axis=0)
    marker = "o" if x.size < 3 else None
    upper.fill_between(x, low, high, color=DRAWN, alpha=0.4, linewidth=0, label="95% of the draws")
    upper.plot(x, mean, color=DRAWN, linewidth=1.6, marker=marker, label=f"mean of the draws: {words}")
    upper.plot(numbers, observed, color=OBSERVED, linewidth=1.8, marker=marker, label="observed")
    upper.plot(chosen, observed[chosen - 2], "o", color=OBSERVED, markersize=7)
    label = "no test" if best.reason else f"p = {best.pvalue_two_sided:.3g}"
    right = chosen > (2 + observed.size) / 2
    upper.annotate(
        f"{chosen} clusters, {best.observed:.3f}; {label}",
        (chosen, observed[chosen - 2]),
        xytext=(-8 if right else 8, 6),
        textcoords="offset points",
        ha="right" if right else "left",
        va="bottom",
        fontsize=8.5,
        color=INK,
    )
    upper.margins(y=0.18)
    upper.set_ylabel("mean silhouette", fontsize=9)
    lower.axhline(0, color=FAINT, linewidth=0.8)
    lower.fill_between(x, low - mean, high - mean, color=DRAWN, alpha=0.4, linewidth=0)
    lower.plot(x, observed[defined] - mean, color=OBSERVED, linewidth=1.6, marker=marker)
    lower.set_ylabel("observed\nminus mean of draws", fontsize=9)
    lower.set_xlabel("number of clusters", fontsize=9)
    lower.xaxis.get_major_locator().set_params(integer=True)
    for axes in (upper, lower):
        style_axes(axes)
    add_legend_below(figure, upper, 8.5)
    return figure


def draw_clusters_and_noise(
    observed: tuple[int, float], drawn: tuple[NDArray[np.int64], NDArray[np.float64]], words: str
) -> Figure:
    """Number of clusters and share of noise of each drawn table, with the observed table as a larger point.

    Args:
        observed: number of clusters, and share of noise in [0, 1].
        drawn: ``(n_permutations,)`` each, the same of drawn tables.
        words: the null in a few words.
    """
    figure = create_figure(5.4, 3.4, "Number of clusters and share of noise, beside permuted tables")
    axes = figure.subplots()
    axes.scatter(*drawn, s=16, color=DRAWN, alpha=0.6, linewidths=0, label=f"null: {words}")
    axes.scatter(*observed, s=52, color=OBSERVED, label="observed")
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("number of clusters", fontsize=9)
    axes.set_ylabel("share of noise", fontsize=9)
    axes.locator_params(axis="x", integer=True)
    style_axes(axes)
    add_legend_below(figure, axes, 8.5)
    return figure


def draw_null_distribution(best: PermutationTest, words: str, *, has_noise: bool = False) -> Figure:
    """The silhouette of each drawn table, the largest over numbers of clusters, with the observed one as a line.

    Args:
        best: of the silhouettes.
        words: the null in a few words.
        has_noise: whether the method finds its number of clusters, and its noise counts as 0.
    """
    figure = create_figure(5.4, 3.2, "How well clusters separate, beside permuted tables")
    axes = figure.subplots()
    draw_null_panel(axes, best, words)
    label = (
        "mean silhouette, noise counts as 0" if has_noise else "largest mean silhouette over all numbers of clusters"
    )
    axes.set_xlabel(label, fontsize=9)
    axes.set_ylabel("draws", fontsize=9)
    add_legend_below(figure, axes, 8.5)
    return figure


def draw_means(
    values: NDArray[np.float64], sizes: NDArray[np.int64], models: Sequence[str], unit: str, *, is_binary: bool
) -> Figure:
    """A cell for each cluster and model: the model's mean score on the cluster's prompts.

    Args:
        values: ``(n_clusters, n_models)``, the best model first; clusters are drawn with the largest mean on top.
        sizes: ``(n_clusters,)`` prompts in each.
        models: name of each column.
        unit: what the scores are called.
        is_binary: whether scores are 0 and 1, so that colours span exactly that.
    """
    n_clusters, n_models = values.shape
    order = np.argsort(-values.mean(axis=1), kind="stable")
    width, height = min(5.6, max(2.6, 0.2 * n_models)), max(1.2, 0.15 * n_clusters)
    figure = create_figure(
        width + 2.4,
        height + 1.2 + 0.055 * max(map(len, shorten(models))),
        "Mean score of each model on the prompts of each cluster",
    )
    axes = figure.subplots()
    low, high = (0.0, 1.0) if is_binary else (float(values.min()), float(values.max()))
    drawn = axes.imshow(values[order], cmap=SEQUENTIAL, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    axes.tick_params(colors=INK)
    label_cells(axes.xaxis, models, width)
    label_cells(axes.yaxis, [f"{number}  ({sizes[number]:,})" for number in order], height)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("models, the best on the left", fontsize=9)
    axes.set_ylabel("cluster (prompts)", fontsize=9)
    bar = figure.colorbar(drawn, ax=axes, fraction=0.04, pad=0.015)
    bar.set_label(unit, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    return figure
