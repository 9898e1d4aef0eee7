"""Distances of rankings: the definitions in use, by pairs, and SciPy's."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from itertools import combinations

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given

from analyses.numerics.elections.diversity.ranking_distance import average_ranks, ranking_distance

TOTALS = st.lists(st.integers(-4, 4), min_size=1, max_size=9)
TWO_TOTALS = st.integers(1, 9).flatmap(
    lambda m: st.tuples(*[st.lists(st.integers(0, 5), min_size=m, max_size=m) for _ in range(2)])
)


def ranks(totals: list[int]) -> np.ndarray:
    return average_ranks(totals)


class TestAgainstReference:
    @given(TOTALS)
    def test_ranks_are_those_of_scipy(self, totals: list[int]) -> None:
        assert np.array_equal(average_ranks(totals), scipy.stats.rankdata([-total for total in totals]))

    @given(TWO_TOTALS)
    def test_pairs_are_counted_one_by_one(self, both: tuple[list[int], list[int]]) -> None:
        a, b = both
        pairs = list(combinations(range(len(a)), 2))
        opposite = sum((a[i] - a[j]) * (b[i] - b[j]) < 0 for i, j in pairs)
        half_tied = sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in pairs)
        result = ranking_distance(ranks(a), ranks(b))
        assert result.n_reversed == opposite
        assert result.tau == (opposite / len(pairs) if pairs else 0)
        assert result.tau_paper == ((opposite + half_tied) / len(pairs) if pairs else 0)
        largest = np.abs(scipy.stats.rankdata(a) - scipy.stats.rankdata(b)).max()
        assert result.mrc == (largest / (len(a) - 1) if len(a) > 1 else 0)

    @given(TWO_TOTALS)
    def test_tau_b_is_scipys(self, both: tuple[list[int], list[int]]) -> None:
        a, b = both
        result = ranking_distance(ranks(a), ranks(b)).tau_b
        tied = [len(set(item)) == 1 for item in both]
        if all(tied):
            assert result == 0
        elif any(tied):
            assert np.isnan(result)
        else:
            assert result == pytest.approx((1 - scipy.stats.kendalltau(a, b).statistic) / 2, abs=1e-12)


class TestLaws:
    @given(TWO_TOTALS)
    def test_neither_ranking_comes_first(self, both: tuple[list[int], list[int]]) -> None:
        forward, back = (ranking_distance(ranks(a), ranks(b)) for a, b in (both, both[::-1]))
        np.testing.assert_equal(
            [forward.tau, forward.tau_paper, forward.tau_b, forward.mrc],
            [back.tau, back.tau_paper, back.tau_b, back.mrc],
        )

    @given(TWO_TOTALS, st.integers(0, 99))
    def test_the_order_of_models_decides_nothing(self, both: tuple[list[int], list[int]], seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(both[0]))
        a, b = ranks(both[0]), ranks(both[1])
        np.testing.assert_equal(asdict(ranking_distance(a[order], b[order])), asdict(ranking_distance(a, b)))

    @given(TWO_TOTALS)
    def test_all_are_between_0_and_1_and_in_their_order(self, both: tuple[list[int], list[int]]) -> None:
        result = ranking_distance(ranks(both[0]), ranks(both[1]))
        assert 0 <= result.tau <= result.tau_paper <= 1
        assert 0 <= result.mrc <= 1

    @given(TOTALS, st.integers(1, 10**30), st.integers(-(10**30), 10**30))
    def test_scale_and_shift_of_totals_are_no_matter_however_large(self, totals: list[int], by: int, to: int) -> None:
        assert np.array_equal(average_ranks([total * by + to for total in totals]), average_ranks(totals))
        assert np.array_equal(average_ranks([Fraction(total, by) for total in totals]), average_ranks(totals))

    @given(TOTALS)
    def test_ranks_add_up(self, totals: list[int]) -> None:
        m = len(totals)
        assert average_ranks(totals).sum() == m * (m + 1) / 2


class TestCases:
    def test_a_turned_ranking_is_as_far_as_can_be(self) -> None:
        result = ranking_distance(ranks([3, 2, 1]), ranks([1, 2, 3]))
        assert (result.tau, result.tau_paper, result.tau_b, result.mrc, result.n_reversed) == (1, 1, 1, 1, 3)

    def test_ties_are_no_reversals_but_the_paper_counts_them(self) -> None:
        result = ranking_distance(ranks([3, 2, 1]), ranks([1, 1, 1]))
        assert (result.tau, result.tau_paper, result.mrc) == (0, 1, 0.5)
        assert np.isnan(result.tau_b)

    @pytest.mark.parametrize("m", [1, 4])
    def test_one_model_and_all_tied_have_distance_zero(self, m: int) -> None:
        result = ranking_distance(np.full(m, (m + 1) / 2), np.full(m, (m + 1) / 2))
        assert (result.tau, result.tau_paper, result.tau_b, result.mrc, result.n_reversed) == (0, 0, 0, 0, 0)

    def test_totals_that_floats_cannot_distinguish_are_ranked(self) -> None:
        assert average_ranks([10**40, 10**40 + 1, 10**40]).tolist() == [2.5, 1, 2.5]
