"""Ranks with ties, and distances between rankings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau, rankdata

from tracker.statistics.ranking import kendall_distance, kendall_tau_b, mean_ranks

scores = arrays(np.float64, st.integers(2, 12), elements=st.integers(0, 6).map(float))
two = st.integers(2, 12).flatmap(
    lambda m: st.tuples(*(arrays(np.float64, m, elements=st.integers(0, 6).map(float)) for _ in range(2)))
)


class TestAgainstReference:
    @given(scores)
    def test_ranks_are_those_of_scipy_from_the_best_down(self, x) -> None:
        assert np.array_equal(mean_ranks(x), rankdata(-x))
        assert np.array_equal(mean_ranks(x, higher_is_better=False), rankdata(x))

    @given(two)
    def test_tau_b_is_that_of_scipy(self, pair) -> None:
        a, b = map(mean_ranks, pair)
        assert kendall_tau_b(a, b) == pytest.approx(kendalltau(a, b).statistic, abs=1e-12, nan_ok=True)


class TestLaws:
    @given(two)
    def test_distance_counts_reversed_pairs_whole_and_half_ordered_pairs_half(self, pair) -> None:
        a, b = map(mean_ranks, pair)
        m = len(a)
        count = 0.0
        for i in range(m):
            for j in range(i):
                x, y = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
                count += 1.0 if x * y < 0 else 0.5 * (x != y)
        assert kendall_distance(a, b) == pytest.approx(count / (m * (m - 1) / 2))
        assert kendall_distance(a, b) == kendall_distance(b, a)

    def test_a_ranking_turned_round_is_at_distance_one(self) -> None:
        a = np.arange(5.0)
        assert kendall_distance(a, a[::-1]) == 1.0
        assert kendall_distance(a, a) == 0.0

    def test_sums_of_the_same_numbers_in_another_order_are_tied(self) -> None:
        x = np.array([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.5])
        assert x[0] != x[1]
        assert np.array_equal(mean_ranks(x), [1.5, 1.5, 3.0])

    def test_one_model_is_at_no_distance(self) -> None:
        assert kendall_distance(np.ones(1), np.ones(1)) == 0.0
