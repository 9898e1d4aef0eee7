"""Win rates by both rules, in exact numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.win_rates import WIN_RATE_RULES, WinRateRule, pairwise_wins, rank_codes, win_rates

NAN = np.nan


def gappy(seed: int) -> NDArray[np.float64]:
    """Few different scores, a quarter of them missing."""
    rng = np.random.default_rng(seed)
    T = rng.integers(0, 4, rng.integers(1, 9, 2)).astype(float)
    T[rng.random(T.shape) < 0.25] = NAN
    return T


def plain_share(T: NDArray[np.float64], i: int, j: int) -> Fraction:
    both = [t for t in range(len(T)) if not np.isnan(T[t, i]) and not np.isnan(T[t, j])]
    return Fraction(sum(int(T[t, i] > T[t, j]) for t in both), len(both)) if both else Fraction(0)


def plain_rate_per_task(T: NDArray[np.float64], i: int) -> Fraction:
    rates: list[Fraction] = []
    for row in T:
        rivals = [row[j] for j in range(len(row)) if j != i and not np.isnan(row[j])]
        if not np.isnan(row[i]) and rivals:
            points = sum(2 * int(row[i] > x) + int(row[i] == x) for x in rivals)
            rates.append(Fraction(points, 2 * len(rivals)))
    return sum(rates, Fraction(0)) / len(rates) if rates else Fraction(0)


class TestAgainstReference:
    @given(st.integers(0, 10**6))
    def test_shares_of_tasks_won_are_those_of_a_plain_count(self, seed: int) -> None:
        T = gappy(seed)
        pairs = pairwise_wins(exact_scores(T))
        for i in range(T.shape[1]):
            for j in range(T.shape[1]):
                assert Fraction(int(pairs.wins[i, j]), pairs.denominator) == plain_share(T, i, j)

    @given(st.integers(0, 10**6))
    def test_rates_are_those_of_their_definitions(self, seed: int) -> None:
        T = gappy(seed)
        m = T.shape[1]
        pairwise = [sum((plain_share(T, i, j) for j in range(m)), Fraction(0)) / m for i in range(m)]
        assert win_rates(exact_scores(T), rule="pairwise") == pairwise
        assert win_rates(exact_scores(T), rule="per_task") == [plain_rate_per_task(T, i) for i in range(m)]

    def test_the_papers_example(self) -> None:
        three = np.array([[3, 2, 1]] * 4 + [[1, 3, 2]] * 3 + [[2, 1, 3]] * 2, dtype=float)
        four = np.array([[4, 3, 1, 2]] * 4 + [[1, 4, 2, 3]] * 3 + [[3, 2, 4, 1]] * 2, dtype=float)
        assert win_rates(exact_scores(three)) == [Fraction(10, 27), Fraction(10, 27), Fraction(7, 27)]
        # The paper prints 17/36 for the first; by its own rankings it wins 6 + 4 + 6 of 36.
        assert win_rates(exact_scores(four))[:3] == [Fraction(16, 36), Fraction(19, 36), Fraction(9, 36)]
        assert win_rates(exact_scores(four), [0, 1, 2]) == win_rates(exact_scores(three))


class TestLaws:
    @given(st.integers(0, 10**6), st.sampled_from(WIN_RATE_RULES))
    def test_rates_belong_to_models_whatever_their_order(self, seed: int, rule: WinRateRule) -> None:
        T = gappy(seed)
        order = np.random.default_rng(seed).permutation(T.shape[1])
        rates = win_rates(exact_scores(T), rule=rule)
        assert win_rates(exact_scores(T), order, rule=rule) == [rates[model] for model in order]

    @given(st.integers(0, 10**6), st.sampled_from(WIN_RATE_RULES))
    def test_who_does_not_stand_has_no_influence(self, seed: int, rule: WinRateRule) -> None:
        T = gappy(seed)
        field = np.flatnonzero(np.random.default_rng(seed).random(T.shape[1]) < 0.6)
        alone = win_rates(exact_scores(T[:, field]), rule=rule)
        assert win_rates(exact_scores(T), field, rule=rule) == alone

    def test_without_gaps_half_a_point_for_a_tie_makes_rates_average_one_half(self) -> None:
        T = np.random.default_rng(0).integers(0, 3, (5, 7)).astype(float)
        assert sum(win_rates(exact_scores(T), rule="per_task")) / 7 == Fraction(1, 2)

    def test_many_different_numbers_of_shared_tasks_do_not_overflow(self) -> None:
        rng = np.random.default_rng(1)
        T = rng.integers(0, 5, (97, 12)).astype(float)
        T[rng.random(T.shape) < np.linspace(0, 0.8, 12)] = NAN
        pairs = pairwise_wins(exact_scores(T))
        assert pairs.denominator > 2**64
        assert Fraction(int(pairs.wins[3, 9]), pairs.denominator) == plain_share(T, 3, 9)
        assert win_rates(exact_scores(T))[4] == sum(plain_share(T, 4, j) for j in range(12)) / 12


class TestTies:
    def test_scores_are_compared_as_they_were_read(self) -> None:
        # 0.1 + 0.2 is a third of 0.9 in a file, and a float of its own here.
        T = np.array([[0.1 + 0.2, 0.3], [5.0, 5.0]])
        n_prompts = np.array([[10, 10], [1, 1]])
        assert win_rates(exact_scores(T, n_prompts)) == [Fraction(0), Fraction(0)]
        assert win_rates(exact_scores(T, n_prompts), rule="per_task") == [Fraction(1, 2), Fraction(1, 2)]

    def test_codes_order_scores_and_leave_out_gaps(self) -> None:
        T = np.array([[0.5, NAN, 0.25, 0.5], [NAN, NAN, NAN, NAN]])
        assert rank_codes(exact_scores(T)).tolist() == [[2, 0, 1, 2], [0, 0, 0, 0]]

    def test_where_less_is_better_the_least_wins(self) -> None:
        scores = exact_scores(np.array([[1.0, 2.0]]), higher_is_better=False)
        assert win_rates(scores) == [Fraction(1, 2), Fraction(0)]


class TestDegenerateInput:
    @pytest.mark.parametrize("rule", WIN_RATE_RULES)
    def test_without_rivals_nobody_wins(self, rule: WinRateRule) -> None:
        for T in (np.array([[1.0], [2.0]]), np.array([[1.0, NAN], [NAN, 2.0]]), np.full((2, 3), NAN), np.zeros((0, 2))):
            assert win_rates(exact_scores(T), rule=rule) == [Fraction(0)] * T.shape[1]

    def test_a_task_with_one_model_gives_no_rate(self) -> None:
        T = np.array([[3.0, 2.0, 2.0], [NAN, 1.0, NAN]])
        assert win_rates(exact_scores(T), rule="per_task") == [Fraction(1), Fraction(1, 4), Fraction(1, 4)]
