"""Figures of filters among random subsets, and of prompts by difficulty and discrimination."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analyses.filter_baselines.method import PARAMETERS, FilterBaselines, summarize_parameter
from analyses.numerics.filtering.effects.random_comparison import SelectionComparison
from analyses.numerics.filtering.item_response import TwoParameterFit
from tracker.figures.canvas import DRAWN, INK, OBSERVED, PAGE_WIDTH, SERIES, add_legend_below, create_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Mask = NDArray[np.bool_]

TITLES = {
    "tau": "ranking kept\n(tau-b, all models)",
    "tau_without_filter_models": "ranking kept\n(tau-b, without filter models)",
    "pearson": "Pearson's correlation\nwith the other benchmark",
    "spearman": "Spearman's correlation\nwith the other benchmark",
    "agreement": "agreement of two models,\non average",
}
METHODS = {"filter": "the filter", "item_response": "item response"}
BINS = 45
"""Of one statistic, over all methods."""


def list_figures(finding: FilterBaselines) -> dict[str, Callable[[], Figure]]:
    """Return all figures, by their names; that of the prompts only where item response was fitted."""
    methods, response = finding.methods, finding.response
    figures: dict[str, Callable[[], Figure]] = {
        "random_subsets": lambda: draw_random_subsets(methods, finding.full, finding.statistics)
    }
    if response is not None:
        limits = [summarize_parameter(response, name, finding.percentile).limit for name in PARAMETERS]
        figures["prompts"] = lambda: draw_prompts(
            response, methods["filter"].kept, methods["item_response"].kept, limits
        )
    return figures


def draw_random_subsets(
    comparisons: Mapping[str, SelectionComparison], full: Mapping[str, float], statistics: Sequence[str]
) -> Figure:
    """Each statistic of each method as a line in the distribution of random subsets of its size.

    Args:
        comparisons: by the method's name, a row each.
        full: statistics of all prompts.
        statistics: names of those to show, a column each.
    """
    figure = create_figure(
        min(PAGE_WIDTH, 2.4 * len(statistics) + 0.6),
        2.3 * len(comparisons) + 0.8,
        "Kept prompts of each filter beside random subsets of the same size",
    )
    panels: Any = figure.subplots(len(comparisons), len(statistics), squeeze=False, sharex="col")
    for column, name in zip(panels.T, statistics, strict=True):
        edges = _edges(
            [
                *(comparison.random[name] for comparison in comparisons.values()),
                [comparison.values[name] for comparison in comparisons.values()],
            ]
        )
        for axes, comparison in zip(column, comparisons.values(), strict=True):
            _panel(axes, comparison, name, full.get(name, np.nan), edges)
    for row, (method, comparison) in zip(panels, comparisons.items(), strict=True):
        row[0].set_ylabel(f"{METHODS[method]}\n({comparison.share_removed:.1%} removed)\n\nrandom subsets", fontsize=9)
    for axes, name in zip(panels[0], statistics, strict=True):
        axes.set_title(TITLES[name], fontsize=9, color=INK, pad=16)
    for axes in panels[-1]:
        axes.set_xlabel("value of the statistic", fontsize=8)
    handles: dict[str, Any] = {}
    for axes in panels.flat:
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9
    )
    return figure


def _edges(values: Sequence[Any]) -> NDArray[np.float64]:
    """Of bars that hold all values, those that are not defined left out."""
    known = np.concatenate([np.asarray(part, dtype=np.float64) for part in values])
    known = known[~np.isnan(known)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    margin = max(0.03 * (high - low), 1e-4)
    return np.linspace(low - margin, high + margin, BINS + 1)


def _panel(axes: Axes, comparison: SelectionComparison, name: str, of_all: float, edges: NDArray[np.float64]) -> None:
    drawn, value = comparison.random[name], comparison.values[name]
    drawn = drawn[~np.isnan(drawn)]
    if drawn.size:
        axes.hist(drawn, bins=list(edges), color=DRAWN, alpha=0.85, label="random subsets of its size")
        axes.locator_params(axis="y", nbins=3)
    else:
        axes.set_yticks([])
    if not np.isnan(of_all):
        axes.axvline(of_all, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label="all prompts")
    if not np.isnan(value):
        axes.axvline(value, color=OBSERVED, linewidth=1.4, label="this selection")
    axes.text(
        0.98, 1.0, _place(comparison.position(name)), transform=axes.transAxes, ha="right", va="bottom", fontsize=7.5,
        color=INK,
    )  # fmt: skip
    axes.locator_params(axis="x", nbins=3)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.5g}")
    style_axes(axes)


def _place(position: float) -> str:
    if np.isnan(position):
        return "not defined"
    return {0.0: "below all", 1.0: "above all"}.get(position, f"above {position:.1%} of them")


def draw_prompts(response: TwoParameterFit, kept: Mask, kept_by_response: Mask, limits: Sequence[float]) -> Figure:
    """Every prompt by difficulty and discrimination, and which of the two filters removes it.

    Args:
        response: the fit.
        kept: ``(n_prompts,)`` by the filter.
        kept_by_response: ``(n_prompts,)`` by item response.
        limits: of difficulty and of discrimination.
    """
    figure = create_figure(7.2, 4.8, "Prompts that each filter removes, by difficulty and discrimination")
    axes = figure.subplots()
    groups = (
        ("kept by both", kept & kept_by_response, "#bbbbbb"),
        ("removed by item response alone", kept & ~kept_by_response, SERIES[0]),
        ("removed by the filter alone", ~kept & kept_by_response, SERIES[1]),
        ("removed by both", ~kept & ~kept_by_response, SERIES[6]),
    )
    n = len(kept)
    for label, chosen, color in groups:
        if chosen.any():
            axes.scatter(
                response.difficulty[chosen], response.discrimination[chosen], s=5 if n > 1000 else 12, color=color,
                alpha=0.5 if n > 1000 else 0.8, linewidths=0, rasterized=True, label=f"{label}: {chosen.sum():,}",
            )  # fmt: skip
    axes.axvline(limits[0], color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.axhline(limits[1], color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_yscale("log")
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10) if _within(tick, response.discrimination)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("difficulty (ability at which half of the answers are right)", fontsize=9)
    axes.set_ylabel("discrimination (log odds by unit of ability)", fontsize=9)
    style_axes(axes)
    add_legend_below(figure, axes)
    handles: Any = figure.legends[0].legend_handles
    for handle in handles:
        handle.set_sizes([24])
        handle.set_alpha(1)
    return figure


def _within(tick: float, values: NDArray[np.float64]) -> bool:
    return bool(np.nanmin(values) <= tick <= np.nanmax(values))
