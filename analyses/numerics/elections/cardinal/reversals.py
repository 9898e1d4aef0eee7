"""Which pairs of models can weights reverse at all, and the inequalities that say when they do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.box_search import WeightInequalities
from analyses.numerics.elections.cardinal.boxes.branch_and_bound import SUM_ERROR
from analyses.numerics.elections.cardinal.weighted_sums import WeightedSums
from tracker.statistics.jit import jit

MIN_ROW_SIZE = 1e-290
"""Rows with smaller entries are made anew, relative to the largest, before floats lose them."""

CANNOT_PASS, CAN_TIE, CAN_PASS = 0, 1, 2
"""What the second of two models can do to the first, under some weights; also its worth in half ranks."""


@jit
def _minimum_leads(X: Any, epsilon: Any, leads: Any, doubt: Any) -> None:
    """``leads[i, k]``: least Σ w (x_i − x_k) over w in [epsilon, 1]; ``doubt``: how far rounding can move it."""
    n, m = X.shape
    for i in range(m):
        for k in range(m):
            lead, size = 0.0, 0.0
            for j in range(n):
                d = X[j, i] - X[j, k]
                lead += d * epsilon if d > 0 else d
                size += abs(X[j, i]) + abs(X[j, k])
            leads[i, k], doubt[i, k] = lead, SUM_ERROR * size


def possible_overtakes(sums: WeightedSums, epsilon: Fraction) -> NDArray[np.int8]:
    """``(m, m)``: for models i and k, whether k can get ahead of i, at most tie with it, or neither.

    A model is a tie with itself and with its copies. Near zero, it is decided in exact arithmetic.
    """
    X, m = sums.to_floats(), sums.n_models
    leads, doubt = np.empty((m, m)), np.empty((m, m))
    _minimum_leads(X, float(epsilon), leads, doubt)
    possible = np.where(leads < 0, CAN_PASS, CANNOT_PASS).astype(np.int8)
    seen: dict[tuple[int, ...], int] = {}
    copy_group = np.array([seen.setdefault(tuple(column), len(seen)) for column in sums.steps.T.tolist()])
    is_copy = copy_group[:, None] == copy_group[None, :]
    possible[is_copy] = CAN_TIE
    for i, k in np.argwhere((np.abs(leads) <= doubt) & ~is_copy).tolist():
        difference = (sums.steps[:, i] - sums.steps[:, k]).tolist()
        terms = [int(steps) * unit for steps, unit in zip(difference, sums.units, strict=True)]
        lead = sum((term * epsilon if term > 0 else term for term in terms), Fraction(0))
        possible[i, k] = CAN_PASS if lead < 0 else CAN_TIE if lead == 0 else CANNOT_PASS
    return possible


def build_inequalities(
    sums: WeightedSums, ahead: NDArray[np.int64], behind: NDArray[np.int64], worth: NDArray[Any], worth_tied: int
) -> WeightInequalities:
    """Rows that say "the second of the pair gets ahead"; rows that are multiples of one another are one.

    Args:
        sums: the scores.
        ahead, behind: ``(n_pairs,)`` columns of models.
        worth: ``(n_pairs,)`` positive.
        worth_tied: of a pair that ties.
    """
    steps = sums.differences(ahead, behind)
    worth, worths_tied = worth.astype(np.int64), np.full(len(worth), worth_tied)
    if steps.dtype != object and steps.size:
        common = np.maximum(np.gcd.reduce(steps, axis=0), 1)
        distinct, group = np.unique((steps // common).T, axis=0, return_inverse=True)
        steps = distinct.T
        worth, worths_tied = (
            np.bincount(group.ravel(), each, len(distinct)).astype(np.int64) for each in (worth, worths_tied)
        )
    D = steps.astype(np.float64) * sums.relative_units()[:, None]
    for row in np.flatnonzero(np.abs(D).sum(axis=0) < MIN_ROW_SIZE):
        terms = [int(step) * unit for step, unit in zip(steps[:, row], sums.units, strict=True)]
        D[:, row] = [float(term / max(map(abs, terms))) for term in terms]
    return WeightInequalities(
        D=np.ascontiguousarray(D / np.abs(D).sum(axis=0)),
        worth=worth,
        worth_tied=worths_tied,
        steps=steps,
        units=sums.units,
    )


def reversal_inequalities(sums: WeightedSums, possible: NDArray[np.int8]) -> WeightInequalities:
    """A row for each pair that is ordered before and can be reversed; worth the number of such pairs."""
    ranks = sums.before
    ahead, behind = np.nonzero((ranks[:, None] < ranks[None, :]) & (possible == CAN_PASS))
    return build_inequalities(sums, ahead, behind, np.ones(len(ahead), np.int64), 0)


def count_reversible_pairs(sums: WeightedSums, possible: NDArray[np.int8]) -> int:
    """Pairs that are ordered before and can be reversed, each by some weights."""
    ranks = sums.before
    return int(((ranks[:, None] < ranks[None, :]) & (possible == CAN_PASS)).sum())
