"""Scores as rational numbers: those a file had, or counts of prompts, whatever floats make of them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import fsum, lcm

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays

from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import ExactScores, exact_scores

DECIMALS = st.decimals(-1000, 1000, places=6, allow_nan=False)
TABLES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=st.floats(allow_infinity=False))


def as_fractions(scores: ExactScores) -> list[list[Fraction]]:
    return [[Fraction(cell, scores.denominator) for cell in row] for row in scores.numerators]


class TestAgainstReference:
    @given(st.lists(st.lists(DECIMALS, min_size=3, max_size=3), min_size=1, max_size=4))
    def test_decimal_numbers_are_those_that_were_printed(self, printed: list[list[Decimal]]) -> None:
        scores = exact_scores(np.array(printed, dtype=np.float64))
        assert as_fractions(scores) == [[Fraction(cell) for cell in row] for row in printed]

    @given(st.lists(st.integers(1, 20_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1))
    def test_counts_over_their_number_of_prompts_are_those_fractions(self, counts: list[tuple[int, int]]) -> None:
        values = np.array([[k / n for k, n in counts]])
        scores = exact_scores(values, np.array([[n for _, n in counts]]))
        assert as_fractions(scores) == [[Fraction(k, n) for k, n in counts]]

    def test_a_count_is_known_although_its_quotient_prints_with_15_digits(self) -> None:
        assert repr(31 / 57) == "0.543859649122807"
        assert as_fractions(exact_scores(np.array([[31 / 57]]), np.array([[57]]))) == [[Fraction(31, 57)]]

    def test_means_that_summation_left_a_little_off_are_counts_too(self) -> None:
        mean = float(np.nextafter(2 / 3, 1))
        assert as_fractions(exact_scores(np.array([[mean, 2 / 3]]), np.array([[3, 3]]))) == [[Fraction(2, 3)] * 2]

    @given(TABLES)
    def test_any_float_comes_back_from_its_fraction(self, T: np.ndarray) -> None:
        scores = exact_scores(T)
        back = np.array([[float(cell) for cell in row] for row in as_fractions(scores)])
        assert np.array_equal(np.where(scores.present, back, np.nan), T, equal_nan=True)
        assert not scores.numerators[~scores.present].any()

    @given(TABLES)
    def test_the_denominator_is_the_least_that_all_have_in_common(self, T: np.ndarray) -> None:
        scores = exact_scores(T)
        assert scores.denominator == lcm(1, *(cell.denominator for row in as_fractions(scores) for cell in row))


class TestLaws:
    @given(arrays(np.float64, (4, 5), elements=DECIMALS.map(float)))
    def test_smaller_is_better_turns_the_order_round(self, T: np.ndarray) -> None:
        up, down = exact_scores(T), exact_scores(T, higher_is_better=False)
        assert np.array_equal(down.numerators, -up.numerators)
        assert np.array_equal(down.T, -T)
        for row, turned in zip(up.numerators, down.numerators, strict=True):
            assert np.array_equal(average_ranks(row) + average_ranks(turned), np.full(5, 6.0))

    @given(arrays(np.float64, (4, 5), elements=DECIMALS.map(float)))
    def test_rows_and_columns_keep_their_numbers(self, T: np.ndarray) -> None:
        scores = exact_scores(T)
        part = scores.rows(np.array([2, 0])).columns(np.array([True, False, True, False, True]))
        assert (part.n_tasks, part.n_models, part.denominator) == (2, 3, scores.denominator)
        assert np.array_equal(part.numerators, scores.numerators[[2, 0]][:, ::2])
        assert np.array_equal(part.T, T[[2, 0]][:, ::2])


class TestTies:
    def test_sums_that_floats_distinguish_are_tied(self) -> None:
        T = np.array([[0.1, 0.3], [0.2, 0.0]])
        assert T.sum(axis=0)[0] != T.sum(axis=0)[1]
        assert average_ranks(exact_scores(T).numerators.sum(axis=0)).tolist() == [1.5, 1.5]

    def test_thirds_of_three_prompts_add_up_to_one(self) -> None:
        T, n = np.array([[1 / 3, 1.0], [2 / 3, 0.0]]), np.full((2, 2), 3)
        assert average_ranks(exact_scores(T, n).numerators.sum(axis=0)).tolist() == [1.5, 1.5]

    @pytest.mark.parametrize("parts", [3, 10, 100])
    def test_means_of_parts_of_prompts_tie_whichever_prompts_they_came_from(self, parts: int) -> None:
        rng = np.random.default_rng(parts)
        counts = [rng.permutation(rng.integers(0, parts + 1, 500)) for _ in range(20)]
        means = [[fsum(k / parts for k in rng.permutation(count).tolist()) / 500 for _ in range(2)] for count in counts]
        scores = exact_scores(np.array(means), np.full((20, 2), 500))
        assert as_fractions(scores) == [[Fraction(int(count.sum()), parts * 500)] * 2 for count in counts]

    def test_a_printed_decimal_is_no_count(self) -> None:
        assert as_fractions(exact_scores(np.array([[0.3333]]), np.array([[3]]))) == [[Fraction(3333, 10_000)]]

    def test_a_mean_of_partial_scores_is_no_count(self) -> None:
        value = 0.1234567890123456
        assert as_fractions(exact_scores(np.array([[value]]), np.array([[10]]))) == [[Fraction(str(value))]]

    def test_the_signs_of_zero_are_one_number(self) -> None:
        assert exact_scores(np.array([[0.0, -0.0]])).numerators.tolist() == [[0, 0]]


class TestDegenerate:
    def test_a_sum_of_prompts_that_no_float_holds(self) -> None:
        assert as_fractions(exact_scores(np.array([[1e308]]), np.array([[37]]))) == [[Fraction(10**308)]]

    def test_scores_that_were_not_measured_are_missing(self) -> None:
        scores = exact_scores(np.array([[np.nan, 0.5], [np.nan, np.nan]]))
        assert scores.present.tolist() == [[False, True], [False, False]]
        assert not scores.is_complete
        assert (scores.numerators.tolist(), scores.denominator) == ([[0, 1], [0, 0]], 2)

    @pytest.mark.parametrize("shape", [(0, 3), (2, 0), (1, 1)])
    def test_tables_without_a_score(self, shape: tuple[int, int]) -> None:
        scores = exact_scores(np.full(shape, np.nan))
        assert (scores.n_tasks, scores.n_models, scores.denominator) == (*shape, 1)

    @pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, 1e22, 1e-7, 123456789012345680.0, -2.5e-10])
    def test_numbers_printed_with_an_exponent(self, value: float) -> None:
        assert as_fractions(exact_scores(np.array([[value]]))) == [[Fraction(repr(value))]]
