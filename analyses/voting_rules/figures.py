"""Pictures of several rules at work on the same scores: ranks, agreement, duels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.voting.rule_rankings import RuleAgreement
from analyses.numerics.elections.voting.rules import VotingRule
from analyses.voting_rules.method import VotingRules
from tracker.figures.canvas import (
    DIVERGING,
    FAINT,
    INK,
    SEQUENTIAL,
    SMALLEST_TEXT,
    add_explanation,
    create_figure,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ROWS = 100
"""Models that one picture of ranks shows."""
MAX_DUEL_MODELS = 25
"""Models that the picture of duels shows."""
MAX_WRITTEN_CELLS = 12
"""Up to this many models, each duel shows its number."""


def build_figures(finding: VotingRules) -> Mapping[str, Callable[[], Figure]]:
    """A function for each figure that draws it."""
    order = finding.display_order
    names = [finding.models[model] for model in order]
    ranks = {rule: outcome.ranks[order] for rule, outcome in finding.outcomes.items()}
    copeland_ranks = finding.outcomes["copeland"].ranks
    return {
        "ranks": lambda: draw_ranks(names, ranks, finding.display_rule),
        "agreement": lambda: draw_agreement(tuple(finding.outcomes), finding.agreements),
        "duels": lambda: draw_duels(finding.duels, finding.models, copeland_ranks),
    }


def draw_ranks(models: Sequence[str], ranks: Mapping[VotingRule, NDArray[np.float64]], rule: VotingRule) -> Figure:
    """The rank of each model by each rule.

    Args:
        models: in the order of the chosen rule.
        ranks: by rule, in the same order.
        rule: the chosen rule.
    """
    n_models, n_rows = len(models), min(len(models), MAX_ROWS)
    table = np.stack(list(ranks.values()), axis=1)
    row_height = 0.24 if n_rows <= 40 else 0.16
    figure = create_figure(
        3.4 + 0.42 * len(ranks), max(3.2, 1.9 + row_height * n_rows), "Rank of each model by each voting rule"
    )
    axes = figure.subplots()
    image = axes.imshow(
        table[:n_rows], cmap=f"{SEQUENTIAL}_r", vmin=1, vmax=max(n_models, 2), aspect="auto", interpolation="nearest"
    )
    size = 7.0 if n_rows <= 40 else SMALLEST_TEXT
    for i in range(n_rows):
        for j in range(len(ranks)):
            is_dark = table[i, j] > 0.55 * n_models
            is_first = table[i, j] == table[:, j].min()
            axes.text(
                j,
                i,
                f"{table[i, j]:g}",
                ha="center",
                va="center",
                fontsize=size,
                color="white" if is_dark else INK,
                fontweight="bold" if is_first else "normal",
            )
    _label_rows(axes, shorten(models[:n_rows]), SMALLEST_TEXT if n_rows > 40 else 7.5)
    axes.set_xticks(range(len(ranks)), list(ranks), rotation=40, ha="left", rotation_mode="anchor", fontsize=8)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.set_xlabel("rule", fontsize=9)
    truncated = f" (first {n_rows} of {n_models:,})" if n_rows < n_models else ""
    axes.set_ylabel(f"models, by {rule}{truncated}", fontsize=9)
    axes.axvline(list(ranks).index(rule) - 0.5, color=INK, linewidth=1.2)
    axes.axvline(list(ranks).index(rule) + 0.5, color=INK, linewidth=1.2)
    _draw_colour_bar(figure, image, axes, "rank (bold: first place)")
    return figure


def draw_agreement(rules: Sequence[VotingRule], agreements: Sequence[RuleAgreement]) -> Figure:
    """How far every two rules agree.

    Args:
        rules: in the order of rows and columns.
        agreements: of every two of them.
    """
    n = len(rules)
    shares = np.ones((n, n))
    is_same = np.zeros((n, n), dtype=bool)
    for pair in agreements:
        i, j = rules.index(pair.rule), rules.index(pair.other_rule)
        shares[i, j] = shares[j, i] = pair.agreement
        is_same[i, j] = is_same[j, i] = pair.is_by_definition
    lowest = min(0.9, float(np.floor(shares.min() * 10) / 10))
    figure = create_figure(3.2 + 0.43 * n, 2.2 + 0.43 * n, "How far each two voting rules agree")
    axes = figure.subplots()
    cells = np.ma.masked_array(shares, mask=np.eye(n, dtype=bool))
    image = axes.imshow(cells, cmap=f"{SEQUENTIAL}", vmin=lowest, vmax=1, interpolation="nearest")
    for i, j in zip(*np.nonzero(~np.eye(n, dtype=bool)), strict=True):
        is_dark = shares[i, j] < lowest + 0.55 * (1 - lowest)
        text = "100%" if shares[i, j] == 1 else f"{min(100 * shares[i, j], 99.9):.1f}"
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if is_dark else INK)
    _label_rows(axes, list(rules), 8)
    axes.set_xticks(range(n), list(rules), rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
    axes.tick_params(length=0)
    axes.set_xlabel("rule", fontsize=9)
    axes.set_ylabel("rule", fontsize=9)
    add_explanation(axes, "a pair that only one of the two rules ties counts half")
    _draw_colour_bar(figure, image, axes, "pairs of models in the same order", as_share=True)
    return figure


def draw_duels(duels: PairwiseDuels, models: Sequence[str], rank: NDArray[np.float64]) -> Figure:
    """Who wins how clearly against whom, among the first by duels won.

    Args:
        duels: of all models.
        models: names of columns.
        rank: ``(n_models,)`` by Copeland's rule.
    """
    order = np.lexsort((np.array(models), rank))[:MAX_DUEL_MODELS]
    n_shown = len(order)
    cell = 0.34 if n_shown <= MAX_WRITTEN_CELLS else 0.18
    margins, shared = duels.margins[np.ix_(order, order)], duels.shared[np.ix_(order, order)]
    shares = np.divide(margins, shared, out=np.zeros(margins.shape), where=shared > 0)
    side = min(4.4, cell * max(n_shown, 8))
    figure = create_figure(3.6 + side, 2.9 + side, "Which model wins on more tasks")
    axes = figure.subplots()
    hidden = np.eye(n_shown, dtype=bool) | (shared == 0)
    image = axes.imshow(
        np.ma.masked_array(shares, mask=hidden), cmap=f"{DIVERGING}", vmin=-1, vmax=1, interpolation="nearest"
    )
    for i, j in zip(*np.nonzero(~np.eye(n_shown, dtype=bool)), strict=True):
        is_strong = abs(shares[i, j]) > 0.6
        won, lost = duels.wins[order[i], order[j]], duels.wins[order[j], order[i]]
        text = f"{won}:{lost}" if n_shown <= MAX_WRITTEN_CELLS else ("" if margins[i, j] else "=")
        axes.text(j, i, text, ha="center", va="center", fontsize=SMALLEST_TEXT, color="white" if is_strong else INK)
    names = shorten([models[model] for model in order])
    _label_rows(axes, names, 7.5)
    axes.set_xticks(range(n_shown), names, rotation=90, fontsize=7.5)
    axes.tick_params(length=0)
    n_smith = int((duels.tiers[order] == 0).sum())
    if n_smith == len(duels.smith_set) and n_smith > 1 and (duels.tiers[order[:n_smith]] == 0).all():
        axes.plot([-0.5, n_smith - 0.5, n_smith - 0.5], [n_smith - 0.5, n_smith - 0.5, -0.5], color=INK, linewidth=1.6)
        add_explanation(axes, f"framed: the {n_smith} models caught in cycles or draws at the top")
    truncated = f" (first {n_shown} of {len(models):,})" if n_shown < len(models) else ""
    axes.set_ylabel(f"this model{truncated} …", fontsize=9)
    axes.set_xlabel("… against this one; by duels won", fontsize=9)
    _draw_colour_bar(figure, image, axes, "tasks won less tasks lost", as_share=True)
    return figure


def _label_rows(axes: Axes, names: Sequence[str], size: float) -> None:
    style_axes(axes)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_yticks(range(len(names)), list(names), fontsize=size)


def _draw_colour_bar(figure: Figure, image: Any, axes: Axes, label: str, *, as_share: bool = False) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7, color=FAINT)
    bar.outline.set_visible(False)
    if as_share:
        bar.ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
