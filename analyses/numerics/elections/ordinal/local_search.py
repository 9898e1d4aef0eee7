"""Local search for the models to add: one at a time, in or out, as long as more is gained.

What is gained is smoothed at first: a pair counts by how far it is from the order wanted, up to a width, and the width
shrinks until pairs just count. Counting from the start ends early, far from any pair that is about to turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.ordinal.added_models import Additions, WinTotals

BLOCK = 1 << 16
"""Cells looked at before the best flip among them is made."""
GAP_WIDTHS = (0.3, 0.1, 0.03)
"""In mean distances of the pairs at the start; after these, pairs are counted."""
_MIN_GAIN = 1e-9
"""A flip must lower the shortfall by this share: above `TIE_TOLERANCE`, as running totals gather rounding."""


@dataclass(frozen=True, kw_only=True)
class PairGoal:
    """Pairs of leading models that should come to stand in this order.

    Attributes:
        behind: ``(r,)`` who should have the smaller total.
        ahead: ``(r,)`` who should have the larger total.
        allows_tie: ``(r,)`` whether equal totals are enough.
    """

    behind: NDArray[np.int64]
    ahead: NDArray[np.int64]
    allows_tie: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.behind)


def maximize_met_pairs(
    additions: Additions, goal: PairGoal, starts: Iterable[NDArray[np.bool_]], *, budget: float
) -> tuple[NDArray[np.bool_] | None, int, float]:
    """Additions after which as many pairs as were found stand in the order wanted; nothing random, no clock.

    Args:
        additions: who leads and who may be added.
        goal: at least one pair.
        starts: ``(l,)`` each, tried in turn.
        budget: cells that may be looked at.

    Returns:
        The additions, how many pairs they bring into order, and the budget that is left.
    """
    limits = np.where(goal.allows_tie, additions.tolerance, -additions.tolerance)[:, None]
    best: NDArray[np.bool_] | None = None
    n_most_met = -1
    for start in starts:
        if budget <= 0 and best is not None:
            break
        totals = additions.initial_totals(start)
        typical = float(np.abs(_gaps(totals.totals[:, None], goal, limits)).mean())
        stages = [typical * width for width in GAP_WIDTHS] + [additions.tolerance]
        for left, width in zip(range(len(stages), 0, -1), stages, strict=True):
            budget -= _ascend(totals, goal, limits, max(width, additions.tolerance), budget / left)
        n_met = int(np.count_nonzero(_gaps(totals.totals[:, None], goal, limits) < 0))
        if n_met > n_most_met:
            best, n_most_met = totals.added, n_met
    return best, n_most_met, budget


def prune_additions(additions: Additions, goal: PairGoal, added: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The same additions without those that can be spared, one after the other: as many pairs stand as wanted.

    Args:
        additions: who leads and who may be added.
        goal: at least one pair.
        added: ``(l,)``.
    """
    limits = np.where(goal.allows_tie, additions.tolerance, -additions.tolerance)[:, None]
    totals = additions.initial_totals(added)
    n_met = np.count_nonzero(_gaps(totals.totals[:, None], goal, limits) < 0)
    is_pruned = True
    while is_pruned:
        is_pruned = False
        for column in np.flatnonzero(totals.added).tolist():
            flipped = totals.totals_after_flips(np.array([column]))
            if np.count_nonzero(_gaps(flipped, goal, limits) < 0) >= n_met:
                totals.flip(column)
                is_pruned = True
    return totals.added


def _ascend(totals: WinTotals, goal: PairGoal, limits: NDArray[np.float64], width: float, budget: float) -> float:
    """Flip until no flip brings the pairs closer to the order wanted, each counted up to a width; what it cost."""
    n_addable = len(totals.added)
    n_cells = max(len(goal), totals.n_cells)
    block = max(1, min(n_addable, BLOCK // n_cells))
    shortfall = float(_shortfall(totals.totals[:, None], goal, limits, width)[0])
    n_unimproved = position = n_cells_used = 0
    while n_unimproved < n_addable and n_cells_used < budget:
        columns = np.arange(position, min(position + block, n_addable))
        flipped_shortfalls = _shortfall(totals.totals_after_flips(columns), goal, limits, width)
        best = int(flipped_shortfalls.argmin())
        n_cells_used += n_cells * len(columns)
        if flipped_shortfalls[best] < shortfall - _MIN_GAIN * (width + abs(shortfall)):
            totals.flip(int(columns[best]))
            shortfall, n_unimproved = float(flipped_shortfalls[best]), 0
        else:
            n_unimproved += len(columns)
        position = (position + len(columns)) % n_addable
    return float(n_cells_used)


def _shortfall(
    totals: NDArray[np.float64], goal: PairGoal, limits: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """``(b,)`` what pairs lack of the order wanted in sum, negative where they exceed it, each up to the width."""
    gaps = _gaps(totals, goal, limits)
    return np.asarray(np.clip(gaps, -width, width, out=gaps).sum(axis=0))


def _gaps(totals: NDArray[np.float64], goal: PairGoal, limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(r, b)``: a pair stands as wanted where it is below 0; for totals ``(k, b)``."""
    gaps = totals[goal.behind]
    gaps -= totals[goal.ahead]
    gaps -= limits
    return gaps
