from __future__ import annotations

import numpy as np
import pytest
from mixed_tables import dense_laplace, draw_design, draw_table
from scipy.special import expit

from analyses.numerics.mixed.design import build_design
from analyses.numerics.mixed.effects import expected_scores, task_effects
from analyses.numerics.mixed.laplace import MAX_SD, LaplaceLikelihood, fit_logistic

SD = np.array([0.6, 0.3, 0.4, 0.5, 1.0])


def quadrature(Q: np.ndarray, sd_model: float, sd_prompt: float) -> float:
    """The logarithm of the exact likelihood of 3 models in one task, the intercept integrated out with a flat prior.

    The levels of the models, a = intercept + effect, have the density of independent normal variables with a common
    mean of flat prior. Prompts with equal scores have equal integrals.
    """
    grid = np.linspace(-9, 9, 31)
    a = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    k = a.shape[1]
    centered = a - a.mean(axis=1, keepdims=True)
    value = -0.5 * (k - 1) * np.log(2 * np.pi * sd_model**2) - 0.5 * np.log(k)
    log_density = value - (centered**2).sum(axis=1) / (2 * sd_model**2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    for scores, count in zip(*np.unique(Q, axis=0, return_counts=True), strict=True):
        total = np.zeros(len(a))
        for node, weight in zip(nodes, weights, strict=True):
            total += weight * expit((2 * scores - 1) * (a + sd_prompt * node)).prod(axis=1)
        log_density += count * np.log(total)
    top = log_density.max()
    return float(top + np.log(np.exp(log_density - top).sum()) + 3 * np.log(grid[1] - grid[0]))


def laplace(Q: np.ndarray, sd_model: float, sd_prompt: float) -> float:
    design = build_design(Q, np.zeros(len(Q), dtype=np.int64))
    return LaplaceLikelihood(design)(np.array([sd_model, 0, 0, 0, sd_prompt]))[0]


class TestAgainstReference:
    @pytest.mark.parametrize("zero", [(), (1,), (0, 2), (3,), (4,)])
    def test_the_approximation_is_that_of_the_dense_hessian(self, zero):
        design, sd = draw_design(3, binary=True), SD.copy()
        sd[list(zero)] = 0
        assert LaplaceLikelihood(design)(sd)[0] == pytest.approx(dense_laplace(design, sd), rel=1e-9)

    def test_derivatives_are_those_of_differences(self):
        design, step = draw_design(4, binary=True), 1e-4
        likelihood = LaplaceLikelihood(design)
        slope = likelihood(SD)[1]
        for component in range(5):
            ends = []
            for sign in (1, -1):
                variances = SD**2
                variances[component] += sign * step
                ends.append(likelihood(np.sqrt(variances))[0])
            assert slope[component] == pytest.approx((ends[0] - ends[1]) / step, rel=1e-4, abs=1e-5)

    def test_the_last_mode_does_not_change_the_value(self):
        design = draw_design(5, binary=True)
        likelihood = LaplaceLikelihood(design)
        first = likelihood(SD)[0]
        likelihood(np.array([3.0, 1.0, 0.0, 2.0, 5.0]))
        assert likelihood(SD)[0] == pytest.approx(first, rel=1e-9)

    @pytest.mark.parametrize(("sd_model", "sd_prompt", "bound"), [(0.5, 0.3, 0.1), (1.0, 1.0, 0.6)])
    def test_quadrature_bounds_the_error_on_tables_of_three_models(self, sd_model, sd_prompt, bound):
        errors = []
        for seed in range(3):
            Q = draw_table(seed, (12, 3, 1), sd=(sd_model, 0, 0, sd_prompt, 1), binary=True).Q
            errors.append(laplace(Q, sd_model, sd_prompt) - quadrature(Q, sd_model, sd_prompt))
        print(f"\nLaplace minus quadrature, log-likelihood, 12 prompts of 3 models: {np.round(errors, 3)}")
        assert np.abs(errors).max() < bound


class TestLaws:
    def test_swapping_0_and_1_turns_the_effects_round(self):
        table = draw_table(6, (40, 6, 3), missing=0.1, binary=True)
        first = fit_logistic(build_design(table.Q, table.tasks))
        second = fit_logistic(build_design(1 - table.Q, table.tasks))
        assert second.log_likelihood == pytest.approx(first.log_likelihood, rel=1e-8)
        assert second.eta == pytest.approx(-first.eta, abs=1e-3)

    def test_expected_scores_integrate_the_effect_of_a_prompt(self):
        table = draw_table(7, (40, 6, 3), binary=True)
        fit = fit_logistic(build_design(table.Q, table.tasks))
        draws = np.random.default_rng(0).normal(0, fit.effect_sd[4], 200_000)
        assert expected_scores(fit, np.array([0.7]))[0] == pytest.approx(expit(0.7 + draws).mean(), abs=2e-3)
        assert (np.abs(task_effects(fit).mean - 0.5) < 0.5).all()


class TestDegenerate:
    def test_prompts_that_all_or_no_models_solve_have_a_variance_at_the_limit(self):
        Q = np.repeat(np.arange(12)[:, None] % 2.0, 5, axis=1)
        fit = fit_logistic(build_design(Q, np.zeros(12, dtype=np.int64)))
        assert fit.sd[4] == MAX_SD
        assert fit.at_limit.tolist() == [False, False, False, False, True]

    def test_a_model_that_solves_everything_has_a_finite_effect(self):
        Q = np.column_stack([draw_table(8, (30, 4, 1), binary=True).Q, np.ones(30)])
        fit = fit_logistic(build_design(Q, np.zeros(30, dtype=np.int64)))
        assert np.isfinite(fit.eta).all()
        assert not fit.at_limit.any()
