from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from mixed_tables import SimulatedTable, dense_columns, dense_gaussian, draw_design, draw_table
from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

from analyses.numerics.mixed.by_statsmodels import explain_no_statsmodels, maximize_by_statsmodels
from analyses.numerics.mixed.design import build_design
from analyses.numerics.mixed.effects import effects_on_tasks, prompt_effects, share_intervals, task_effects
from analyses.numerics.mixed.fit import MixedFit
from analyses.numerics.mixed.gaussian import fit_gaussian, gaussian_likelihood

SD = np.array([0.6, 0.3, 0.4, 0.5, 0.9])
TABLES = range(20)
RELATIVE = 1e-6


def small_table(seed: int) -> SimulatedTable:
    """Complete, with 10 % or with 30 % missing; every fourth with scores of 0 and 1."""
    return draw_table(seed, missing=(0, 0.1, 0.3)[seed % 3], binary=seed % 4 == 3)


def statsmodels_of(table: SimulatedTable) -> MixedLM:
    """The same model as one group with crossed variance components."""
    p, j = np.nonzero(~np.isnan(table.Q))
    frame = pd.DataFrame(
        {"y": table.Q[p, j], "p": p, "m": j, "t": table.tasks[p], "mt": table.tasks[p] * 100 + j, "g": 1}
    )
    parts = {"a": "0 + C(m)", "b": "0 + C(t)", "c": "0 + C(mt)", "d": "0 + C(p)"}
    return sm.MixedLM.from_formula("y ~ 1", frame, groups="g", vc_formula=parts, re_formula="0")


def likelihood_of(model: MixedLM, fit: MixedFit) -> float:
    """The log-likelihood of statsmodels at the variances of a fit; it profiles the rest."""
    model.reml, model.cov_pen, model.fe_pen, model._cov_sing = fit.is_restricted, None, None, 0  # as `fit` sets them
    return float(model.loglike(parameters_of(fit)))


def parameters_of(fit: MixedFit) -> MixedLMParams:
    """The variances of a fit in the form of statsmodels, which divides by them."""
    ratios = np.maximum(fit.sd / fit.residual_sd, 1e-5)[[0, 2, 3, 4]] ** 2
    return MixedLMParams.from_components(np.zeros(1), np.zeros((0, 0)), vcomp=ratios)


@cache
def fitted(seed: int, restricted: bool) -> MixedFit:
    table = small_table(seed)
    return fit_gaussian(build_design(table.Q, table.tasks), restricted=restricted)


class TestAgainstStatsmodels:
    @pytest.mark.parametrize("seed", TABLES)
    def test_the_likelihood_at_the_optimum_is_the_same(self, seed):
        model = statsmodels_of(small_table(seed))
        for restricted in (True, False):
            fit = fitted(seed, restricted)
            assert fit.has_converged
            assert fit.log_likelihood == pytest.approx(likelihood_of(model, fit), rel=RELATIVE / 10)

    @pytest.mark.parametrize("restricted", [True, False])
    @pytest.mark.parametrize("seed", range(4))
    def test_its_fit_with_families_and_covariates_has_the_same_likelihood(self, seed, restricted):
        rng = np.random.default_rng(seed)
        n, k = 60, 8
        Q = 0.5 * rng.normal(size=(n, k)) + rng.normal(size=(n, 1)) + rng.normal(size=k)
        Q[rng.random((n, k)) < 0.1] = np.nan
        design = build_design(
            Q,
            np.arange(n) % 5,
            families=np.arange(k) // 2,
            model_covariates=rng.normal(size=(k, 1)),
            prompt_covariates=rng.normal(size=(n, 1)),
        )
        fit = fit_gaussian(design, restricted=restricted)
        assert explain_no_statsmodels(design) == ""
        assert maximize_by_statsmodels(fit) == pytest.approx(fit.log_likelihood, rel=RELATIVE / 100)

    def test_it_leaves_variances_that_are_not_the_best(self):
        """From wrong variances it goes up, so that its value can differ from that of a wrong fit."""
        fit = fitted(0, restricted=True)
        wrong = replace(fit, sd=fit.sd * np.array([3.0, 1.0, 0.2, 2.0, 0.5]))
        start = gaussian_likelihood(fit.design, wrong.sd / wrong.residual_sd, restricted=True).value
        assert start < fit.log_likelihood - 1
        assert maximize_by_statsmodels(wrong) == pytest.approx(fit.log_likelihood, rel=1e-3)

    def test_large_tables_are_not_fitted(self):
        design = build_design(np.random.default_rng(1).normal(size=(200, 6)), np.zeros(200, dtype=np.int64))
        assert explain_no_statsmodels(design) == "statsmodels fits tables of at most 1,000 scores"

    @pytest.mark.parametrize("restricted", [True, False])
    def test_no_table_has_a_better_optimum(self, restricted):
        differences = [best_of_statsmodels(seed, restricted, ("lbfgs",)) for seed in TABLES[:6]]
        assert max(differences) <= RELATIVE

    @pytest.mark.soak
    def test_the_optimum_is_that_of_statsmodels_on_20_tables(self):
        """Its optimizers start from its own variances, where some stop early, and from those of this fit."""
        methods = ("lbfgs", "bfgs", "powell")
        for restricted in (True, False):
            unaided = [best_of_statsmodels(seed, restricted, methods) for seed in TABLES]
            best = [
                max(first, best_of_statsmodels(seed, restricted, methods, starts_here=True))
                for seed, first in zip(TABLES, unaided, strict=True)
            ]
            print(
                f"\nlog-likelihood of statsmodels' best fit minus that of this fit, relative, "
                f"{'REML' if restricted else 'ML'}: {min(best):.1e} to {max(best):.1e}; from its own start alone "
                f"{min(unaided):.1e} to {max(unaided):.1e}, "
                f"{sum(abs(difference) <= RELATIVE for difference in unaided)} of 20 within 1e-6"
            )
            assert np.abs(best).max() <= RELATIVE


def best_of_statsmodels(seed: int, restricted: bool, methods: tuple[str, ...], starts_here: bool = False) -> float:
    """How much higher the best fit of statsmodels is, relative."""
    model, best, fit = statsmodels_of(small_table(seed)), -np.inf, fitted(seed, restricted)
    start = parameters_of(fit) if starts_here else None
    for method in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = max(best, model.fit(reml=restricted, method=[method], maxiter=2000, start_params=start).llf)
    return (best - fit.log_likelihood) / abs(fit.log_likelihood)


class TestAgainstReference:
    @pytest.mark.parametrize("zero", [(), (1,), (0, 2), (3,), (4,), (0, 1, 2, 3, 4)])
    @pytest.mark.parametrize("restricted", [True, False])
    def test_the_likelihood_is_that_of_the_dense_covariance(self, zero, restricted):
        design, sd = draw_design(3), SD.copy()
        sd[list(zero)] = 0
        result = gaussian_likelihood(design, sd, restricted=restricted)
        residual = float(np.sqrt(result.residual_variance))
        expected = dense_gaussian(design, sd * residual, residual, restricted=restricted)
        assert result.value == pytest.approx(expected, rel=1e-11)

    @pytest.mark.parametrize("restricted", [True, False])
    def test_derivatives_are_those_of_differences(self, restricted):
        design, step = draw_design(4), 1e-4
        slope = gaussian_likelihood(design, SD, restricted=restricted).slope
        for component in range(5):
            ends = []
            for sign in (1, -1):
                variances = SD**2
                variances[component] += sign * step
                ends.append(gaussian_likelihood(design, np.sqrt(variances), restricted=restricted).value)
            assert slope[component] == pytest.approx((ends[0] - ends[1]) / step, rel=1e-4, abs=1e-5)

    def test_effects_and_their_covariance_solve_the_dense_equations(self):
        design = draw_design(5)
        result = gaussian_likelihood(design, SD, restricted=True)
        Z, F, y = dense_columns(design)
        columns = np.hstack([F, *Z])
        penalty = np.concatenate(
            [np.zeros(F.shape[1]), *(np.full(z.shape[1], s**-2) for s, z in zip(SD, Z, strict=True))]
        )
        inverse = np.linalg.inv(columns.T @ columns + np.diag(penalty))
        b = inverse @ columns.T @ y
        k, q, n_families = design.n_models, F.shape[1], design.n_families
        assert result.solution.fixed == pytest.approx(b[:q], abs=1e-10)
        assert result.solution.u == pytest.approx(b[-len(design.Y) :], abs=1e-10)
        total = np.zeros((k, len(b)))
        total[:, : design.X.shape[1]] = design.X
        total[:, q : q + k] = np.eye(k)
        total[np.arange(k), q + k + design.families] = 1
        assert result.solution.phi[:k] == pytest.approx(total @ b, abs=1e-10)
        assert result.equations.cov[:k, :k] == pytest.approx(total @ inverse @ total.T, abs=1e-10)
        within = b[q + k + n_families : -len(design.Y)]
        h = within[: design.n_tasks, None] + within[design.n_tasks :].reshape(-1, k)
        assert result.solution.h == pytest.approx(h, abs=1e-10)

    def test_effects_on_tasks_have_the_covariance_of_the_dense_equations(self):
        table = draw_table(6, (22, 4, 3), missing=0.2)
        design = build_design(table.Q, table.tasks)
        fit = fit_gaussian(design)
        Z, F, _ = dense_columns(design)
        columns = np.hstack([F, *(z for s, z in zip(fit.effect_sd, Z, strict=True) if s > 0)])
        penalty = [np.full(z.shape[1], s**-2) for s, z in zip(fit.effect_sd, Z, strict=True) if s > 0]
        inverse = np.linalg.inv(columns.T @ columns + np.diag(np.concatenate([np.zeros(1), *penalty])))
        weights = np.diff(design.starts) / len(design.Y)
        reach = np.zeros((4, len(inverse)))
        reach[:, 0] = 1
        reach[:, 1:5] = np.eye(4)
        reach[:, 5:8] = weights
        reach[:, 8:20] = np.kron(weights, np.eye(4))
        moves = fit.sensitivity.phi[:, :4] + np.einsum("t,itj->ij", weights, fit.sensitivity.h)
        expected = fit.error_scale**2 * reach @ inverse @ reach.T
        expected += fit.scale**2 * moves.T @ fit.sensitivity.log_cov @ moves
        result = effects_on_tasks(fit, weights, higher_is_better=True, level=0.95)
        assert result.cov == pytest.approx(expected, abs=1e-8)

    def test_shares_of_a_balanced_table_are_those_of_analysis_of_variance(self):
        Q = draw_table(7, (40, 6, 1), sd=(1.0, 0, 0, 1.5, 1.0)).Q
        fit = fit_gaussian(build_design(Q, np.zeros(40, dtype=np.int64)))
        n, k = Q.shape
        centered = Q - Q.mean(axis=0) - Q.mean(axis=1, keepdims=True) + Q.mean()
        residual = (centered**2).sum() / ((n - 1) * (k - 1))
        expected = [Q.mean(axis=0).var(ddof=1) - residual / n, Q.mean(axis=1).var(ddof=1) - residual / k, residual]
        result = np.array([fit.sd[0], fit.sd[4], fit.residual_sd]) ** 2
        assert result == pytest.approx(expected, rel=1e-4)


class TestLaws:
    @pytest.mark.parametrize(("factor", "shift"), [(1e-30, 0.0), (7.0, 100.0), (1e30, -3.0)])
    def test_a_change_of_the_unit_changes_the_unit_of_the_result(self, factor, shift):
        table = draw_table(2, missing=0.1)
        first = fit_gaussian(build_design(table.Q, table.tasks))
        second = fit_gaussian(build_design(factor * (table.Q + shift), table.tasks))
        assert second.sd == pytest.approx(factor * first.sd, rel=1e-3, abs=1e-3 * factor)
        degrees = first.design.n_scores - 1
        assert second.log_likelihood == pytest.approx(first.log_likelihood - degrees * np.log(factor), rel=1e-6)

    def test_the_order_of_prompts_and_models_does_not_matter(self):
        table = draw_table(8, missing=0.2)
        rng = np.random.default_rng(0)
        rows, columns = rng.permutation(24), rng.permutation(5)
        first = fit_gaussian(build_design(table.Q, table.tasks))
        second = fit_gaussian(build_design(table.Q[rows][:, columns], table.tasks[rows]))
        assert second.log_likelihood == pytest.approx(first.log_likelihood, rel=1e-9)
        assert prompt_effects(second) == pytest.approx(prompt_effects(first)[rows], abs=1e-4)
        assert task_effects(second).deviation == pytest.approx(task_effects(first).deviation[:, columns], abs=1e-4)

    def test_tasks_shrink_more_the_fewer_prompts_they_have(self):
        table = draw_table(9, (60, 5, 3), sd=(0.5, 0.5, 0.8, 0.5, 1.0))
        tasks = np.repeat([0, 1, 2], [4, 16, 40])
        fit = fit_gaussian(build_design(table.Q, tasks))
        errors = task_effects(fit).deviation_stderr
        assert (np.diff(errors.mean(axis=1)) < 0).all()

    def test_a_model_with_half_of_the_scores_has_a_larger_error(self):
        Q = draw_table(10, (80, 5, 4)).Q
        Q[::2, 2] = np.nan
        fit = fit_gaussian(build_design(Q, np.repeat(np.arange(4), 20)))
        errors = effects_on_tasks(fit, np.full(4, 0.25), higher_is_better=True, level=0.95).stderr
        assert errors.argmax() == 2

    def test_intervals_of_shares_hold_the_shares(self):
        table = draw_table(11, (60, 8, 5))
        fit = fit_gaussian(build_design(table.Q, table.tasks))
        low, high = share_intervals(fit, 1.96)
        known = ~np.isnan(low)
        assert known.sum() >= 4
        assert ((low < fit.shares) & (fit.shares < high))[known].all()
