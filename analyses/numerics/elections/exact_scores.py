"""Scores as the rational numbers that were read, so that ties and reversals are decided without rounding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

DECIMAL_DIGITS = 15
"""A decimal number of at most so many digits survives being stored as a float."""


@dataclass(frozen=True, kw_only=True)
class ExactScores:
    """Scores of tasks, larger is better, as floats and as integers over one denominator.

    Attributes:
        T: ``(n_tasks, n_models)`` float64; NaN = not measured. Negated where smaller was better.
        numerators: ``(n_tasks, n_models)`` Python integers (dtype object); 0 where not measured.
        denominator: of all of them.
    """

    T: NDArray[np.float64]
    numerators: NDArray[Any]
    denominator: int

    @property
    def n_tasks(self) -> int:
        """Number of rows."""
        return int(self.T.shape[0])

    @property
    def n_models(self) -> int:
        """Number of columns."""
        return int(self.T.shape[1])

    @property
    def present(self) -> NDArray[np.bool_]:
        """``(n_tasks, n_models)`` whether the score was measured."""
        return np.asarray(~np.isnan(self.T))

    @property
    def is_complete(self) -> bool:
        """Whether every cell was measured."""
        return not bool(np.isnan(self.T).any())

    def rows(self, keep: NDArray[Any]) -> ExactScores:
        """The same scores of some tasks only: a mask or indices."""
        return ExactScores(T=self.T[keep], numerators=self.numerators[keep], denominator=self.denominator)

    def columns(self, keep: NDArray[Any]) -> ExactScores:
        """The same scores of some models only: a mask or indices."""
        return ExactScores(T=self.T[:, keep], numerators=self.numerators[:, keep], denominator=self.denominator)


def exact_scores(
    T: NDArray[np.float64], n_prompts: NDArray[np.int64] | None = None, *, higher_is_better: bool = True
) -> ExactScores:
    """The rational number behind each float.

    A float that prints with at most 15 digits is that decimal number, as a file had it. Otherwise, if it is a number
    of prompts over ``n_prompts``, it is that fraction. Otherwise it is the shortest decimal that gives the float back.

    Args:
        T: ``(n_tasks, n_models)``, finite or NaN.
        n_prompts: ``(n_tasks, n_models)`` prompts behind each mean; 0 where not known.
        higher_is_better: whether the largest score is the best.
    """
    counts = np.zeros(T.shape, np.int64) if n_prompts is None else n_prompts
    known: dict[tuple[float, int], Fraction] = {}
    sign = 1 if higher_is_better else -1
    fractions = np.zeros(T.shape, dtype=object)
    for (row, column), value in np.ndenumerate(T):
        if value != value:
            fractions[row, column] = Fraction(0)
            continue
        cell = float(value), int(counts[row, column])
        if cell not in known:
            known[cell] = sign * _fraction(*cell)
        fractions[row, column] = known[cell]
    denominator = lcm(1, *{one.denominator for one in known.values()})
    numerators = np.zeros(T.shape, dtype=object)
    for place, one in np.ndenumerate(fractions):
        numerators[place] = one.numerator * (denominator // one.denominator)
    return ExactScores(T=np.ascontiguousarray(T * sign), numerators=numerators, denominator=denominator)


def _fraction(value: float, n: int) -> Fraction:
    shortest = repr(value)
    digits = shortest.partition("e")[0].lstrip("-0.").replace(".", "")
    if len(digits) > DECIMAL_DIGITS and n > 0:
        count = round(value * n)
        if count / n == value or abs(value * n - count) <= 4 * np.spacing(abs(value) * n):
            return Fraction(count, n)
    return Fraction(shortest)
