"""Standard deviations in exact ratio."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyses.numerics.elections.cardinal.standard_deviations import exact_standard_deviations

rows_of_integers = st.lists(st.lists(st.integers(-50, 50), min_size=4, max_size=4), min_size=1, max_size=5)


@given(rows_of_integers, st.integers(1, 1000))
def test_each_is_the_standard_deviation_to_rounding(rows: list[list[int]], denominator: int) -> None:
    expected = [np.std(np.array(row) / denominator, ddof=1) if len(set(row)) > 1 else 1.0 for row in rows]
    assert [float(spread) for spread in exact_standard_deviations(rows, denominator)] == pytest.approx(
        expected, rel=1e-14
    )


@given(rows_of_integers, st.permutations(range(4)), st.integers(1, 9), st.integers(-9, 9))
def test_what_is_stretched_shifted_or_reordered_is_in_exactly_that_ratio(rows, order, stretch, shift) -> None:
    transformed = [[stretch * row[place] + shift for place in order] for row in rows]
    result = exact_standard_deviations([*rows, *transformed], 10)
    for row, first, second in zip(rows, result[: len(rows)], result[len(rows) :], strict=True):
        assert second == (stretch * first if len(set(row)) > 1 else 1)


def test_the_first_of_a_kind_is_a_number_as_printed() -> None:
    assert exact_standard_deviations([[0, 0, 1]], 1) == [Fraction("0.5773502691896258")]
