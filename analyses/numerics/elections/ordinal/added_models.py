"""What adding models does to the win rates of the leading ones, in a form that can be searched and bounded.

By ``pairwise``, and by ``per_task`` if every model has every task, win rates of the leading models are linear in who is
added, up to a divisor they share. By ``per_task`` with missing scores each task has its divisor, which depends
on who is added: not linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.win_rates import (
    MAX_INT64_SUM,
    WinRateRule,
    pairwise_wins,
    rank_codes,
    task_half_points,
)

MAX_EXACT_FLOAT = 2**52
"""Whole numbers whose sums stay below this are searched as floats without rounding."""
TOLERANCE = 1e-9
"""Where rounding is possible, differences of rates below this are looked at in exact numbers, or claimed by nobody."""
_BLOCK = 1 << 20
MAX_CELLS = 200_000_000
"""Bounds that would have to look at more cells are not computed."""


class WinTotals(Protocol):
    """Totals of the leading models with some of the others added, ready to ask what one more or fewer would do."""

    totals: NDArray[np.float64]
    """``(k,)``: larger is better; comparable with each other only."""
    added: NDArray[np.bool_]
    """``(l,)``."""
    n_cells: int
    """Numbers touched to ask about one model."""

    def totals_after_flips(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(k, n_columns)`` totals if that one model were added, or taken away again."""

    def flip(self, column: int) -> None:
        """Add that model, or take it away."""


class Additions(Protocol):
    """The leading models and who may be added."""

    @property
    def tolerance(self) -> float:
        """Totals closer than this are equal, or not known to differ."""

    def initial_totals(self, added: NDArray[np.bool_]) -> WinTotals:
        """Totals to begin with."""

    def minimum_signs(self) -> NDArray[np.int8]:
        """``(k, k)`` -1, 0 or 1: the sign below which no addition moves the total of row less that of column."""


@dataclass(frozen=True, kw_only=True)
class LinearAdditions:
    """Totals are ``base + effects @ added``: whole numbers.

    Attributes:
        base: ``(k,)`` int64 or Python integers.
        effects: ``(k, l)`` likewise.
    """

    base: NDArray[Any]
    effects: NDArray[Any]

    @cached_property
    def _largest(self) -> int:
        return max(int(self.base.max()), int(self.effects.max(initial=0)))

    @property
    def _is_exact(self) -> bool:
        return bool(self._largest * (1 + self.effects.shape[1]) < MAX_EXACT_FLOAT)

    @property
    def tolerance(self) -> float:
        """Half of the least difference where floats hold the totals."""
        return 0.5 if self._is_exact else TOLERANCE * (1 + self.effects.shape[1])

    def initial_totals(self, added: NDArray[np.bool_]) -> LinearTotals:
        """Totals to begin with."""
        return LinearTotals(*self._floats, added)

    def minimum_signs(self) -> NDArray[np.int8]:
        """Exact: each model that can lower the difference is added."""
        base, effects = self._floats
        signs = np.zeros((len(base), len(base)), dtype=np.int8)
        for i in range(len(base)):
            minimum = base[i] - base + np.minimum(effects[i] - effects, 0).sum(axis=1)
            signs[i] = np.sign(minimum)
            if not self._is_exact:
                for j in np.flatnonzero(np.abs(minimum) <= self.tolerance):
                    exact = self.base[i] - self.base[j] + sum(min(int(d), 0) for d in self.effects[i] - self.effects[j])
                    signs[i, j] = (exact > 0) - (exact < 0)
        return signs

    @cached_property
    def _floats(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The whole numbers, or parts of the largest of them where floats do not hold them all."""
        unit = 1 if self._is_exact else self._largest
        return (self.base / unit).astype(np.float64), (self.effects / unit).astype(np.float64)


class LinearTotals:
    """Totals of `LinearAdditions`."""

    def __init__(self, base: NDArray[np.float64], effects: NDArray[np.float64], added: NDArray[np.bool_]) -> None:
        self.effects, self.added, self.n_cells = effects, added.copy(), len(base)
        self.totals = base + effects @ added.astype(np.float64)

    def totals_after_flips(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Totals after each one flip."""
        signs = np.where(self.added[columns], -1.0, 1.0)
        return np.asarray(self.totals[:, None] + signs * self.effects[:, columns])

    def flip(self, column: int) -> None:
        """Add that model, or take it away."""
        self.totals = self.totals + (-1.0 if self.added[column] else 1.0) * self.effects[:, column]
        self.added[column] = not self.added[column]


@dataclass(frozen=True, kw_only=True)
class PerTaskAdditions:
    """Rates per task, each over the opponents present, averaged over a model's tasks.

    Attributes:
        present_leading: ``(k, n_tasks)`` which leading model has which task.
        base: ``(k, n_tasks)`` half points against the other leading models.
        points: ``(k, n_tasks, l)`` half points against each other model.
        present_addable: ``(n_tasks, l)`` which other model has which task.
    """

    present_leading: NDArray[np.bool_]
    base: NDArray[np.int64]
    points: NDArray[np.int8]
    present_addable: NDArray[np.bool_]
    tolerance: float = TOLERANCE

    def initial_totals(self, added: NDArray[np.bool_]) -> PerTaskTotals:
        """Totals to begin with."""
        return PerTaskTotals(self, added)

    def minimum_signs(self) -> NDArray[np.int8]:
        """A relaxation: each task chooses its own additions, the best of each number of them."""
        k, n_tasks, n_addable = self.points.shape
        signs = np.full((k, k), -1, dtype=np.int8)
        if k * k * n_tasks * (n_addable + 1) > MAX_CELLS:
            return signs
        opponents = self.present_leading.sum(axis=0) - 1
        is_sole = self.present_leading & (opponents == 0)
        counts = self.present_leading.sum(axis=1)
        for i in range(k):
            for j in range(k):
                # Whoever has a task alone averages over a number of tasks that depends on who is added.
                if i == j or is_sole[i].any() or is_sole[j].any() or not counts[i] or not counts[j]:
                    continue
                signs[i, j] = self._least_sign(i, j, opponents, int(counts[i]), int(counts[j]))
        np.fill_diagonal(signs, 0)
        return signs

    def _least_sign(self, i: int, j: int, opponents: NDArray[np.int64], n_i: int, n_j: int) -> int:
        """Sign of a lower bound of the rate of i less that of j."""
        is_relevant = self.present_leading[i] | self.present_leading[j]
        # Half points, times the numbers of tasks of both: whole numbers.
        start = self.base[i, is_relevant] * n_j - self.base[j, is_relevant] * n_i
        gains = self.points[i, is_relevant].astype(np.int64) * n_j - self.points[j, is_relevant].astype(np.int64) * n_i
        present_addable, divisors = self.present_addable[is_relevant], opponents[is_relevant]
        gains = np.sort(np.where(present_addable, gains, np.iinfo(np.int64).max), axis=1)
        n_joining = present_addable.sum(axis=1)
        n_added = np.arange(gains.shape[1] + 1)
        prefixes = np.zeros((len(gains), len(n_added)), dtype=np.int64)
        prefixes[:, 1:] = np.cumsum(np.where(n_added[:-1] < n_joining[:, None], gains, 0), axis=1)
        numerators = start[:, None] + prefixes
        ratios = np.where(n_added <= n_joining[:, None], numerators / (divisors[:, None] + n_added), np.inf)
        minimum = float(ratios.min(axis=1).sum()) / (2 * n_i * n_j)
        if abs(minimum) > TOLERANCE:
            return 1 if minimum > 0 else -1
        exact = sum(
            (
                min(Fraction(int(row[c]), int(divisor) + c) for c in range(int(n) + 1))
                for row, divisor, n in zip(numerators, divisors, n_joining, strict=True)
            ),
            Fraction(0),
        )
        return (exact > 0) - (exact < 0)


class PerTaskTotals:
    """Totals of `PerTaskAdditions`."""

    def __init__(self, additions: PerTaskAdditions, added: NDArray[np.bool_]) -> None:
        self._additions, self.added = additions, added.copy()
        self._points = additions.base + additions.points[:, :, added].sum(axis=2, dtype=np.int64)
        self._opponents = additions.present_leading.sum(axis=0) - 1 + additions.present_addable[:, added].sum(axis=1)
        self.n_cells = 2 * additions.base.size
        self.totals = self._rates(self._points[:, :, None], self._opponents[:, None])[:, 0]

    def _rates(self, points: NDArray[np.int64], opponents: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(k, b)`` from points ``(k, n_tasks, b)`` and opponents ``(n_tasks, b)``."""
        has_opponents = opponents > 0
        shares = np.where(has_opponents, 1 / (2 * np.maximum(opponents, 1)), 0.0)
        n_tasks = self._additions.present_leading.astype(np.float64) @ has_opponents.astype(np.float64)
        return np.asarray(np.einsum("ktb,tb->kb", points, shares) / np.maximum(n_tasks, 1))

    def totals_after_flips(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Totals after each one flip."""
        signs = np.where(self.added[columns], -1, 1)
        points = self._points[:, :, None] + signs * self._additions.points[:, :, columns]
        return self._rates(points, self._opponents[:, None] + signs * self._additions.present_addable[:, columns])

    def flip(self, column: int) -> None:
        """Add that model, or take it away."""
        sign = -1 if self.added[column] else 1
        self._points = self._points + sign * self._additions.points[:, :, column]
        self._opponents = self._opponents + sign * self._additions.present_addable[:, column]
        self.added[column] = not self.added[column]
        self.totals = self._rates(self._points[:, :, None], self._opponents[:, None])[:, 0]


def build_additions(
    scores: ExactScores, leading: NDArray[np.int64], addable: NDArray[np.int64], rule: WinRateRule
) -> LinearAdditions | PerTaskAdditions:
    """Who leads and who may be added.

    Args:
        scores: complete or not.
        leading: ``(k,)`` columns.
        addable: ``(l,)`` columns.
        rule: how win rates are counted.
    """
    if rule == "pairwise":
        wins = pairwise_wins(scores).wins[leading]
        return _linear(wins[:, leading].sum(axis=1), wins[:, addable])
    # A task that one model alone has gives no rate to anybody.
    codes = rank_codes(scores.rows(np.flatnonzero(scores.present.sum(axis=1) > 1)))
    leading_codes, addable_codes = codes[:, leading].T, codes[:, addable]
    points = np.zeros((*leading_codes.shape, len(addable)), dtype=np.int8)
    for half_points, model_codes in zip(points, leading_codes, strict=True):
        half_points[:] = 2 * (model_codes[:, None] > addable_codes) + (model_codes[:, None] == addable_codes)
        half_points[:] *= (model_codes[:, None] > 0) & (addable_codes > 0)
    base = task_half_points(codes[:, leading])[0].T
    if (codes > 0).all():
        return _linear(base.sum(axis=1), points.sum(axis=1, dtype=np.int64))
    return PerTaskAdditions(
        present_leading=leading_codes > 0, base=base, points=points, present_addable=addable_codes > 0
    )


def _linear(base: NDArray[Any], effects: NDArray[Any]) -> LinearAdditions:
    """In the smallest whole numbers."""
    divisor = max(gcd(*map(int, base), *map(int, effects.ravel())), 1)
    base, effects = base // divisor, effects // divisor
    largest = max(map(int, [*base, *effects.ravel()]), default=0)
    if largest * (1 + effects.shape[1]) < MAX_INT64_SUM:
        base, effects = base.astype(np.int64), effects.astype(np.int64)
    return LinearAdditions(base=base, effects=effects)


def addition_effects(additions: Additions, n_addable: int) -> NDArray[np.float64]:
    """``(k, l)`` by how much each of the other models, added alone, changes the totals."""
    totals = additions.initial_totals(np.zeros(n_addable, dtype=np.bool_))
    block = max(1, _BLOCK // totals.n_cells)
    parts = [
        totals.totals_after_flips(np.arange(first, min(first + block, n_addable))) - totals.totals[:, None]
        for first in range(0, n_addable, block)
    ]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(totals.totals), 0))
