"""Linear programs in fractions, beside SciPy's in floats; boxes beside every subset of their rows."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from analyses.numerics.elections.cardinal.boxes.exact_feasibility import find_feasible_weights, maximize_in_box
from analyses.numerics.elections.exact_linear_program import maximize_exactly

small = st.integers(-4, 4).map(Fraction)


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Fraction], list[list[Fraction]], list[Fraction]]:
    """A bounded program: a few rows, and x at most 3 each."""
    n, k = draw(st.integers(1, 4)), draw(st.integers(0, 5))
    rows = [draw(st.lists(small, min_size=n, max_size=n)) for _ in range(k)]
    limits = draw(st.lists(small, min_size=k, max_size=k))
    upper = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    return draw(st.lists(small, min_size=n, max_size=n)), rows + upper, limits + [Fraction(3)] * n


class TestAgainstReference:
    @settings(max_examples=150)
    @given(programs())
    def test_the_maximum_is_that_of_a_linear_program_in_floats(self, program) -> None:
        objective, rows, limits = program
        result = maximize_exactly(objective, rows, limits)
        peer = linprog(-np.array(objective, dtype=float), np.array(rows, dtype=float), np.array(limits, dtype=float))
        assert (result is None) == (peer.status == 2)
        if result is not None:
            value, x = result
            assert float(value) == pytest.approx(-peer.fun, abs=1e-9)
            assert all(item >= 0 for item in x)
            assert all(sum(map(Fraction.__mul__, row, x)) <= limit for row, limit in zip(rows, limits, strict=True))
            assert sum(map(Fraction.__mul__, objective, x)) == value

    @settings(max_examples=40)
    @given(st.lists(st.lists(small, min_size=3, max_size=3), min_size=1, max_size=5), st.booleans())
    def test_the_most_of_a_box_is_that_of_every_choice_of_rows(self, rows, ties_count: bool) -> None:
        low, high = [Fraction(1, 10)] * 3, [Fraction(1)] * 3
        worth, tied = [2] * len(rows), [int(ties_count)] * len(rows)
        most = 0
        for kinds in itertools.product(range(3 if ties_count else 2), repeat=len(rows)):
            strictly = [row for row, kind in zip(rows, kinds, strict=True) if kind == 1]
            weakly = [row for row, kind in zip(rows, kinds, strict=True) if kind == 2]
            if find_feasible_weights(strictly, weakly, low, high) is not None:
                most = max(most, 2 * len(strictly) + len(weakly))
        result, weights = maximize_in_box(rows, worth, tied, low, high, incumbent=-1)
        assert result == most
        sums = [sum(map(Fraction.__mul__, row, weights)) for row in rows]
        assert sum(2 if item < 0 else int(ties_count and item == 0) for item in sums) == most


class TestDefinitions:
    def test_what_only_a_corner_allows_is_a_tie_and_no_reversal(self) -> None:
        row = [Fraction(1), Fraction(-1, 10)]
        low, high = [Fraction(1, 10)] * 2, [Fraction(1)] * 2
        assert find_feasible_weights([row], [], low, high) is None
        assert find_feasible_weights([], [row], low, high) == [Fraction(1, 10), Fraction(1)]

    def test_nothing_is_returned_where_nothing_exceeds_what_is_known(self) -> None:
        assert maximize_in_box([[Fraction(-1)]], [1], [0], [Fraction(0)], [Fraction(1)], incumbent=1) == (1, None)
