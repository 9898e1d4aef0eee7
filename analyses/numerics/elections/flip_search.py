"""Local search for the models to add: one at a time, in or out, as long as more is gained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.added_models import Additions, Tally

BLOCK = 1 << 16
"""Cells looked at before the best flip among them is made."""
_CERTAIN = 1e-9


@dataclass(frozen=True, kw_only=True)
class Goal:
    """Pairs of leading models that should come to stand in this order.

    Attributes:
        behind: ``(r,)`` who should have the smaller total.
        ahead: ``(r,)`` who should have the larger total.
        tie_will_do: ``(r,)`` whether equal totals are enough.
    """

    behind: NDArray[np.int64]
    ahead: NDArray[np.int64]
    tie_will_do: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.behind)


def climb(
    additions: Additions, goal: Goal, starts: Iterable[NDArray[np.bool_]], *, budget: float
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
    limits = np.where(goal.tie_will_do, additions.tolerance, -additions.tolerance)[:, None]
    best: NDArray[np.bool_] | None = None
    most = -1
    for start in starts:
        if budget <= 0 and best is not None:
            break
        tally = additions.tally(start)
        met, budget = _ascend(tally, goal, limits, budget)
        if met > most:
            best, most = tally.added, met
    return best, most, budget


def _ascend(tally: Tally, goal: Goal, limits: NDArray[np.float64], budget: float) -> tuple[int, float]:
    """Flip until no flip brings more pairs into order or, with as many, the others closer to it."""
    n_others = len(tally.added)
    cells = max(len(goal), tally.cells)
    block = max(1, min(n_others, BLOCK // cells))
    met, short = _standing(tally.totals[:, None], goal, limits)
    here = int(met[0]), float(short[0])
    unimproved = position = 0
    while unimproved < n_others and budget > 0:
        columns = np.arange(position, min(position + block, n_others))
        met, short = _standing(tally.flips(columns), goal, limits)
        at = int(np.lexsort((short, -met))[0])
        there = int(met[at]), float(short[at])
        budget -= cells * len(columns)
        if there[0] > here[0] or (there[0] == here[0] and there[1] < here[1] * (1 - _CERTAIN)):
            tally.flip(int(columns[at]))
            here, unimproved = there, 0
        else:
            unimproved += len(columns)
        position = (position + len(columns)) % n_others
    return here[0], budget


def _standing(
    totals: NDArray[np.float64], goal: Goal, limits: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """``(b,)`` pairs in the order wanted, and what the others lack of it in sum, for totals ``(k, b)``."""
    lacks = totals[goal.behind]
    lacks -= totals[goal.ahead]
    lacks -= limits
    met = np.count_nonzero(lacks < 0, axis=0)
    return met, np.maximum(lacks, 0, out=lacks).sum(axis=0)
