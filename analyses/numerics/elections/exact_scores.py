"""Scores as the rational numbers that were read, so that ties and reversals are decided without rounding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isfinite, lcm, ulp
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_SUMMATION_ULPS = 4
"""Units in the last place by which a mean may be off for having been summed in floats."""

MAX_PARTS = 10_000
"""Of a prompt, into which its score divides: tenths of a point, thirds of three trials. Sums of such parts lie far
apart beside what summing leaves off."""


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

    If it is a number of prompts, or of equal parts of them, over ``n_prompts``, up to what summing in floats leaves
    off, it is that fraction: a decimal number of a file that looks so is either the same number, or was rounded from
    it. Otherwise it is the shortest decimal number that gives the float back, which is what a file had if that had at
    most 15 digits.

    Args:
        T: ``(n_tasks, n_models)``, finite or NaN.
        n_prompts: ``(n_tasks, n_models)`` prompts behind each mean; 0 where not known.
        higher_is_better: whether the largest score is the best.
    """
    is_present = ~np.isnan(T)
    counts = np.zeros(T.shape, np.int64) if n_prompts is None else n_prompts
    # Few values differ in most tables; as complex numbers, values and counts are sorted together.
    distinct, group = np.unique(T[is_present] + 1j * counts[is_present], return_inverse=True)
    fractions = [
        _fraction(*pair) for pair in zip(distinct.real.tolist(), map(int, distinct.imag.tolist()), strict=True)
    ]
    common = lcm(1, *{fraction_denominator for _, fraction_denominator in fractions})
    values = [value * (common // fraction_denominator) for value, fraction_denominator in fractions]
    divisor = gcd(common, *values)
    sign = 1 if higher_is_better else -1
    scaled = np.zeros(len(values) + 1, dtype=object)
    scaled[:-1] = [sign * (value // divisor) for value in values]
    indices = np.full(T.shape, -1)
    indices[is_present] = group.ravel()
    return ExactScores(T=np.ascontiguousarray(T * sign), numerators=scaled[indices], denominator=common // divisor)


def decimal_fraction(value: float) -> Fraction:
    """The number that a float is printed as: 0.1 is a tenth, so that what is read off a table can be re-checked."""
    return Fraction(repr(float(value)))


def _fraction(value: float, n: int) -> tuple[int, int]:
    """Numerator and denominator, not in lowest terms."""
    scaled = value * n
    if n > 0 and isfinite(scaled):
        tolerance = MAX_SUMMATION_ULPS * ulp(scaled)
        if abs(scaled - round(scaled)) <= tolerance:
            return round(scaled), n
        parts = Fraction(scaled).limit_denominator(MAX_PARTS)
        if tolerance < MAX_PARTS**-2 and abs(scaled - parts) <= tolerance:
            return parts.numerator, parts.denominator * n
    shortest, _, exponent = repr(value).partition("e")
    whole, _, decimals = shortest.partition(".")
    power = int(exponent or 0) - len(decimals)
    digits = int(whole + decimals)
    return (digits * 10**power, 1) if power >= 0 else (digits, 10**-power)
