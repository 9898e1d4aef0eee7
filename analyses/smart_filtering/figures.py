"""Figures of a filter: agreement, scores and ranks of models, and the share of each task removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.agreement import ModelAgreement, RandomAgreement
from analyses.numerics.filtering.effects.ranking_change import RankingChange
from analyses.numerics.filtering.effects.removal_parts import count_by_task, split_removed
from analyses.numerics.filtering.step_flags import StepFlags
from analyses.smart_filtering.method import SmartFiltering
from tracker.figures.canvas import (
    DRAWN,
    FAINT,
    INK,
    OBSERVED,
    SEQUENTIAL,
    SERIES,
    create_figure,
    label_cells,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SIDE, MEANS_HEIGHT = 4.6, 1.5
"""Inches: a side of the heat map at most, and the height of the means."""
NAMED_MODELS = 120
"""Up to this many models, rows of the heat map have labels."""
WRITTEN_CELLS = 12
"""Up to this many models, each cell shows its number."""
MAX_MODELS, MAX_TASKS = 120, 100
"""Rows that one picture of models, and of tasks, shows."""
BINS = 25
"""Of the random subsets' means."""


def list_figures(
    finding: SmartFiltering, tasks: NDArray[np.str_], is_filter_model: NDArray[np.bool_]
) -> dict[str, Callable[[], Figure]]:
    """Return all figures of a filter, by their names; those of a step only where it was applied.

    Args:
        finding: the filter.
        tasks: ``(n_prompts,)`` name of each prompt's task.
        is_filter_model: ``(n_models,)`` of the ranked models.
    """
    effects, models = finding.effects, finding.models
    best = np.argsort(-effects.ranking.score_before, kind="stable")
    answer_word = "answer" if finding.agreement_of == "answers" else "outcome"
    heatmaps = partial(draw_agreement, models, effects.before, effects.after, effects.random, answer_word, order=best)
    figures: dict[str, Callable[[], Figure]] = {
        "accuracy": lambda: draw_accuracy(models, effects.ranking, is_filter_model),
        "agreement": lambda: heatmaps(measure="share"),
        "kappa": lambda: heatmaps(measure="kappa"),
        "tasks": lambda: draw_shares_by_task(tasks, finding.steps, finding.kept),
    }
    for result in finding.results.values():
        figures |= result.figures
    return figures


def draw_agreement(
    names: Sequence[str],
    before: ModelAgreement,
    after: ModelAgreement,
    random: RandomAgreement | None,
    answer_word: str,
    *,
    measure: Literal["share", "kappa"] = "share",
    order: NDArray[np.int64] | None = None,
) -> Figure:
    """Draw the agreement of every two models: on all prompts above the diagonal, on the kept ones below it.

    Args:
        names: of the models.
        before, after: their agreement on all and on the kept prompts, in the same order.
        random: means over the pairs in random subsets as large as the kept one, drawn below; None for none.
        answer_word: models agree in, such as "answers".
        measure: what is shown.
        order: places of the models, best first, from the first row down; as they are by default.
    """
    k = len(names)
    rows = np.arange(k) if order is None else order
    share_before, share_after = (getattr(measured, measure)[np.ix_(rows, rows)] for measured in (before, after))
    table = _off_diagonal(np.triu(share_before) + np.tril(share_after, -1))
    low, high = _range(table.compressed(), measure)
    side = min(MAX_SIDE, max(2.3, 0.4 * k))
    height = side + (2.2 if k <= NAMED_MODELS else 0.9)
    title = {"share": "Prompts on which two models agree", "kappa": "Agreement of two models beyond chance"}[measure]
    below = 0.0 if random is None else MEANS_HEIGHT
    figure = create_figure(side + 3.4, height + below, f"{title}, before and after the filter")
    parts: Any = None if random is None else figure.subfigures(2, 1, height_ratios=[height, below])
    top = figure if parts is None else parts[0]
    axes = top.subplots()
    image = axes.imshow(table, cmap=SEQUENTIAL, vmin=low, vmax=high, interpolation="nearest")
    means = [getattr(measured, f"mean_{measure}") for measured in (before, after)]
    written = [_written(mean, measure) for mean in means]
    axes.set_title(
        f"above the diagonal: all prompts, mean {written[0]}\nbelow: kept prompts, mean {written[1]}",
        fontsize=9,
        color=INK,
    )
    style_axes(axes)
    axes.spines[["left", "bottom"]].set_visible(False)
    for axis in (axes.yaxis, axes.xaxis):
        label_cells(axis, [names[row] for row in rows.tolist()] if k <= NAMED_MODELS else [], side, 26)
    axes.set_xlabel("models" if k <= NAMED_MODELS else f"{k:,} models", fontsize=9)
    axes.set_ylabel("models" if order is None else "models, best first", fontsize=9)
    if k <= WRITTEN_CELLS:
        _write_cells(axes, table, (low + high) / 2, measure)
    bar = top.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
    label = {"share": "prompts on which two models agree", "kappa": "Cohen's kappa of two models"}[measure]
    bar.set_label(f"{label} ({answer_word})", fontsize=8)
    bar.ax.tick_params(labelsize=7, color=FAINT)
    bar.outline.set_visible(False)
    if measure == "share":
        bar.ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    if parts is not None and random is not None:
        _means(parts[1].subplots(), means, getattr(random, measure), measure)
    return figure


def _off_diagonal(values: NDArray[np.float64]) -> Any:
    """Mask the diagonal and undefined values."""
    return np.ma.masked_array(values, mask=np.eye(len(values), dtype=bool) | np.isnan(values))


def _range(values: NDArray[np.float64], measure: str) -> tuple[float, float]:
    """Ends of the colour scale, whole tenths."""
    if not values.size:
        return 0.0, 1.0
    low, high = float(np.floor(values.min() * 10) / 10), float(np.ceil(values.max() * 10) / 10)
    return (low, high) if high > low else (low - 0.1 * (low > 0 or measure == "kappa"), high + 0.1 * (high < 1))


def _written(value: float, measure: str) -> str:
    if np.isnan(value):
        return "none"
    return f"{value:.1%}" if measure == "share" else f"{value:.3f}"


def _write_cells(axes: Axes, table: Any, middle: float, measure: str) -> None:
    for i, j in zip(*np.nonzero(~np.ma.getmaskarray(table)), strict=True):
        text = f"{100 * table[i, j]:.0f}" if measure == "share" else f"{table[i, j]:.2f}"
        color = "white" if table[i, j] < middle else INK
        axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color=color)


def _means(axes: Axes, means: Sequence[float], drawn: NDArray[np.float64], measure: str) -> None:
    """Draw the two means on one line with those of random subsets."""
    style_axes(axes)
    known = drawn[~np.isnan(drawn)]
    if known.size:
        share, edges = np.histogram(known, bins=BINS if np.ptp(known) > 0 else 1)
        axes.stairs(
            share / share.max(), edges, fill=True, color=DRAWN, label=f"{len(known):,} random subsets of as many"
        )
    for mean, color, name in ((means[0], INK, "all prompts"), (means[1], OBSERVED, "kept prompts")):
        axes.plot([mean, mean], [0, 1.15], color=color, linewidth=1.6, label=name)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(0, 1.2)
    axes.margins(x=0.1)
    axes.set_xlabel("mean over pairs of models", fontsize=8)
    if measure == "share":
        axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)


def draw_accuracy(
    names: Sequence[str], change: RankingChange, is_filter_model: NDArray[np.bool_], *, metric: str = "score"
) -> Figure:
    """Draw each model's score on all prompts and on the kept ones, with both ranks; the best before first.

    Args:
        names: of the models.
        change: in the same order.
        is_filter_model: ``(n_models,)`` which of them are marked.
        metric: what the scores are.
    """
    order = np.lexsort((np.array(names), change.rank_before))[:MAX_MODELS]
    k, n = len(order), len(names)
    rows = np.arange(k)
    size = label_font_size(k)
    figure = create_figure(
        7.6,
        max(3.0, 1.6 + (0.27 if k <= 20 else 0.2 if k <= 40 else 0.14) * k),
        "Mean and rank of each model, before and after the filter",
    )
    axes = figure.subplots()
    before, after = change.score_before[order], change.score_after[order]
    marked = is_filter_model[order]
    axes.hlines(rows, before, after, color=FAINT, linewidth=0.9, zorder=1)
    dot = 26 if k <= 40 else 11
    for values, color, name in ((before, DRAWN, "all prompts"), (after, OBSERVED, "kept prompts")):
        axes.scatter(values[~marked], rows[~marked], s=dot, color=color, zorder=2, label=name)
        axes.scatter(
            values[marked], rows[marked], s=dot, color=color, marker="D", zorder=2, edgecolors=INK, linewidths=0.8
        )
    if marked.any():
        axes.scatter([], [], s=26, color="white", marker="D", edgecolors=INK, linewidths=0.8, label="filter model")
    axes.set_yticks(rows, shorten([names[place] for place in order.tolist()]), fontsize=size)
    for label, is_marked in zip(axes.get_yticklabels(), marked, strict=True):
        label.set_fontweight("bold" if is_marked else "normal")
    axes.set_ylim(k - 0.4, -0.6)
    for row, place in enumerate(order.tolist()):
        text, color = _ranks(change.rank_before[place], change.rank_after[place])
        axes.annotate(
            text, (1.02, row), xycoords=("axes fraction", "data"), fontsize=size, color=color, va="center",
            annotation_clip=False,
        )  # fmt: skip
    axes.annotate(
        "rank", (1.02, 1.0), xycoords="axes fraction", xytext=(0, 3), textcoords="offset points", fontsize=8, color=INK
    )
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=size, length=0)
    axes.set_xlabel(f"mean {metric}", fontsize=9)
    of = f" (first {k} of {n:,})" if k < n else ""
    axes.set_ylabel(f"models, by rank on all prompts{of}", fontsize=9)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _ranks(before: float, after: float) -> tuple[str, str]:
    """Both ranks and the direction between them, with a colour for each."""
    if np.isnan(before) or np.isnan(after) or before == after:
        return ("" if np.isnan(before) else f"{before:g}"), FAINT
    return f"{before:g} → {after:g} {'▲' if after < before else '▼'}", SERIES[0] if after < before else SERIES[1]


def draw_shares_by_task(tasks: NDArray[np.str_], steps: Mapping[str, StepFlags], kept: NDArray[np.bool_]) -> Figure:
    """Draw the share of each task's prompts removed, the largest first, by the steps that remove them.

    Args:
        tasks: ``(n_prompts,)`` name of each prompt's task; '' is shown as "no task".
        steps: by name, at least one; those that remove nothing are not shown.
        kept: ``(n_prompts,)`` what they leave.
    """
    names, n, removed = count_by_task(tasks, {**split_removed(steps), "": ~kept})
    gone = removed.pop("")
    total = gone / n
    order = np.lexsort((names, -total))[:MAX_TASKS]
    k = len(order)
    rows = np.arange(k)
    figure = create_figure(
        7.6,
        max(2.6, 1.7 + (0.24 if k <= 20 else 0.19 if k <= 40 else 0.155) * k),
        "Share of each task's prompts that the filter removes, by step",
    )
    axes = figure.subplots()
    start = np.zeros(k)
    colors = {name: color for name, color in zip(removed, cycle(SERIES)) if removed[name].any()}
    for name, color in colors.items():
        share = (removed[name] / n)[order]
        axes.barh(rows, share, left=start, height=0.78, color=color, label=name.replace("_", " "))
        start += share
    size = label_font_size(k)
    axes.set_yticks(rows, [name or "no task" for name in shorten([names[place] for place in order.tolist()], 44)])
    for row, place in enumerate(order.tolist()):
        axes.annotate(
            f"{total[place]:.1%}  ({gone[place]:,} of {n[place]:,})", (start[row], row), xytext=(3, 0),
            textcoords="offset points", fontsize=size, color=INK, va="center",
        )  # fmt: skip
    axes.set_ylim(k - 0.4, -0.6)
    widest = max(float(total.max(initial=0.0)), 0.01)
    axes.set_xlim(0, 1.4 * widest)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= min(1.0, 1.4 * widest)])
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    style_axes(axes)
    axes.tick_params(axis="y", labelsize=size, length=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
    axes.set_xlabel("share of the task's prompts removed", fontsize=9)
    axes.set_ylabel(f"tasks (first {k} of {len(n):,})" if k < len(n) else "tasks", fontsize=9)
    if colors:
        figure.legend(loc="outside lower center", ncols=min(len(colors), 4), frameon=False, fontsize=8)
    return figure
