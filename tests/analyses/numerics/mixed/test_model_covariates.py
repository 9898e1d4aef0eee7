from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from mixed_tables import dense_columns, draw_design, draw_table
from scipy.special import expit
from scipy.stats import linregress

from analyses.mixed_model.covariates import FEW_SHOT, CodedCovariates, check_covariates
from analyses.numerics.mixed.design import build_design
from analyses.numerics.mixed.elimination import MODEL, PROMPT
from analyses.numerics.mixed.fit import MixedFit
from analyses.numerics.mixed.gaussian import fit_gaussian
from analyses.numerics.mixed.laplace import fit_logistic
from analyses.numerics.mixed.model_covariates import can_regress, estimate_model_effects, regress_models
from analyses.numerics.mixed.prompt_covariates import measure_prompt_spread

RNG = np.random.default_rng(3)
K = 12
X, Y = RNG.normal(size=K), RNG.normal(size=K)
VARIANCES = RNG.uniform(0.2, 3.0, K)
FAMILIES = np.array([0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 4, 5])
ALONE = np.arange(K)


def expected_wls(y: np.ndarray, X: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """The last coefficient, its error and degrees of freedom, by statsmodels."""
    fit = sm.WLS(y, X, weights=weights).fit()
    return fit.params[-1], fit.bse[-1], fit.df_resid


def regressed(*arguments) -> tuple[float, float, float]:
    result = regress_models(*arguments)
    return result.estimate, result.stderr, result.degrees


def dense_effects(fit: MixedFit) -> tuple[np.ndarray, np.ndarray]:
    """Effects of models as fixed effects with their covariance, by the equations of all effects."""
    design, observed = fit.design, fit.design.observed > 0
    Z, F, y = dense_columns(design)
    eta = fit.eta[observed]
    w = expit(eta) * expit(-eta) if fit.response == "logistic" else np.ones(len(y))
    columns = np.hstack([Z[0], F[:, design.X.shape[1] :], *Z[2:]])
    precisions = [np.full(z.shape[1], s**-2) for z, s in zip(Z[2:], fit.effect_sd[2:], strict=True)]
    penalty = np.concatenate([np.zeros(design.n_models + design.W.shape[1]), *precisions])
    cov = np.linalg.inv(columns.T @ (columns * w[:, None]) + np.diag(penalty))
    effects = cov @ (columns.T @ (w * eta + y - fit.predicted[observed]))
    return effects[: design.n_models], cov[: design.n_models, : design.n_models]


class TestAgainstReference:
    @pytest.mark.parametrize("shape", [(24, 6, 4), (10, 3, 1)])
    def test_without_gaps_it_is_the_regression_of_the_models_means(self, shape):
        table, few_shot = draw_table(1, shape), RNG.normal(size=shape[1])
        fit = fit_gaussian(build_design(table.Q, table.tasks, model_covariates=few_shot[:, None]))
        coded = CodedCovariates(
            few_shot=few_shot, length=None, families=None, family_names=(), spreads={FEW_SHOT: 2.0}, excluded={}
        )
        (result,) = check_covariates(fit, coded, None)
        expected = linregress(few_shot, table.Q.mean(axis=0))
        assert result.estimate == pytest.approx(expected.slope / 2)
        assert result.stderr == pytest.approx(expected.stderr / 2)
        assert result.pvalue == pytest.approx(expected.pvalue)
        assert result.degrees == shape[1] - 2

    def test_independent_models_are_weighted_by_both_variances(self):
        expected = expected_wls(Y, sm.add_constant(X), 1 / (VARIANCES + 0.3))
        assert regressed(Y, X, ALONE, VARIANCES, 0.3) == pytest.approx(expected)

    def test_within_families_it_is_the_regression_with_an_intercept_for_each(self):
        expected = expected_wls(Y, np.column_stack([np.eye(6)[FAMILIES], X]), 1 / VARIANCES)
        assert regressed(Y, X, FAMILIES, VARIANCES, 0.3) == pytest.approx(expected)
        assert expected[2] == K - 6 - 1

    def test_between_families_it_is_the_regression_of_their_means(self):
        few_shot = RNG.normal(size=6)
        totals = np.bincount(FAMILIES, weights=1 / VARIANCES)
        means = np.bincount(FAMILIES, weights=Y / VARIANCES) / totals
        expected = expected_wls(means, sm.add_constant(few_shot), 1 / (0.3 + 1 / totals))
        assert regressed(Y, few_shot[FAMILIES], FAMILIES, VARIANCES, 0.3) == pytest.approx(expected)
        assert expected[2] == 6 - 2

    @pytest.mark.parametrize("binary", [False, True])
    def test_effects_solve_the_dense_equations_with_fixed_effects_of_models(self, binary):
        fit = (fit_logistic if binary else fit_gaussian)(draw_design(5, binary=binary))
        expected, cov = dense_effects(fit)
        effects, variances = estimate_model_effects(fit)
        centering = np.eye(6) - 1 / 6
        assert fit.scale * (effects - effects.mean()) == pytest.approx(centering @ expected, rel=1e-6)
        spread = np.diagonal(centering @ cov @ centering)
        assert variances == pytest.approx(spread + fit.effect_sd[MODEL] ** 2, rel=1e-6)

    def test_the_spread_of_prompts_is_that_of_their_effects_without_shrinkage(self):
        """Each prompt's effect by its own equation: the mean of the working response less all other effects."""
        fit = fit_logistic(draw_design(5, binary=True))
        design, variance = fit.design, fit.effect_sd[PROMPT] ** 2
        total = 0.0
        for row in range(len(design.Y)):
            seen = design.observed[row] > 0
            mean = expit(fit.eta[row, seen])
            w = mean * (1 - mean)
            response = fit.eta[row, seen] + (design.Y[row, seen] - mean) / w
            rest = fit.eta[row, seen] - fit.solution.u[row]
            effect = (w * (response - rest)).sum() / w.sum()
            total += effect**2 / (variance + 1 / w.sum())
        spread = measure_prompt_spread(fit)
        assert spread.degrees == 23 - 4 - 2
        assert spread.ratio == pytest.approx(np.sqrt(total / spread.degrees), rel=1e-5)

    def test_without_effects_of_prompts_there_is_no_spread(self):
        table = draw_table(1, (4, 6, 4), binary=True)
        assert measure_prompt_spread(fit_logistic(build_design(table.Q, table.tasks))) is None


class TestLaws:
    def test_the_effect_of_a_family_has_no_influence_within_families(self):
        moved = Y + RNG.normal(0, 100, 6)[FAMILIES]
        result = regressed(moved, X, FAMILIES, VARIANCES, 0.3)
        assert result == pytest.approx(regressed(Y, X, FAMILIES, VARIANCES, 0.3))

    def test_one_pair_among_independent_models_leaves_the_comparison_between_families(self):
        families = np.maximum(ALONE - 1, 0)
        assert regress_models(Y, X, families, VARIANCES, 0.3).degrees == K - 1 - 2

    def test_the_choice_does_not_depend_on_the_scores(self):
        degrees = {regress_models(RNG.normal(size=K), X, FAMILIES, VARIANCES, v).degrees for v in (0.0, 1.0, 100.0)}
        assert len(degrees) == 1

    @pytest.mark.parametrize(
        ("x", "families", "possible"),
        [
            ([0, 0, 1, 1], [0, 0, 1, 1], False),
            ([0, 0, 1, 1, 2], [0, 0, 1, 1, 2], True),
            ([0, 1, 0, 1], [0, 0, 1, 1], True),
            ([0, 1, 1], [0, 0, 1], False),
            ([0, 1, 1], [0, 1, 2], True),
        ],
    )
    def test_a_covariate_must_differ_within_families_or_between_three(self, x, families, possible):
        assert can_regress(np.array(x, dtype=float), np.array(families)) == possible
