"""Pictures of a benchmark as an election: models before and after the largest changes, and how far tasks disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.reranking import ChangedRanking, Reranking
from analyses.presentation.canvas import (
    DIVERGING,
    FAINT,
    INK,
    OBSERVED,
    SERIES,
    create_figure,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RISES, FALLS = SERIES[0], OBSERVED
"""Colours of a model that gains places and of one that loses some."""
ALL_NAMED = 40
"""Up to so many models, every one is named."""
MOVERS, LEADERS = 12, 3
"""Of more, these are named: who moves most, who leads before or after."""
COMMON = 8
"""Letters with which all names begin are left out from so many on."""
APART = 0.16
"""Inches between two names, at least."""
WRITTEN_CELLS = 20
"""Up to this many tasks, each cell says its number."""
ALL_TASKS = 80
"""Up to this many tasks are named."""


def slopes(r: Reranking, before: str, after: tuple[str, str], titles: tuple[str, str]) -> Figure:
    """Ranks before and after, one panel for each of the two largest changes.

    Args:
        r: models before and after.
        before: what the ranking is before.
        after: what it is after, for each panel.
        titles: what is largest, for each panel.
    """
    m = len(r.models)
    height = min(10.0, 1.4 + APART * max(m, 8)) if m <= ALL_NAMED else 8.5
    figure = create_figure(13.5, height)
    for axes, to, said, title in zip(figure.subplots(1, 2), (r.tau, r.mrc), after, titles, strict=True):
        _slope(axes, r, to, height)
        axes.set_xticks([0, 1], [before, said], fontsize=8)
        axes.set_title(title, fontsize=9, color=INK)
    return figure


def _slope(axes: Axes, r: Reranking, to: ChangedRanking, height: float) -> None:
    from matplotlib.collections import LineCollection

    m, end = len(r.models), to.change.after
    moves = end - r.rank
    named = _named(r.rank, end)
    colour = np.where(moves < 0, RISES, np.where(moves > 0, FALLS, FAINT))
    for chosen, width, alpha in ((~named, 0.6, min(0.35, 40 / m)), (named, 1.5, 0.9)):
        ends = [[(0, r.rank[i]), (1, end[i])] for i in np.flatnonzero(chosen)]
        thin = m <= ALL_NAMED
        axes.add_collection(
            LineCollection(ends, colors=colour[chosen], linewidths=1.2 if thin else width, alpha=0.8 if thin else alpha)
        )
    if m <= ALL_NAMED:
        axes.scatter(np.repeat([0, 1], m), np.concatenate([r.rank, end]), s=8, color=np.tile(colour, 2), zorder=3)
    size = label_font_size(m) if m <= ALL_NAMED else 6.5
    names = _told_apart(r.models)
    for x, ranks, side in ((0, r.rank, "right"), (1, end, "left")):
        shown = np.flatnonzero(named)
        places = _spread(ranks[shown], m, height)
        for i, place in zip(shown.tolist(), places.tolist(), strict=True):
            said = f"{names[i]}  {ranks[i]:g}" if x == 0 else f"{ranks[i]:g}  {names[i]}"
            beside = x + (0.06 if x else -0.06)
            axes.plot([x, beside], [ranks[i], place], color="#bbbbbb", linewidth=0.4, zorder=1)
            axes.text(beside, place, said, ha=side, va="center", fontsize=size, color=INK)
    axes.set_xlim(-1.4, 2.4)
    axes.set_ylim(m + 0.8, 0.2)
    axes.set_ylabel("rank, 1 is best; blue rises, vermilion falls", fontsize=8)
    style_axes(axes)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _named(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whose names are written: all of few models, of many those who move most or lead."""
    m = len(before)
    if m <= ALL_NAMED:
        return np.ones(m, dtype=np.bool_)
    named = np.zeros(m, dtype=np.bool_)
    named[np.argsort(-np.abs(after - before), kind="stable")[:MOVERS]] = True
    for ranks in (before, after):
        named[np.argsort(ranks, kind="stable")[:LEADERS]] = True
    return named


def _spread(ranks: NDArray[np.float64], m: int, height: float) -> NDArray[np.float64]:
    """Where names are written, so that none covers another: as near to their ranks as that allows."""
    apart = (m + 0.6) * APART * 0.9 / (height - 1.4)
    order = np.argsort(ranks, kind="stable")
    _, group, sizes = np.unique(ranks, return_inverse=True, return_counts=True)
    within = np.arange(len(ranks)) - (np.cumsum(sizes) - sizes)[group[order]]
    # Those that share a rank stand around it.
    places = ranks[order] + apart * (within - (sizes[group[order]] - 1) / 2)
    places[0] = max(places[0], 0.7)
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + apart)
    lowest = m + 0.3
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], lowest - apart * (len(places) - 1 - i))
    found = np.empty(len(places))
    found[order] = places
    return found


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names that fit, without a long beginning, and then the end, that all of them have."""
    head = _in_common(names)
    if head < COMMON:
        return shorten(names, 30)
    rest = [name[head:] for name in names]
    tail = _in_common([name[::-1] for name in rest])
    rest = [name[: len(name) - tail] for name in rest]
    return shorten([f"…{name}" for name in rest] if all(rest) else names, 30)


def _in_common(names: Sequence[str]) -> int:
    """With how many letters all names begin."""
    letters = list(zip(*names, strict=False))
    return next((i for i, those in enumerate(letters) if len(set(those)) > 1), len(letters))


def distances(tasks: Sequence[str], D: NDArray[np.float64]) -> Figure:
    """How far each two tasks disagree, the task that agrees most with the others first.

    Args:
        tasks: name of each row and column.
        D: ``(n_tasks, n_tasks)`` share of pairs of models in opposite order; NaN where there is no such pair.
    """
    n = len(tasks)
    known = ~np.isnan(D)
    mean = np.where(known, D, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    order = np.argsort(np.where(known.any(axis=1), mean, np.inf), kind="stable")
    shown = np.ma.masked_array(D[np.ix_(order, order)], mask=~known[np.ix_(order, order)] | np.eye(n, dtype=np.bool_))
    side = float(np.clip((0.32 if n <= WRITTEN_CELLS else 0.13) * n, 2.2, 9.0))
    figure = create_figure(side + 3.4, side + 2.4)
    axes = figure.subplots()
    image = axes.imshow(shown, cmap=DIVERGING, vmin=0, vmax=1, interpolation="nearest")
    style_axes(axes)
    axes.tick_params(length=0)
    names = _told_apart([tasks[i] for i in order.tolist()])
    if n <= ALL_TASKS:
        axes.set_yticks(np.arange(n), names, fontsize=label_font_size(n))
        axes.set_xticks(np.arange(n), names, fontsize=label_font_size(n), rotation=90)
    else:
        axes.set_ylabel("tasks, those that agree most with the others first", fontsize=9)
    axes.set_xlabel("task, in the same order", fontsize=9)
    if n <= WRITTEN_CELLS:
        for i, j in zip(*np.nonzero(~np.ma.getmaskarray(shown)), strict=True):
            ink: Any = "white" if abs(shown[i, j] - 0.5) > 0.3 else INK
            axes.text(j, i, f"{shown[i, j]:.0%}", ha="center", va="center", fontsize=6, color=ink)
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02)
    bar.set_label("share of pairs of models in opposite order; 0.5: unrelated", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure
