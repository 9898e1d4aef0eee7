"""Pictures of standard errors by the number of trials, and of pass@k and pass^k."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyses.trials.method import MEASURES, Trials
from analyses.trials.tables import MULTIPLES
from tracker.figures.canvas import FAINT, INK, SERIES, create_figure, shorten, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_LINES = len(SERIES)


def draw_errors(finding: Trials) -> Figure:
    """The standard error of each mean by the number of trials, and with as many responses to new prompts.

    Args:
        finding: the numbers; the models with the best means are shown.
    """
    figure = create_figure(7.5, 4.2, "Standard error of the mean by the number of trials")
    axes = figure.subplots()
    items = finding.repeated[:MAX_LINES]
    for color, item, label in zip(SERIES, items, shorten([item.model for item in items]), strict=False):
        variance = item.variance
        axes.plot(MULTIPLES, [variance.stderr_with(n) for n in MULTIPLES], "o-", color=color, markersize=4, label=label)
        new = [variance.stderr_with(1, variance.n * n) for n in MULTIPLES]
        axes.plot(MULTIPLES, new, ":", color=color, linewidth=1)
    axes.plot([], [], ":", color=INK, linewidth=1, label="dotted: as many responses to new prompts")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("trials of each prompt", fontsize=9)
    axes.set_ylabel("standard error of the mean", fontsize=9)
    _finish(figure, axes)
    return figure


def draw_rates(finding: Trials) -> Figure:
    """pass@k and pass^k by k, with intervals.

    Args:
        finding: the numbers; the models with the best means are shown.
    """
    figure = create_figure(7.5, 4.2, "Share of prompts solved in at least one, and in all, of k trials")
    axes = figure.subplots()
    names = [item.model for item in finding.repeated[:MAX_LINES]]
    for color, name, label in zip(SERIES, names, shorten(names), strict=False):
        for measure, style in zip(MEASURES, ("o-", "s--"), strict=True):
            rates = [rate for rate in finding.rates if rate.model == name and rate.measure == measure]
            axes.errorbar(
                [rate.k for rate in rates],
                [rate.estimate.mean for rate in rates],
                yerr=[
                    [rate.estimate.mean - rate.estimate.low for rate in rates],
                    [rate.estimate.high - rate.estimate.mean for rate in rates],
                ],
                fmt=style,
                color=color,
                markersize=4,
                linewidth=1.1,
                elinewidth=0.7,
                label=label if measure == MEASURES[0] else None,
            )
    axes.set_xlabel("k", fontsize=9)
    axes.set_ylabel(f"pass@k (solid), pass^k (dashed), {finding.level:.0%} intervals", fontsize=9)
    _finish(figure, axes)
    return figure


def _finish(figure: Figure, axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_axisbelow(True)
    axes.grid(color=FAINT, alpha=0.25, linewidth=0.5)
    style_axes(axes)
    axes.tick_params(axis="both", labelcolor=INK)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
