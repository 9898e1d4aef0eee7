from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

from analyses.numerics.filtering.item_response import (
    CENTRE_SD,
    MIDDLE_SD,
    ODDS_SD,
    SLOPE_SD,
    TwoParameterFit,
    fit_two_parameter,
    flag_easy_or_undiscriminating,
)

GRID = np.linspace(-9, 9, 1501)
"""Abilities at which the slow version adds up the normal density."""


def planted(n_prompts: int, n_models: int, *, seed: int = 0, typical: float = 1.0, floors: np.ndarray | float = 0.0):
    """Discrimination, difficulty, ability, and answers drawn from them."""
    random = np.random.default_rng(seed)
    a, b = typical * np.exp(random.normal(0, 0.5, n_prompts)), random.normal(0, 1, n_prompts)
    ability = random.normal(size=n_models)
    known = expit(a[:, None] * (ability - b[:, None]))
    floor = np.broadcast_to(floors, n_prompts)[:, None]
    right = random.random((n_prompts, n_models)) < floor + (1 - floor) * known
    return a, b, ability, right.astype(np.float64)


def log_posterior(numbers: np.ndarray, right: np.ndarray, floors: np.ndarray | None = None) -> float:
    """Marginal log posterior from its definition.

    Args:
        numbers: slopes of all prompts, then their ``c``, then the typical slope and the middle ability.
        right: ``(n_prompts, n_models)``.
        floors: ``(n_prompts,)``.
    """
    n = len(right)
    g = (np.zeros(n) if floors is None else floors)[:, None]
    slopes, c, centre, middle = numbers[:n], numbers[n : 2 * n], numbers[-2], numbers[-1]
    odds = np.exp(slopes)[:, None] * (GRID - middle) - c[:, None]
    by_model = (right == 1).T @ np.log(g + (1 - g) * expit(odds)) + (right == 0).T @ (np.log1p(-g) + log_expit(-odds))
    weights = -(GRID**2) / 2 - np.log(2 * np.pi) / 2 + np.log(GRID[1] - GRID[0])
    priors = ((slopes - centre) / SLOPE_SD) ** 2 + (c / ODDS_SD) ** 2
    hyper = (centre / CENTRE_SD) ** 2 + (middle / MIDDLE_SD) ** 2
    return float(logsumexp(by_model + weights, axis=1).sum() - (priors.sum() + hyper) / 2)


def slow_two_parameter(
    right: np.ndarray, floors: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Difficulty, discrimination, log posterior and all numbers, by climbing the posterior from its definition."""
    n = len(right)
    result = minimize(
        lambda x: -log_posterior(x, right, floors), np.zeros(2 * n + 2), method="BFGS", options={"gtol": 1e-6}
    )
    a = np.exp(result.x[:n])
    return result.x[-1] + result.x[n : 2 * n] / a, a, -result.fun, result.x


def small_table(*, missing: bool) -> np.ndarray:
    right = planted(5, 14, seed=3)[3]
    right[3] = 1.0
    if missing:
        right[np.random.default_rng(1).random(right.shape) < 0.2] = np.nan
    return right


def same(a: TwoParameterFit, b: TwoParameterFit, *, exactly: bool) -> None:
    for name in TwoParameterFit.__dataclass_fields__:
        if exactly:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        elif name != "n_iterations":
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-5)


class TestAgainstReference:
    @pytest.mark.parametrize("floors", [None, np.array([0.25, 0.1, 0.0, 0.5, 0.25])])
    @pytest.mark.parametrize("missing", [False, True])
    def test_small_tables_reach_the_top_of_the_posterior_written_out(self, missing, floors):
        right = small_table(missing=missing)
        result = fit_two_parameter(right, floors)
        difficulty, discrimination, top, _ = slow_two_parameter(right, floors)
        np.testing.assert_allclose(result.difficulty, difficulty, atol=1e-4)
        np.testing.assert_allclose(result.discrimination, discrimination, atol=1e-4)
        assert result.log_posterior == pytest.approx(top, abs=1e-7)

    @pytest.mark.parametrize("floors", [None, np.array([0.25, 0.1, 0.0, 0.5, 0.25])])
    def test_standard_errors_are_those_of_numerical_second_derivatives(self, floors):
        right = small_table(missing=True)
        result = fit_two_parameter(right, floors)
        *_, numbers = slow_two_parameter(right, floors)
        step, n = 1e-3, len(right)
        for i in range(n):

            def moved(first: float, second: float, i: int = i) -> float:
                known = numbers.copy()
                known[i] += first
                known[n + i] += second
                return -log_posterior(known, right, floors)

            hessian = np.empty((2, 2))
            units = np.eye(2) * step
            for r in range(2):
                for s in range(2):
                    corners = [moved(*(p * units[r] + q * units[s])) * p * q for p in (1, -1) for q in (1, -1)]
                    hessian[r, s] = sum(corners) / (4 * step * step)
            a, c = np.exp(numbers[i]), numbers[n + i]
            gradient = np.array([[-c / a, 1 / a], [a, 0.0]])  # of difficulty and of discrimination
            errors = np.sqrt(np.diag(gradient @ np.linalg.inv(hessian) @ gradient.T))
            np.testing.assert_allclose(
                [result.difficulty_stderr[i], result.discrimination_stderr[i]], errors, rtol=2e-3
            )

    @pytest.mark.parametrize("seed", range(3))
    def test_planted_numbers_are_found_among_a_thousand_models(self, seed):
        a, b, ability, right = planted(200, 1000, seed=seed)
        result = fit_two_parameter(right)
        assert result.converged
        assert np.corrcoef(result.difficulty, b)[0, 1] >= 0.97
        assert np.corrcoef(result.discrimination, a)[0, 1] >= 0.94
        assert np.corrcoef(np.log(result.discrimination), np.log(a))[0, 1] >= 0.94
        assert np.corrcoef(result.ability, ability)[0, 1] >= 0.97

    @pytest.mark.parametrize(("n_tables", "n_prompts"), [(1, 200), pytest.param(10, 1000, marks=pytest.mark.soak)])
    def test_floors_give_prompts_of_4_and_10_options_one_scale_of_difficulty(self, n_tables, n_prompts):
        floors = np.where(np.arange(n_prompts) % 2, 0.25, 0.1)
        correlations, shares = [], []
        for seed in range(1, 1 + n_tables):
            _, b, _, right = planted(n_prompts, 200, seed=seed, floors=floors)
            fits = fit_two_parameter(right), fit_two_parameter(right, floors)
            assert fits[1].converged
            correlations.append([np.corrcoef(fit.difficulty, b)[0, 1] for fit in fits])
            easy = fits[1].difficulty <= np.percentile(fits[1].difficulty, 25)
            shares.append([easy[floors == floor].mean() for floor in (0.25, 0.1)])
        plain, with_floors = np.mean(correlations, axis=0)
        print(f"\nr(b) over {n_tables} tables: {with_floors:.3f}, without floors {plain:.3f}; ", end="")
        print("easiest quarter: {:.0%} of 4-option, {:.0%} of 10-option prompts".format(*np.mean(shares, axis=0)))
        assert with_floors >= (0.95 if n_tables > 1 else 0.92)
        assert plain < with_floors - 0.03
        np.testing.assert_allclose(np.mean(shares, axis=0), 0.25, atol=0.03 if n_tables > 1 else 0.1)

    def test_standard_errors_are_as_large_as_the_errors_of_planted_numbers(self):
        a, b, _, right = planted(200, 1000, seed=4)
        result = fit_two_parameter(right)
        assert 0.8 < ((result.difficulty - b) / result.difficulty_stderr).std() < 1.25
        assert 0.8 < ((result.discrimination - a) / result.discrimination_stderr).std() < 1.25

    def test_few_models_and_many_prompts_keep_a_scale_far_from_that_of_the_priors(self):
        a, _, ability, right = planted(3000, 40, seed=1, typical=3.0)
        result = fit_two_parameter(right)
        assert result.converged
        assert np.exp(np.log(result.discrimination / a).mean()) == pytest.approx(ability.std(), rel=0.05)
        assert result.ability.std() == pytest.approx(1.0, abs=0.03)


class TestLaws:
    @settings(max_examples=8)
    @given(st.integers(0, 1000))
    def test_the_order_of_prompts_does_not_matter(self, seed):
        right = planted(30, 9, seed=seed)[3]
        order = np.random.default_rng(seed).permutation(30)
        result, moved = fit_two_parameter(right), fit_two_parameter(right[order])
        np.testing.assert_array_equal(result.difficulty[order], moved.difficulty)
        np.testing.assert_array_equal(result.discrimination_stderr[order], moved.discrimination_stderr)
        assert result.log_posterior == moved.log_posterior

    @settings(max_examples=8)
    @given(st.integers(0, 1000))
    def test_the_order_of_models_does_not_matter(self, seed):
        right = planted(30, 9, seed=seed)[3]
        order = np.random.default_rng(seed).permutation(9)
        result, moved = fit_two_parameter(right), fit_two_parameter(right[:, order])
        np.testing.assert_allclose(result.difficulty, moved.difficulty, atol=1e-5)
        np.testing.assert_allclose(result.discrimination, moved.discrimination, atol=1e-5)
        np.testing.assert_allclose(result.ability[order], moved.ability, atol=1e-5)

    @settings(max_examples=8)
    @given(st.integers(0, 1000))
    def test_right_and_wrong_changed_about_turn_the_scale_round(self, seed):
        right = planted(30, 12, seed=seed)[3]
        right[np.random.default_rng(seed).random(right.shape) < 0.1] = np.nan
        result, turned = fit_two_parameter(right), fit_two_parameter(1 - right)
        np.testing.assert_allclose(result.difficulty, -turned.difficulty, atol=1e-5)
        np.testing.assert_allclose(result.discrimination, turned.discrimination, atol=1e-5)
        np.testing.assert_allclose(result.ability, -turned.ability, atol=1e-5)

    def test_prompts_with_equal_answers_have_equal_numbers(self):
        right = planted(40, 6)[3]
        result = fit_two_parameter(np.concatenate([right, right]))
        for name in ("difficulty", "discrimination", "difficulty_stderr", "discrimination_stderr"):
            numbers = getattr(result, name)
            np.testing.assert_array_equal(numbers[:40], numbers[40:])

    def test_abilities_have_mean_0_and_standard_deviation_1(self):
        result = fit_two_parameter(planted(2500, 60, seed=2)[3])
        assert result.ability.mean() == pytest.approx(0, abs=0.01)
        assert result.ability.std() == pytest.approx(1, abs=0.01)

    def test_any_number_of_workers_finds_the_same_bytes(self):
        right = planted(3000, 14, seed=5)[3]
        alone = fit_two_parameter(right)
        with parallel_config(n_jobs=3, backend="threading"):
            same(alone, fit_two_parameter(right), exactly=True)

    def test_a_prompt_that_better_models_get_wrong_discriminates_least(self):
        _, _, ability, right = planted(300, 60, seed=6)
        right[0] = ability < np.median(ability)
        result = fit_two_parameter(right)
        assert 0 < result.discrimination[0] == result.discrimination.min()

    def test_an_early_stop_is_not_converged(self):
        result = fit_two_parameter(planted(40, 20)[3], max_iterations=2)
        assert (result.n_iterations, result.converged) == (2, False)


class TestDegenerate:
    def test_all_right_and_all_wrong_have_finite_numbers_at_either_end(self):
        right = planted(50, 10)[3]
        right[0], right[1] = 1.0, 0.0
        result = fit_two_parameter(right)
        assert result.converged
        assert result.difficulty[0] == result.difficulty.min()
        assert result.difficulty[1] == result.difficulty.max()
        assert np.isfinite(result.difficulty_stderr).all()

    @pytest.mark.parametrize("value", [0.0, 1.0])
    @pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (40, 3)])
    def test_a_table_of_one_answer_has_finite_numbers(self, shape, value):
        result = fit_two_parameter(np.full(shape, value))
        assert result.converged
        for numbers in (result.difficulty, result.discrimination, result.difficulty_stderr, result.ability):
            assert np.isfinite(numbers).all()
        assert (result.difficulty < 0).all() if value else (result.difficulty > 0).all()

    def test_models_with_equal_answers_have_equal_abilities(self):
        result = fit_two_parameter(np.repeat(planted(30, 1)[3], 4, axis=1))
        assert result.converged
        np.testing.assert_allclose(result.ability, result.ability[0], atol=1e-9)

    def test_prompts_and_models_without_scores_have_no_numbers_and_change_none(self):
        right = planted(20, 8)[3]
        wide = np.full((23, 9), np.nan)
        rows, columns = [i for i in range(23) if i not in (0, 7, 22)], [j for j in range(9) if j != 4]
        wide[np.ix_(rows, columns)] = right
        result, within = fit_two_parameter(right), fit_two_parameter(wide)
        np.testing.assert_array_equal(within.difficulty[rows], result.difficulty)
        np.testing.assert_array_equal(within.discrimination_stderr[rows], result.discrimination_stderr)
        np.testing.assert_array_equal(within.ability[columns], result.ability)
        assert within.log_posterior == result.log_posterior
        assert np.isnan(within.difficulty[[0, 7, 22]]).all()
        assert np.isnan(within.ability[4])

    @pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (3, 2)])
    def test_without_any_score_there_are_no_numbers(self, shape):
        result = fit_two_parameter(np.full(shape, np.nan))
        assert result.difficulty.shape == result.discrimination_stderr.shape == shape[:1]
        assert result.ability.shape == shape[1:]
        assert np.isnan(result.difficulty).all()
        assert np.isnan(result.ability).all()
        assert np.isnan(result.log_posterior)
        assert not flag_easy_or_undiscriminating(result).any()


class TestTooEasyOrDull:
    @staticmethod
    def of(difficulty: list[float], discrimination: list[float]) -> TwoParameterFit:
        b, a = np.array(difficulty), np.array(discrimination)
        return TwoParameterFit(
            difficulty=b, discrimination=a, difficulty_stderr=b, discrimination_stderr=a, ability=np.zeros(2),
            n_iterations=1, converged=True, log_posterior=0.0,
        )  # fmt: skip

    def test_either_takes_the_lowest_of_both_and_both_takes_what_is_lowest_twice(self):
        result = self.of([-2, -1, 0, 1, 2], [0.5, 3, 4, 2, 0.6])
        assert flag_easy_or_undiscriminating(result).tolist() == [True, True, False, False, True]
        assert flag_easy_or_undiscriminating(result, combine="both").tolist() == [True, False, False, False, False]

    def test_prompts_with_equal_numbers_go_together(self):
        result = self.of([-3, -3, -3, -3, 1, 2], [1, 2, 3, 4, 5, 6])
        assert flag_easy_or_undiscriminating(result).tolist() == [True, True, True, True, False, False]

    def test_a_quarter_of_different_prompts_is_a_quarter(self):
        result = self.of(list(np.arange(101.0)), list(np.arange(101.0)[::-1]))
        assert flag_easy_or_undiscriminating(result, percentile=10).sum() == 22
        assert flag_easy_or_undiscriminating(result, percentile=10, combine="both").sum() == 0

    def test_prompts_without_numbers_stay(self):
        result = self.of([np.nan, 0, 1], [np.nan, 1, 2])
        assert flag_easy_or_undiscriminating(result, percentile=100).tolist() == [False, True, True]
