"""A picture of sensitivity along the least weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.largest_change import LargestChange
from analyses.sensitivity_sweep.method import SensitivitySweep
from tracker.figures.canvas import DRAWN, FAINT, INK, OBSERVED, create_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_CURVE_POINTS = 400
"""Places at which the bound by single pairs is drawn."""


def draw_sweep(finding: SensitivitySweep) -> Figure:
    """Both distances against epsilon."""
    path, limits = finding.path.sensitivities, finding.path.limits
    figure = create_figure(6.8, 6.4, "How far other weights of tasks can change the ranking, by the least weight")
    upper, lower = figure.subplots(2, 1, sharex=True)
    epsilons = np.array([float(sensitivity.epsilon) for sensitivity in path])
    n_models = len(finding.models)
    fine = np.geomspace(epsilons[0], epsilons[-1], N_CURVE_POINTS)
    reversible = (len(limits.limit) - np.searchsorted(np.sort(limits.limit), fine, side="right")) / (
        n_models * (n_models - 1) / 2
    )
    upper.plot(fine, reversible, color=FAINT, linewidth=1, linestyle="--", label="all pairs that some weights reverse")
    _draw_curve(upper, epsilons, [sensitivity.tau for sensitivity in path])
    _draw_curve(lower, epsilons, [sensitivity.mrc for sensitivity in path])
    upper.set_ylabel("tau: share of pairs\nreversed", fontsize=9)
    lower.set_ylabel("MRC: farthest move of a model,\nin m − 1 places", fontsize=9)
    columns = "scores as they are" if finding.is_raw else "standardised tasks"
    lower.set_xlabel(f"epsilon: least weight of a task, the largest being 1 ({columns})", fontsize=9)
    lower.set_xscale("log")
    for axes in (upper, lower):
        axes.set_ylim(0, None)
        axes.set_axisbelow(True)
        axes.grid(color="#dddddd", linewidth=0.6)
        style_axes(axes)
    _label_epsilons(lower, epsilons, finding.labels)
    safe = float(limits.max_limit())
    if epsilons[0] < safe < epsilons[-1]:
        for axes in (upper, lower):
            axes.axvline(safe, color=INK, linewidth=0.8, linestyle=":", zorder=1)
        lower.text(
            safe, 0.98, f"no reversal from {safe:.3g} on ", transform=lower.get_xaxis_transform(),
            ha="right", va="top", fontsize=8, color=INK,
        )  # fmt: skip
    handles = {
        name: handle for axes in (lower, upper) for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _draw_curve(axes: Axes, epsilons: NDArray[np.float64], changes: Sequence[LargestChange]) -> None:
    value = np.array([change.value for change in changes])
    upper_bound = np.array([change.upper_bound for change in changes])
    is_proven = np.array([change.is_exact for change in changes])
    axes.plot(epsilons, value, color=OBSERVED, linewidth=1.4, zorder=3, clip_on=False)
    if is_proven.any():
        dots = axes.scatter(
            epsilons[is_proven], value[is_proven], s=22, color=OBSERVED, zorder=4, label="largest change, proven"
        )
        dots.set_clip_on(False)
    if not is_proven.all():
        axes.scatter(
            epsilons[~is_proven],
            value[~is_proven],
            s=22,
            facecolor="white",
            edgecolor=OBSERVED,
            zorder=4,
            label="largest found",
        )
        axes.fill_between(
            epsilons, value, upper_bound, color=DRAWN, alpha=0.35, linewidth=0, label="… to its upper bound"
        )


def _label_epsilons(axes: Axes, epsilons: NDArray[np.float64], labels: Sequence[str]) -> None:
    """Label as many epsilons as there is room for, the largest first."""
    room = (np.log10(epsilons[-1] / epsilons[0]) or 1.0) / 11
    labelled: list[int] = []
    for index in range(len(epsilons) - 1, -1, -1):
        if not labelled or np.log10(epsilons[labelled[-1]] / epsilons[index]) >= room:
            labelled.append(index)
    axes.set_xticks(epsilons[labelled], [labels[index] for index in labelled])
    axes.set_xticks([], minor=True)
