"""The least weight that a task may be given."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from analyses.numerics.elections.cardinal.epsilon import automatic_epsilon
from analyses.numerics.elections.exact_scores import exact_scores


def test_it_is_the_ratio_of_deviations_where_that_is_below_one_hundredth() -> None:
    T = np.array([[0.0, 1.0, 2.0], [0.0, 500.0, 1000.0], [7.0, 7.0, 7.0]])
    assert float(automatic_epsilon(exact_scores(T))) == pytest.approx(1 / 500, rel=1e-15)


@pytest.mark.parametrize("T", [np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]), np.ones((2, 3))])
def test_it_is_one_hundredth_where_tasks_spread_equally_or_not_at_all(T: np.ndarray) -> None:
    assert automatic_epsilon(exact_scores(T)) == Fraction(1, 100)


def test_the_largest_numbers_do_not_overflow() -> None:
    T = np.array([[0.0, 1.0, 2.0], [0.0, 1e300, 1e299]])
    assert 0 < automatic_epsilon(exact_scores(T)) < Fraction(1, 10**290)
