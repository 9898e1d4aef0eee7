"""Pictures of several rules at work on the same scores: ranks, agreement, duels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.voting.rule_rankings import RuleAgreement
from analyses.numerics.elections.voting.rules import VotingRule
from analyses.presentation.canvas import (
    DIVERGING,
    FAINT,
    INK,
    SEQUENTIAL,
    create_figure,
    label_font_size,
    shorten,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 100
"""Models that one picture of ranks shows."""
MOST_DUELLISTS = 25
"""Models that the picture of duels shows."""
WRITTEN_CELLS = 16
"""Up to so many models, each duel says its number."""


def ranks(models: Sequence[str], found: Mapping[VotingRule, NDArray[np.float64]], rule: VotingRule) -> Figure:
    """The rank of each model by each rule.

    Args:
        models: in the order of the rule at hand.
        found: ranks by rule, in the same order.
        rule: the rule at hand.
    """
    n, shown = len(models), min(len(models), MOST_ROWS)
    table = np.stack(list(found.values()), axis=1)
    rows = 0.24 if shown <= 40 else 0.16
    figure = create_figure(3.6 + 0.5 * len(found), max(3.2, 1.9 + rows * shown))
    axes = figure.subplots()
    image = axes.imshow(
        table[:shown], cmap=f"{SEQUENTIAL}_r", vmin=1, vmax=max(n, 2), aspect="auto", interpolation="nearest"
    )
    size = 7.0 if shown <= 40 else 5.0
    for i in range(shown):
        for j in range(len(found)):
            dark = table[i, j] > 0.55 * n
            is_first = table[i, j] == table[:, j].min()
            axes.text(
                j,
                i,
                f"{table[i, j]:g}",
                ha="center",
                va="center",
                fontsize=size,
                color="white" if dark else INK,
                fontweight="bold" if is_first else "normal",
            )
    _label(axes, shorten(models[:shown]), label_font_size(shown) if shown > 40 else 7.5)
    axes.set_xticks(range(len(found)), list(found), rotation=40, ha="left", rotation_mode="anchor", fontsize=8)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.set_xlabel("rule", fontsize=9)
    of = f" (first {shown} of {n:,})" if shown < n else ""
    axes.set_ylabel(f"models, by {rule}{of}", fontsize=9)
    axes.axvline(list(found).index(rule) - 0.5, color=INK, linewidth=1.2)
    axes.axvline(list(found).index(rule) + 0.5, color=INK, linewidth=1.2)
    _bar(figure, image, axes, "rank (bold: first place)")
    return figure


def agreement(rules: Sequence[VotingRule], found: Sequence[RuleAgreement]) -> Figure:
    """How far every two rules agree.

    Args:
        rules: in the order of rows and columns.
        found: for every two of them.
    """
    n = len(rules)
    shares = np.ones((n, n))
    same = np.zeros((n, n), dtype=bool)
    for one in found:
        i, j = rules.index(one.rule), rules.index(one.other_rule)
        shares[i, j] = shares[j, i] = one.agreement
        same[i, j] = same[j, i] = one.is_by_definition
    least = min(0.9, float(np.floor(shares.min() * 10) / 10))
    figure = create_figure(3.4 + 0.5 * n, 2.2 + 0.5 * n)
    axes = figure.subplots()
    shown = np.ma.masked_array(shares, mask=np.eye(n, dtype=bool))
    image = axes.imshow(shown, cmap=f"{SEQUENTIAL}", vmin=least, vmax=1, interpolation="nearest")
    for i, j in zip(*np.nonzero(~np.eye(n, dtype=bool)), strict=True):
        dark = shares[i, j] < least + 0.55 * (1 - least)
        said = "100%" if shares[i, j] == 1 else f"{min(100 * shares[i, j], 99.9):.1f}"
        axes.text(j, i, said, ha="center", va="center", fontsize=7, color="white" if dark else INK)
    _label(axes, list(rules), 8)
    axes.set_xticks(range(n), list(rules), rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
    axes.tick_params(length=0)
    axes.set_xlabel("rule", fontsize=9)
    axes.set_ylabel("rule", fontsize=9)
    axes.set_title("a pair that only one of the two rules ties counts half", fontsize=8, color=INK)
    _bar(figure, image, axes, "pairs of models in the same order", as_share=True)
    return figure


def duels(found: PairwiseDuels, models: Sequence[str], rank: NDArray[np.float64]) -> Figure:
    """Who wins how clearly against whom, among the first by duels won.

    Args:
        found: all duels.
        models: names of columns.
        rank: ``(n_models,)`` by Copeland's rule.
    """
    order = np.lexsort((np.array(models), rank))[:MOST_DUELLISTS]
    k = len(order)
    margins, shared = found.margins[np.ix_(order, order)], found.shared[np.ix_(order, order)]
    shares = np.divide(margins, shared, out=np.zeros(margins.shape), where=shared > 0)
    figure = create_figure(3.6 + 0.34 * max(k, 8), 2.9 + 0.34 * max(k, 8))
    axes = figure.subplots()
    hidden = np.eye(k, dtype=bool) | (shared == 0)
    image = axes.imshow(
        np.ma.masked_array(shares, mask=hidden), cmap=f"{DIVERGING}", vmin=-1, vmax=1, interpolation="nearest"
    )
    for i, j in zip(*np.nonzero(~np.eye(k, dtype=bool)), strict=True):
        far = abs(shares[i, j]) > 0.6
        won, lost = found.wins[order[i], order[j]], found.wins[order[j], order[i]]
        said = f"{won}:{lost}" if k <= WRITTEN_CELLS else ("" if margins[i, j] else "=")
        axes.text(j, i, said, ha="center", va="center", fontsize=6, color="white" if far else INK)
    names = shorten([models[model] for model in order])
    _label(axes, names, 7.5)
    axes.set_xticks(range(k), names, rotation=90, fontsize=7.5)
    axes.tick_params(length=0)
    n_smith = int((found.tiers[order] == 0).sum())
    if n_smith == len(found.smith_set) and n_smith > 1 and (found.tiers[order[:n_smith]] == 0).all():
        axes.plot([-0.5, n_smith - 0.5, n_smith - 0.5], [n_smith - 0.5, n_smith - 0.5, -0.5], color=INK, linewidth=1.6)
        axes.set_title(f"framed: the {n_smith} models caught in cycles or draws at the top", fontsize=8, color=INK)
    of = f" (first {k} of {len(models):,})" if k < len(models) else ""
    axes.set_ylabel(f"this model{of} …", fontsize=9)
    axes.set_xlabel("… against this one; by duels won", fontsize=9)
    _bar(figure, image, axes, "tasks won less tasks lost", as_share=True)
    return figure


def _label(axes: Axes, names: Sequence[str], size: float) -> None:
    style_axes(axes)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_yticks(range(len(names)), list(names), fontsize=size)


def _bar(figure: Figure, image: Any, axes: Axes, label: str, *, as_share: bool = False) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7, color=FAINT)
    bar.outline.set_visible(False)
    if as_share:
        bar.ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
