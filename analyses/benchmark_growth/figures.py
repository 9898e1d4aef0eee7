"""Figures of benchmark growth: every model's mean, and the distance of the ranking from the final one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.figures.canvas import (
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    SEQUENTIAL,
    create_figure,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NAMED, SOME = 24, 12
"""Up to the first number, all models have a label; of more, the second number, spread over the ranking."""
MAX_BANDS = 7
"""Up to this many models each get a band."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Curves:
    """Data of all figures of means.

    Attributes:
        sizes: ``(n_sizes,)`` numbers of prompts.
        final: ``(k,)`` mean over all prompts.
        models: their names.
        ranks: ``(k,)`` by the final mean, 1 is best.
        score: label of the mean.
    """

    sizes: NDArray[np.int64]
    final: NDArray[np.float64]
    models: tuple[str, ...]
    ranks: NDArray[np.float64]
    score: str

    @property
    def colours(self) -> Any:
        """``(k, 4)``, from the best to the last."""
        from matplotlib import colormaps

        place = (self.ranks - 1) / max(len(self.ranks) - 1, 1)
        return colormaps[SEQUENTIAL](0.92 * place)

    @property
    def best_first(self) -> NDArray[np.intp]:
        """Models in the order of the final ranking."""
        return np.argsort(self.ranks, kind="stable")

    def spread(self, most: int) -> list[int]:
        """Return at most so many models, at even steps down the ranking, the first and the last among them."""
        places = np.unique(np.linspace(0, len(self.models) - 1, min(most, len(self.models))).round().astype(int))
        return [int(model) for model in self.best_first[places]]


def draw_informative(curves: Curves, means: NDArray[np.float64], permuted: NDArray[np.float64] | None) -> Figure:
    """Draw means as prompts are added, the most informative first, beside those on shuffled tables.

    Args:
        curves: the data.
        means: ``(n_sizes, k)``.
        permuted: ``(3, n_sizes, k)`` percentiles over shuffled tables, or None.
    """
    n_panels = 1 if permuted is None else 2
    figure = create_figure(7.5, 4.2 * n_panels, "Mean of each model as prompts are added, the most informative first")
    panels = figure.subplots(n_panels, 1, sharey=True, squeeze=False)[:, 0]
    _lines(panels[0], curves, means)
    panels[0].set_title("most informative prompts first", fontsize=10, color=INK)
    panels[0].set_ylabel(curves.score, fontsize=9)
    if permuted is not None:
        panels[1].set_ylabel(curves.score, fontsize=9)
        _lines(panels[1], curves, permuted[1])
        _bands(panels[1], curves, permuted)
        panels[1].set_title("control: the same on shuffled tables (median)", fontsize=10, color=INK)
    for axes in panels:
        _names(axes, curves)
    return figure


def draw_random(curves: Curves, band: NDArray[np.float64]) -> Figure:
    """Draw means as prompts are added in random order: medians, and bands that hold 95% of the orders.

    Args:
        curves: the data.
        band: ``(3, n_sizes, k)`` percentiles over the orders.
    """
    figure = create_figure(7.5, 4.6, "Mean of each model as prompts are added in random order")
    axes = figure.subplots()
    _lines(axes, curves, band[1])
    _bands(axes, curves, band)
    suffix = "" if len(curves.models) <= MAX_BANDS else f", for {MAX_BANDS} models"
    axes.set_title(f"random order (median; bands hold 95% of the orders{suffix})", fontsize=10, color=INK)
    axes.set_ylabel(curves.score, fontsize=9)
    _names(axes, curves)
    return figure


def _lines(axes: Axes, curves: Curves, means: NDArray[np.float64]) -> None:
    thin = len(curves.models) > MAX_NAMED
    for model in curves.best_first[::-1]:
        axes.plot(curves.sizes, means[:, model], color=curves.colours[model], linewidth=0.7 if thin else 1.2)
    axes.set_xlim(0, curves.sizes[-1])
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
    axes.set_xlabel("prompts in the benchmark", fontsize=9)
    style_axes(axes)


def _bands(axes: Axes, curves: Curves, band: NDArray[np.float64]) -> None:
    for model in curves.spread(MAX_BANDS):
        colour = curves.colours[model]
        axes.fill_between(curves.sizes, band[0, :, model], band[2, :, model], color=colour, alpha=0.15, linewidth=0)


def _names(axes: Axes, curves: Curves) -> None:
    """A tick for each model's final mean at the right, and names beside it, best first, kept apart."""
    labelled = curves.spread(MAX_NAMED if len(curves.models) <= MAX_NAMED else SOME)
    low, high = axes.get_ylim()
    step = (high - low) / MAX_NAMED
    order = sorted(labelled, key=lambda model: -curves.final[model])
    places = _spread_labels(curves.final[order], step, low, high)
    across = axes.get_yaxis_transform()
    for model, colour in enumerate(curves.colours):
        axes.plot([1, 1.02], 2 * [curves.final[model]], color=colour, transform=across, clip_on=False, linewidth=1)
    for model, place in zip(order, places, strict=True):
        colour = curves.colours[model]
        ends = [curves.final[model], place]
        axes.plot([1.02, 1.05], ends, color=colour, transform=across, clip_on=False, linewidth=0.6)
        name = f"{curves.ranks[model]:g}  {shorten([curves.models[model]])[0]}"
        axes.text(1.055, place, name, transform=across, fontsize=6.5, va="center", color=INK)
    axes.set_ylim(low, high)


def _spread_labels(values: NDArray[np.float64], step: float, low: float, high: float) -> NDArray[np.float64]:
    """Descending places, at least ``step`` apart and within limits, near those wanted."""
    places = values.copy()
    for i in range(len(places)):
        places[i] = min(places[i], high - step / 2 if i == 0 else places[i - 1] - step)
    for i in range(len(places) - 1, -1, -1):
        places[i] = max(places[i], low + step / 2 if i == len(places) - 1 else places[i + 1] + step)
    return places


@dataclass(frozen=True, kw_only=True, slots=True)
class DistanceCurves:
    """Kendall distances from the final ranking.

    Attributes:
        informative: ``(n,)`` at every size.
        sizes: ``(n_sizes,)`` those of the bands.
        random: ``(3, n_sizes)`` percentiles over random orders.
        permuted: the same over shuffled tables, or None.
        within: the distance that counts as near.
        stable_size: the size from which on the informative order stays there.
    """

    informative: NDArray[np.float64]
    sizes: NDArray[np.int64]
    random: NDArray[np.float64]
    permuted: NDArray[np.float64] | None
    within: float
    stable_size: int


def draw_distance(curves: DistanceCurves) -> Figure:
    """Draw the distance of the ranking from the final one as prompts are added.

    Args:
        curves: the data.
    """
    figure = create_figure(7.5, 4.4, "Distance of the ranking from the final one by the number of prompts")
    axes = figure.subplots()
    bands = [("random order", DRAWN, curves.random)]
    if curves.permuted is not None:
        bands.append(("shuffled tables", FAINT, curves.permuted))
    for name, colour, band in bands:
        axes.fill_between(curves.sizes, band[0], band[2], color=colour, alpha=0.25, linewidth=0)
        axes.plot(curves.sizes, band[1], color=colour, linewidth=1.4, label=name)
    axes.plot(
        np.arange(1, len(curves.informative) + 1),
        curves.informative,
        color=OBSERVED,
        linewidth=1.4,
        label="most informative first",
    )
    axes.axhline(curves.within, color=INK, linewidth=0.8, linestyle=":")
    axes.axvline(curves.stable_size, color=OBSERVED, linewidth=0.8, linestyle=":")
    axes.text(
        curves.stable_size,
        axes.get_ylim()[1],
        f" stays within {curves.within:g} from {curves.stable_size:,}",
        fontsize=8,
        color=OBSERVED,
        va="top",
        ha="right" if curves.stable_size > len(curves.informative) ** 0.6 else "left",
    )
    axes.set_xscale("log")
    axes.set_xlim(1, len(curves.informative))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
    axes.set_xlabel("prompts in the benchmark", fontsize=9)
    axes.set_ylabel("Kendall distance from the final ranking", fontsize=9)
    style_axes(axes)
    axes.set_title("medians, with bands that hold 95% of the orders", fontsize=9, color=INK)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure
