"""Sums of square roots, compared exactly.

A similarity of binary rows is a fraction, or a fraction times the square root of an integer. Square
roots of different square-free integers are linearly independent over the fractions, so a sum has one
representation, and two sums are equal just when their representations are.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import isqrt


@lru_cache(maxsize=1 << 16)
def square_free_factors(n: int) -> tuple[int, int]:
    """``(f, g)`` with ``n == f * g * g`` and ``f`` free of squares, for ``n >= 1``."""
    free, root, p = n, 1, 2
    while p * p <= free:
        while free % (p * p) == 0:
            free //= p * p
            root *= p
        p += 1
    return free, root


class ExactSqrtSum:
    """``sum(fraction * sqrt(f))`` over square-free integers ``f``; a fraction is the case ``f = 1``."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[int, Fraction]) -> None:
        self.terms = {f: q for f, q in terms.items() if q}

    @classmethod
    def from_number(cls, number: int | Fraction) -> ExactSqrtSum:
        """The sum of one rational term."""
        return cls({1: Fraction(number)})

    @classmethod
    def cosine(cls, both: int, left: int, right: int) -> ExactSqrtSum:
        """``both / sqrt(left * right)``, for ``left, right >= 1``."""
        free, root = square_free_factors(left * right)
        return cls({free: Fraction(both, free * root)})

    def __add__(self, addend: ExactSqrtSum) -> ExactSqrtSum:
        terms = dict(self.terms)
        for f, q in addend.terms.items():
            terms[f] = terms.get(f, Fraction(0)) + q
        return ExactSqrtSum(terms)

    def __mul__(self, factor: ExactSqrtSum | Fraction | int) -> ExactSqrtSum:
        if not isinstance(factor, ExactSqrtSum):
            return ExactSqrtSum({f: q * factor for f, q in self.terms.items()})
        terms: dict[int, Fraction] = {}
        for f, p in self.terms.items():
            for g, q in factor.terms.items():
                free, root = square_free_factors(f * g)
                terms[free] = terms.get(free, Fraction(0)) + p * q * root
        return ExactSqrtSum(terms)

    def __sub__(self, subtrahend: ExactSqrtSum) -> ExactSqrtSum:
        return self + subtrahend * -1

    def sign(self) -> int:
        """-1, 0 or 1, decided on integers: no rounding can change it."""
        if not self.terms:
            return 0
        bits = 64
        while True:
            total = 0
            for f, q in self.terms.items():
                root = isqrt((q.numerator * q.numerator * f) << (2 * bits)) // q.denominator
                total += root if q > 0 else -root
            if abs(total) > 2 * len(self.terms):
                return 1 if total > 0 else -1
            bits *= 2

    def __float__(self) -> float:
        return float(sum(float(q) * float(f) ** 0.5 for f, q in self.terms.items()))
