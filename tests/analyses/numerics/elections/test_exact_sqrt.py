from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction

import hypothesis.strategies as st
from hypothesis import given

from analyses.numerics.elections.exact_sqrt import ExactSqrtSum, square_free_factors

FRACTIONS = st.fractions(min_value=-3, max_value=3, max_denominator=40)
EXACT_SUMS = st.dictionaries(st.sampled_from([1, 2, 3, 5, 6, 7, 10, 30]), FRACTIONS, max_size=4).map(ExactSqrtSum)


def decimal(number: ExactSqrtSum) -> Decimal:
    getcontext().prec = 80
    terms = ((Decimal(q.numerator) / Decimal(q.denominator)) * Decimal(f).sqrt() for f, q in number.terms.items())
    return sum(terms, Decimal(0))


class TestAgainstReference:
    @given(EXACT_SUMS)
    def test_sign_is_the_one_found_with_eighty_digits(self, number):
        value = decimal(number)
        assert number.sign() == (abs(value) > Decimal("1e-60")) * (1 if value > 0 else -1)

    @given(EXACT_SUMS, EXACT_SUMS)
    def test_products_are_products(self, item, second):
        assert abs(decimal(item * second) - decimal(item) * decimal(second)) < Decimal("1e-60")

    def test_differences_far_below_rounding_are_seen(self):
        # 1 / (sqrt(10**40 + 1) + 10**20) is about 5e-21.
        tiny = ExactSqrtSum({10**40 + 1: Fraction(1)}) - ExactSqrtSum.from_number(10**20)
        assert tiny.sign() == 1


class TestLaws:
    @given(st.integers(1, 5000))
    def test_square_free_part_and_root_make_the_number(self, n):
        free, root = square_free_factors(n)
        assert free * root * root == n
        assert all(free % (p * p) for p in range(2, 71))

    def test_equal_sums_written_differently_are_equal(self):
        # 1/sqrt(8) + 1/sqrt(8) = 1/sqrt(2)
        assert (ExactSqrtSum.cosine(1, 2, 4) * 2 - ExactSqrtSum.cosine(1, 1, 2)).sign() == 0
        assert float(ExactSqrtSum.cosine(1, 1, 2)) == 0.5**0.5
