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
WIDTHS = (0.3, 0.1, 0.03)
"""In mean distances of the pairs at the start; after these, pairs are counted."""
_CERTAIN = 1e-9


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
    most = -1
    for start in starts:
        if budget <= 0 and best is not None:
            break
        tally = additions.initial_totals(start)
        typical = float(np.abs(_lacks(tally.totals[:, None], goal, limits)).mean())
        stages = [typical * width for width in WIDTHS] + [additions.tolerance]
        for left, width in zip(range(len(stages), 0, -1), stages, strict=True):
            budget -= _ascend(tally, goal, limits, max(width, additions.tolerance), budget / left)
        met = int(np.count_nonzero(_lacks(tally.totals[:, None], goal, limits) < 0))
        if met > most:
            best, most = tally.added, met
    return best, most, budget


def prune_additions(additions: Additions, goal: PairGoal, added: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The same additions without those that can be spared, one after the other: as many pairs stand as wanted.

    Args:
        additions: who leads and who may be added.
        goal: at least one pair.
        added: ``(l,)``.
    """
    limits = np.where(goal.allows_tie, additions.tolerance, -additions.tolerance)[:, None]
    tally = additions.initial_totals(added)
    met = np.count_nonzero(_lacks(tally.totals[:, None], goal, limits) < 0)
    spared = True
    while spared:
        spared = False
        for column in np.flatnonzero(tally.added).tolist():
            totals = tally.totals_after_flips(np.array([column]))
            if np.count_nonzero(_lacks(totals, goal, limits) < 0) >= met:
                tally.flip(column)
                spared = True
    return tally.added


def _ascend(tally: WinTotals, goal: PairGoal, limits: NDArray[np.float64], width: float, budget: float) -> float:
    """Flip until no flip brings the pairs closer to the order wanted, each counted up to a width; what it cost."""
    n_others = len(tally.added)
    cells = max(len(goal), tally.cells)
    block = max(1, min(n_others, BLOCK // cells))
    here = float(_shortfall(tally.totals[:, None], goal, limits, width)[0])
    unimproved = position = spent = 0
    while unimproved < n_others and spent < budget:
        columns = np.arange(position, min(position + block, n_others))
        there = _shortfall(tally.totals_after_flips(columns), goal, limits, width)
        best = int(there.argmin())
        spent += cells * len(columns)
        if there[best] < here - _CERTAIN * (width + abs(here)):
            tally.flip(int(columns[best]))
            here, unimproved = float(there[best]), 0
        else:
            unimproved += len(columns)
        position = (position + len(columns)) % n_others
    return float(spent)


def _shortfall(
    totals: NDArray[np.float64], goal: PairGoal, limits: NDArray[np.float64], width: float
) -> NDArray[np.float64]:
    """``(b,)`` what pairs lack of the order wanted in sum, negative where they exceed it, each up to the width."""
    lacks = _lacks(totals, goal, limits)
    return np.asarray(np.clip(lacks, -width, width, out=lacks).sum(axis=0))


def _lacks(totals: NDArray[np.float64], goal: PairGoal, limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(r, b)``: a pair stands as wanted where it is below 0; for totals ``(k, b)``."""
    lacks = totals[goal.behind]
    lacks -= totals[goal.ahead]
    lacks -= limits
    return lacks
