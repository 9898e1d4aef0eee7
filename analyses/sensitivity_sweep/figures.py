"""A picture of sensitivity along the least weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.pair_limits import PairLimits
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange
from analyses.presentation.canvas import DRAWN, FAINT, INK, OBSERVED, create_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FINE = 400
"""Places at which the bound by single pairs is drawn."""


def sweep(path: Sequence[CardinalSensitivity], limits: PairLimits, labels: Sequence[str], *, is_raw: bool) -> Figure:
    """Both distances against epsilon.

    Args:
        path: smallest epsilon first.
        limits: of all pairs.
        labels: each epsilon in words.
        is_raw: whether scores are weighed as they are.
    """
    figure = create_figure(6.8, 6.4)
    upper, lower = figure.subplots(2, 1, sharex=True)
    at = np.array([float(one.epsilon) for one in path])
    m = len(path[0].before)
    fine = np.geomspace(at[0], at[-1], FINE)
    alone = (len(limits.limit) - np.searchsorted(np.sort(limits.limit), fine, side="right")) / (m * (m - 1) / 2)
    upper.plot(fine, alone, color=FAINT, linewidth=1, linestyle="--", label="all pairs that some weights reverse")
    _curve(upper, at, [one.tau for one in path])
    _curve(lower, at, [one.mrc for one in path])
    upper.set_ylabel("tau: share of pairs\nreversed", fontsize=9)
    lower.set_ylabel("MRC: farthest move of a model,\nin m − 1 places", fontsize=9)
    columns = "scores as they are" if is_raw else "standardised tasks"
    lower.set_xlabel(f"epsilon: least weight of a task, the largest being 1 ({columns})", fontsize=9)
    lower.set_xscale("log")
    for axes in (upper, lower):
        axes.set_ylim(0, None)
        axes.set_axisbelow(True)
        axes.grid(color="#dddddd", linewidth=0.6)
        style_axes(axes)
    _label_epsilons(lower, at, labels)
    safe = float(limits.max_limit())
    if at[0] < safe < at[-1]:
        for axes in (upper, lower):
            axes.axvline(safe, color=INK, linewidth=0.8, linestyle=":", zorder=1)
        lower.text(
            safe, 0.98, f"no reversal from {safe:.3g} on ", transform=lower.get_xaxis_transform(),
            ha="right", va="top", fontsize=8, color=INK,
        )  # fmt: skip
    named = {
        name: handle for axes in (lower, upper) for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    return figure


def _curve(axes: Axes, at: NDArray[np.float64], changes: Sequence[LargestChange]) -> None:
    value = np.array([change.value for change in changes])
    upper_bound = np.array([change.upper_bound for change in changes])
    proven = np.array([change.is_exact for change in changes])
    axes.plot(at, value, color=OBSERVED, linewidth=1.4, zorder=3, clip_on=False)
    if proven.any():
        dots = axes.scatter(at[proven], value[proven], s=22, color=OBSERVED, zorder=4, label="largest change, proven")
        dots.set_clip_on(False)
    if not proven.all():
        axes.scatter(
            at[~proven], value[~proven], s=22, facecolor="white", edgecolor=OBSERVED, zorder=4, label="largest found"
        )
        axes.fill_between(at, value, upper_bound, color=DRAWN, alpha=0.35, linewidth=0, label="… to its upper bound")


def _label_epsilons(axes: Axes, at: NDArray[np.float64], labels: Sequence[str]) -> None:
    """Label as many epsilons as there is room for, the largest first."""
    room = (np.log10(at[-1] / at[0]) or 1.0) / 11
    shown: list[int] = []
    for place in range(len(at) - 1, -1, -1):
        if not shown or np.log10(at[shown[-1]] / at[place]) >= room:
            shown.append(place)
    axes.set_xticks(at[shown], [labels[place] for place in shown])
    axes.set_xticks([], minor=True)
