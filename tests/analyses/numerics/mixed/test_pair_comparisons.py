from __future__ import annotations

import numpy as np
import pytest
from mixed_tables import draw_design, draw_table
from scipy.optimize import brentq
from scipy.special import digamma, polygamma
from scipy.stats import ttest_rel

from analyses.numerics.mixed.design import build_design
from analyses.numerics.mixed.effects import effects_on_tasks
from analyses.numerics.mixed.elimination import MODEL_TASK, PROMPT
from analyses.numerics.mixed.fit import MixedFit
from analyses.numerics.mixed.gaussian import fit_gaussian
from analyses.numerics.mixed.laplace import fit_logistic
from analyses.numerics.mixed.pair_comparisons import compare_on_other_tasks, pool_variances


def levels_by_task(fit: MixedFit) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each task its models, their levels by generalized least squares, and the covariance, from the cells."""
    design, out = fit.design, []
    gamma = fit.solution.phi[design.n_models :]
    r = fit.equations.w * fit.solution.eta + fit.weighted_residual
    for rows in design.task_slices():
        prompt, model = np.nonzero(fit.equations.w[rows])
        w = fit.equations.w[rows][prompt, model]
        y = r[rows][prompt, model] / w - design.W[rows][prompt] @ gamma
        V = np.diag(1 / w) + fit.equations.sd[PROMPT] ** 2 * (prompt[:, None] == prompt)
        models = np.unique(model)
        X = (model[:, None] == models).astype(float)
        cov = np.linalg.inv(X.T @ np.linalg.solve(V, X))
        out.append((models, cov @ X.T @ np.linalg.solve(V, y), cov))
    return out


def compare_pair(fit: MixedFit, i: int, j: int) -> tuple[float, float, float]:
    """Difference, variance by CR2 and Satterthwaite's degrees of freedom, from matrices over the tasks."""
    differences, weights = [], []
    for models, levels, cov in levels_by_task(fit):
        if {i, j} <= set(models.tolist()):
            c = (models == i).astype(float) - (models == j)
            differences.append(c @ levels)
            weights.append(1 / (2 * fit.equations.sd[MODEL_TASK] ** 2 + c @ cov @ c))
    d, share = np.array(differences), np.array(weights) / np.sum(weights)
    left = np.eye(len(d)) - np.outer(np.ones(len(d)), share)
    scaled = np.diag(share / np.sqrt(1 - share)) @ left
    covariance = scaled @ np.diag(1 / np.array(weights)) @ scaled.T
    degrees = np.trace(covariance) ** 2 / np.trace(covariance @ covariance)
    return float(share @ d), float(((scaled @ d) ** 2).sum()), float(degrees)


def without_pooling(fit: MixedFit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("analyses.numerics.mixed.pair_comparisons.MIN_POOLED", np.inf)
    return compare_on_other_tasks(fit)


class TestAgainstReference:
    def test_without_gaps_it_is_the_paired_t_test_of_the_task_means(self):
        table = draw_table(1, (20, 5, 4))
        means = np.array([table.Q[table.tasks == task].mean(axis=0) for task in range(4)])
        pairs = compare_on_other_tasks(fit_gaussian(build_design(table.Q, table.tasks)))
        expected = ttest_rel(means[:, 0], means[:, 3])
        assert pairs.degrees[0, 3] == pytest.approx(3)
        assert pairs.pvalues[0, 3] == pytest.approx(expected.pvalue, rel=1e-6)
        assert np.sign(pairs.difference[0, 3]) == np.sign(expected.statistic)

    @pytest.mark.parametrize("binary", [False, True])
    def test_with_gaps_and_covariates_it_is_cr2_over_the_tasks(self, binary, monkeypatch):
        design = draw_design(3, binary=binary)
        fit = (fit_logistic if binary else fit_gaussian)(design)
        pairs = without_pooling(fit, monkeypatch)
        for i, j in [(0, 1), (2, 5), (4, 3)]:
            result = pairs.difference[i, j], pairs.variance[i, j], pairs.degrees[i, j]
            assert result == pytest.approx(compare_pair(fit, i, j), rel=1e-6)

    def test_pooled_variances_have_the_prior_of_smyth(self):
        rng = np.random.default_rng(0)
        variance, degrees = np.full((7, 7), np.nan), np.full((7, 7), 8.0)
        i, j = np.triu_indices(7, 1)
        variance[i, j] = variance[j, i] = rng.chisquare(8, 21) / 8 / (rng.chisquare(5, 21) / 5)
        logs = np.log(variance[i, j]) - digamma(4) + np.log(4)
        half = brentq(lambda x: polygamma(1, x) - logs.var(ddof=1) + polygamma(1, 4), 0.05, 1e3)
        prior = np.exp(logs.mean() + digamma(half) - np.log(half))
        pooled, increased = pool_variances(variance, degrees, 100)
        expected = (2 * half * prior + 8 * variance[i, j]) / (2 * half + 8)
        assert pooled[i, j] == pytest.approx(expected, rel=1e-6)
        assert increased[0, 1] == pytest.approx(2 * half + 8)


class TestLaws:
    def test_equal_variances_are_pooled_up_to_the_degrees_of_all_models(self):
        variance, degrees = np.full((4, 4), 2.0), np.full((4, 4), 9.0)
        pooled, increased = pool_variances(variance, degrees, 27)
        assert pooled == pytest.approx(np.full((4, 4), 2 * np.exp(np.log(4.5) - digamma(4.5))))
        assert increased == pytest.approx(np.full((4, 4), 27.0))

    def test_few_degrees_of_freedom_are_not_pooled(self):
        variance, degrees = np.array([[0.0, 1, 2], [1, 0, 3], [2, 3, 0]]), np.full((3, 3), 4.0)
        pooled, same = pool_variances(variance, degrees, 8)
        assert pooled is variance
        assert same is degrees

    def test_a_model_that_varies_over_tasks_has_the_larger_errors_there(self):
        deviation = np.array([1.5, *[0.1] * 7])
        table = draw_table(2, (140, 8, 14), (0.6, 0.4, deviation, 0.8, 0.5))
        fit = fit_gaussian(build_design(table.Q, table.tasks))
        result = effects_on_tasks(fit, None, higher_is_better=True, level=0.95)
        assert result.stderr[0] > 4 * result.stderr[1:].max()
        assert (result.degrees < 91).all()

    def test_the_error_of_an_effect_is_that_of_the_difference_to_the_average_model(self, monkeypatch):
        monkeypatch.setattr("analyses.numerics.mixed.pair_comparisons.MIN_POOLED", np.inf)
        table = draw_table(4, (20, 5, 4))
        means = np.array([table.Q[table.tasks == task].mean(axis=0) for task in range(4)])
        relative = means - means.mean(axis=1, keepdims=True)
        fit = fit_gaussian(build_design(table.Q, table.tasks))
        result = effects_on_tasks(fit, None, higher_is_better=True, level=0.95)
        assert result.stderr == pytest.approx(relative.std(axis=0, ddof=1) / 2, rel=1e-6)

    def test_pairs_without_two_tasks_in_common_are_not_distinguished(self):
        table = draw_table(5, (20, 4, 4), (3.0, 0.1, 0.1, 0.1, 0.1))
        table.Q[table.tasks > 0, 0] = np.nan
        fit = fit_gaussian(build_design(table.Q, table.tasks))
        pairs = compare_on_other_tasks(fit)
        assert np.isnan(pairs.variance[0, 1:]).all()
        assert (pairs.pvalues[0] == 1).all()
        result = effects_on_tasks(fit, None, higher_is_better=True, level=0.95)
        assert (result.rank_low[0], result.rank_high[0]) == (1, 4)
        assert np.isfinite(result.stderr).all()

    def test_equal_columns_do_not_differ(self):
        table = draw_table(6, (20, 3, 4))
        fit = fit_gaussian(build_design(table.Q[:, [0, 0, 1, 2]], table.tasks))
        assert compare_on_other_tasks(fit).pvalues[0, 1] == 1
