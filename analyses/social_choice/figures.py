"""Pictures of a benchmark as an election: models before and after the largest changes, and how far tasks disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.concordance import task_distances
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange, OrdinalSensitivity
from analyses.numerics.elections.reranking import ChangedRanking, Reranking
from analyses.numerics.elections.sensitivity_results import CardinalResult, OrdinalResult
from analyses.social_choice.method import SocialChoice
from analyses.social_choice.summary import count_changes, max_changes
from tracker.figures.canvas import (
    DIVERGING,
    FAINT,
    INK,
    OBSERVED,
    SERIES,
    SMALLEST_TEXT,
    create_figure,
    label_cells,
    label_font_size,
    shorten,
    style_axes,
)
from tracker.queries.task_matrix import TaskMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RISES, FALLS = SERIES[0], OBSERVED
"""Colours of a model that gains places and of one that loses some."""
MAX_LABELLED_MODELS = 40
"""Up to so many models, every one is named."""
N_MOVERS, N_LEADERS = 12, 3
"""Of more, these are named: who moves most, who leads before or after."""
MIN_COMMON_PREFIX = 8
"""Letters with which all names begin are left out from so many on."""
LABEL_DISTANCE = 0.16
"""Inches between two names, at least."""
MAX_WRITTEN_CELLS = 14
"""Up to this many tasks, each cell shows its number."""
MAX_LABELLED_TASKS = 80
"""Up to this many tasks are named."""


def build_figures(finding: SocialChoice, table: TaskMatrix) -> Mapping[str, Callable[[], Figure]]:
    """A function for each figure that draws it.

    Args:
        finding: the result.
        table: the scores as they were loaded.
    """
    figures: dict[str, Callable[[], Figure]] = {}
    if isinstance(finding.cardinal, CardinalResult):
        figures["cardinal_ranking"] = partial(_draw_cardinal, finding.cardinal)
    if finding.ordinal:
        figures["ordinal_ranking"] = partial(_draw_ordinal, finding.ordinal)
    if table.n_tasks > 1:
        figures["task_distances"] = lambda: draw_task_distances(table.tasks, task_distances(table.T))
    return figures


def _draw_cardinal(result: CardinalResult) -> Figure:
    after = "by a weighted mean"
    title = "The largest changes of the ranking that other weights of tasks make"
    return draw_rankings(result.reranking, "by mean", (after, after), _panel_titles(result.sensitivity), title)


def _draw_ordinal(result: OrdinalResult) -> Figure:
    sensitivity, before = result.sensitivity, "by win rate\namong themselves"
    title = "The largest changes of the ranking that added models make"
    return draw_rankings(result.reranking, before, _addition_labels(sensitivity), _panel_titles(sensitivity), title)


def _panel_titles(sensitivity: CardinalSensitivity | OrdinalSensitivity) -> tuple[str, str]:
    """What the two panels show: each change in counts, and how sure it is that nothing does more."""
    n_models = len(sensitivity.before)
    return _panel_title(sensitivity.tau, "tau", n_models), _panel_title(sensitivity.mrc, "mrc", n_models)


def _panel_title(change: LargestChange, measure: str, n_models: int) -> str:
    label, unit = ("most reversals", "pairs") if measure == "tau" else ("largest change of rank", "places")
    bound = f"at most {count_changes(change.upper_bound, measure, n_models):,g}"
    value, most = count_changes(change.value, measure, n_models), max_changes(measure, n_models)
    return f"{label}: {value:,g} of {most:,} {unit} ({'proven' if change.is_exact else bound})"


def _addition_labels(sensitivity: OrdinalSensitivity) -> tuple[str, str]:
    """What models are ranked by after each change."""
    counts = (int(change.witness.sum()) for change in (sensitivity.tau, sensitivity.mrc))
    first, second = (f"with {count}\nmodel{'s' * (count != 1)} added" for count in counts)
    return first, second


def draw_rankings(
    reranking: Reranking, before: str, after: tuple[str, str], titles: tuple[str, str], title: str
) -> Figure:
    """Ranks before and after, one panel for each of the two largest changes.

    Args:
        reranking: models before and after.
        before: what the ranking is before.
        after: what it is after, for each panel.
        titles: what is largest, for each panel.
        title: of the figure.
    """
    n_models = len(reranking.models)
    height = min(10.0, 1.4 + LABEL_DISTANCE * max(n_models, 8)) if n_models <= MAX_LABELLED_MODELS else 6.0
    figure = create_figure(7.5, 2 * height, title)
    changes = (reranking.tau, reranking.mrc)
    for axes, changed, label, largest in zip(figure.subplots(2, 1), changes, after, titles, strict=True):
        _draw_slopes(axes, reranking, changed, height)
        axes.set_xticks([0, 1], [before, label], fontsize=8)
        axes.set_title(largest, fontsize=9, color=INK)
    return figure


def _draw_slopes(axes: Axes, reranking: Reranking, changed: ChangedRanking, height: float) -> None:
    from matplotlib.collections import LineCollection

    before, after, n_models = reranking.rank, changed.change.ranks_after, len(reranking.models)
    is_small = n_models <= MAX_LABELLED_MODELS
    moves = after - before
    is_labelled = _choose_labelled(before, after)
    colour = np.where(moves < 0, RISES, np.where(moves > 0, FALLS, FAINT))
    for chosen, width, alpha in ((~is_labelled, 0.6, min(0.35, 40 / n_models)), (is_labelled, 1.5, 0.9)):
        segments = [[(0, before[i]), (1, after[i])] for i in np.flatnonzero(chosen)]
        axes.add_collection(
            LineCollection(
                segments,
                colors=colour[chosen],
                linewidths=1.2 if is_small else width,
                alpha=0.8 if is_small else alpha,
            )
        )
    if is_small:
        axes.scatter(
            np.repeat([0, 1], n_models), np.concatenate([before, after]), s=8, color=np.tile(colour, 2), zorder=3
        )
    _label_models(axes, reranking, changed, np.flatnonzero(is_labelled), height)
    axes.set_xlim(-1.4, 2.4)
    axes.set_ylim(n_models + 0.8, 0.2)
    axes.set_ylabel("rank, 1 is best; blue rises, vermilion falls", fontsize=8)
    style_axes(axes)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _label_models(
    axes: Axes, reranking: Reranking, changed: ChangedRanking, labelled: NDArray[np.int64], height: float
) -> None:
    """Write names and ranks on both sides."""
    n_models = len(reranking.models)
    size = label_font_size(n_models) if n_models <= MAX_LABELLED_MODELS else 6.5
    names = _strip_common_parts(reranking.models)
    for x, ranks, side in ((0, reranking.rank, "right"), (1, changed.change.ranks_after, "left")):
        positions = _spread_labels(ranks[labelled], n_models, height)
        for i, position in zip(labelled.tolist(), positions.tolist(), strict=True):
            text = f"{names[i]}  {ranks[i]:g}" if x == 0 else f"{ranks[i]:g}  {names[i]}"
            label_x = x + (0.06 if x else -0.06)
            axes.plot([x, label_x], [ranks[i], position], color="#bbbbbb", linewidth=0.4, zorder=1)
            axes.text(label_x, position, text, ha=side, va="center", fontsize=size, color=INK)


def _choose_labelled(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whose names are written: all of few models, of many those who move most or lead."""
    n_models = len(before)
    if n_models <= MAX_LABELLED_MODELS:
        return np.ones(n_models, dtype=np.bool_)
    is_labelled = np.zeros(n_models, dtype=np.bool_)
    is_labelled[np.argsort(-np.abs(after - before), kind="stable")[:N_MOVERS]] = True
    for ranks in (before, after):
        is_labelled[np.argsort(ranks, kind="stable")[:N_LEADERS]] = True
    return is_labelled


def _spread_labels(ranks: NDArray[np.float64], n_models: int, height: float) -> NDArray[np.float64]:
    """Where names are written, so that none covers another: as near to their ranks as that allows."""
    distance = (n_models + 0.6) * LABEL_DISTANCE * 0.9 / (height - 1.4)
    order = np.argsort(ranks, kind="stable")
    _, group, sizes = np.unique(ranks, return_inverse=True, return_counts=True)
    within = np.arange(len(ranks)) - (np.cumsum(sizes) - sizes)[group[order]]
    # Those that share a rank stand around it.
    positions = ranks[order] + distance * (within - (sizes[group[order]] - 1) / 2)
    positions[0] = max(positions[0], 0.7)
    for i in range(1, len(positions)):
        positions[i] = max(positions[i], positions[i - 1] + distance)
    lowest = n_models + 0.3
    for i in range(len(positions) - 1, -1, -1):
        positions[i] = min(positions[i], lowest - distance * (len(positions) - 1 - i))
    spread = np.empty(len(positions))
    spread[order] = positions
    return spread


def _strip_common_parts(names: Sequence[str]) -> list[str]:
    """Names that fit, without a long beginning, and then the end, that all of them have."""
    n_prefix = _common_prefix_length(names)
    if n_prefix < MIN_COMMON_PREFIX:
        return shorten(names, 30)
    suffixes = [name[n_prefix:] for name in names]
    n_suffix = _common_prefix_length([name[::-1] for name in suffixes])
    parts = [name[: len(name) - n_suffix] for name in suffixes]
    return shorten([f"…{name}" for name in parts] if all(parts) else names, 30)


def _common_prefix_length(names: Sequence[str]) -> int:
    """With how many letters all names begin."""
    columns = list(zip(*names, strict=False))
    return next((i for i, letters in enumerate(columns) if len(set(letters)) > 1), len(columns))


def draw_task_distances(tasks: Sequence[str], D: NDArray[np.float64]) -> Figure:
    """How far each two tasks disagree, the task that agrees most with the others first.

    Args:
        tasks: name of each row and column.
        D: ``(n_tasks, n_tasks)`` share of pairs of models in opposite order; NaN where there is no such pair.
    """
    n = len(tasks)
    known = ~np.isnan(D)
    mean = np.where(known, D, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    order = np.argsort(np.where(known.any(axis=1), mean, np.inf), kind="stable")
    cells = np.ma.masked_array(D[np.ix_(order, order)], mask=~known[np.ix_(order, order)] | np.eye(n, dtype=np.bool_))
    side = float(np.clip(0.32 * n, 2.2, 4.6))
    figure = create_figure(side + 3.4, side + 2.4, "How far each two tasks disagree in their rankings")
    axes = figure.subplots()
    image = axes.imshow(cells, cmap=DIVERGING, vmin=0, vmax=1, interpolation="nearest")
    style_axes(axes)
    axes.tick_params(length=0)
    names = _strip_common_parts([tasks[i] for i in order.tolist()])
    if n <= MAX_LABELLED_TASKS:
        label_cells(axes.yaxis, names, side)
        label_cells(axes.xaxis, names, side)
    else:
        axes.set_ylabel("tasks, those that agree most with the others first", fontsize=9)
    axes.set_xlabel("task, in the same order", fontsize=9)
    if n <= MAX_WRITTEN_CELLS:
        for i, j in zip(*np.nonzero(~np.ma.getmaskarray(cells)), strict=True):
            ink: Any = "white" if abs(cells[i, j] - 0.5) > 0.3 else INK
            axes.text(j, i, f"{cells[i, j]:.0%}", ha="center", va="center", fontsize=SMALLEST_TEXT, color=ink)
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02)
    bar.set_label("share of pairs of models in opposite order; 0.5: unrelated", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure
