"""Pictures of how stable a filter is: what each subset of its models would remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.stability import SubsetDecisions, summarize_population
from tracker.figures.canvas import DRAWN, FAINT, INK, OBSERVED, add_legend_below, create_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_BINS = 90
"""Places along the axis at which subsets are stacked."""
MAX_BAR_WIDTH = 0.62
"""Of the distance between two rows, what the highest stack takes."""


def draw_subsets(decided: SubsetDecisions, recorded: float) -> Figure:
    """Draw the share that each subset removes, by size, with that of all models.

    Args:
        decided: the last one is all models.
        recorded: share removed by the filter as recorded.
    """
    sizes, shares, of_all = decided.sizes, decided.share_removed, int(decided.sizes.max())
    rows = np.unique(sizes)[::-1]
    figure = create_figure(7.5, 1.5 + 0.85 * len(rows), "Share of prompts that the filter removes with fewer models")
    axes = figure.subplots()
    low, high = float(min(shares.min(), recorded)), float(max(shares.max(), recorded))
    room = max(0.06 * (high - low), 0.001)
    axes.set_xlim(low - room, high + room)
    axes.axvline(recorded, color=OBSERVED, linewidth=1.2, linestyle=(0, (4, 3)), label="the filter as recorded")
    width = (axes.get_xlim()[1] - axes.get_xlim()[0]) / N_BINS
    stacks = [_stacked(np.sort(shares[sizes == size]), width) for size in rows]
    step = min(0.1, MAX_BAR_WIDTH / max(1.0, *(heights.max() for _, heights in stacks)))
    for row, size in enumerate(rows.tolist()):
        x, heights = stacks[row]
        is_first = row == (1 if len(rows) > 1 else 0)
        axes.plot(
            x, row - 0.06 - step * heights, color=OBSERVED if size == of_all else DRAWN, marker="o", linestyle="none",
            markersize=7 if size == of_all else 5 if step > 0.07 else 4 if step > 0.04 else 2.5,
            markeredgecolor="white", markeredgewidth=0.4,
            zorder=3, label="a subset of its models" if is_first and size != of_all else None,
        )  # fmt: skip
        if size != of_all:
            population = summarize_population(shares[sizes == size])
            axes.errorbar(
                population.mean, row + 0.12, xerr=population.sd, color=INK, marker="|", markersize=9, linewidth=1.1,
                capsize=2,
                label="mean, one standard deviation to each side" if is_first else None,
            )  # fmt: skip
    counts = [int((sizes == size).sum()) for size in rows]
    labels = [
        f"all {size}" if size == of_all else f"{size}\n{n:,} subset{'s' * (n != 1)}"
        for size, n in zip(rows.tolist(), counts, strict=True)
    ]
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.65, -0.45)
    style_axes(axes)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("share of the prompts removed", fontsize=9)
    axes.set_ylabel("filter models", fontsize=9, color=INK)
    axes.spines["left"].set_color(FAINT)
    add_legend_below(figure, axes, 8)
    return figure


def _stacked(values: NDArray[np.float64], width: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where points stand that would cover each other: at the mean of their bin, one above the other.

    Args:
        values: ``(n,)`` ascending.
        width: of a bin.
    """
    bins = np.floor(values / width).astype(np.int64)
    _, first, counts = np.unique(bins, return_index=True, return_counts=True)
    heights = np.arange(len(values)) - np.repeat(first, counts)
    return np.repeat(np.add.reduceat(values, first) / counts, counts), heights.astype(np.float64)
