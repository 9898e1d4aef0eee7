from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.semantic.semantic_regression import Lines, Meaning, fit_lines, performance_rows, unit_rows

RNG = np.random.default_rng(4)


def binary(n: int, k: int) -> np.ndarray:
    table = (RNG.random((n, k)) < 0.6).astype(float)
    table[~table.any(axis=1), 0] = 1
    return table


def fitted(Q: np.ndarray, E: np.ndarray, weights: np.ndarray, similarity: str, *, intercept: bool) -> Lines:
    """The lines of one table."""
    meaning, partners = Meaning.of(E, weights, intercept=intercept), weights[:, None]
    return fit_lines(meaning, performance_rows(Q, similarity)[:, None, :], partners, meaning.squares_under(partners))


def similarity_of(Q: np.ndarray, similarity: str) -> np.ndarray:
    """Every pair, by the definition."""
    if similarity == "hamming":
        return (Q[:, None] == Q).mean(axis=2)
    return np.array([[a @ b / np.sqrt((a @ a) * (b @ b)) for b in Q] for a in Q])


CASES = [
    (binary(50, 7), RNG.normal(size=(50, 12)) + 1.5, "cosine"),
    (binary(50, 7), RNG.normal(size=(50, 12)), "hamming"),
    (RNG.random((40, 5)), RNG.normal(size=(40, 90)), "cosine"),
    (RNG.normal(size=(4, 3)), RNG.normal(size=(4, 2)), "cosine"),
    (70 + RNG.normal(size=(30, 6)), 20 + RNG.normal(size=(30, 8)), "cosine"),
]


class TestAgainstReference:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize(("Q", "E", "similarity"), CASES)
    def test_slopes_errors_and_pvalues_equal_least_squares_of_statsmodels(self, Q, E, similarity, intercept, weighted):
        n = len(Q)
        weights = RNG.uniform(0.1, 2, n) if weighted else np.ones(n)
        result = fitted(Q, E, weights, similarity, intercept=intercept)
        x, y = similarity_of(E, "cosine"), similarity_of(Q, similarity)
        for i in range(n):
            rest = np.arange(n) != i
            regressors = sm.add_constant(x[i, rest]) if intercept else x[i, rest]
            fit = sm.WLS(y[i, rest], regressors, weights=weights[rest]).fit()
            # Rounding leaves no more of a nearly perfect fit's residuals, in either computation.
            rel = max(1e-10, 1e-14 / (1 - fit.rsquared))
            assert result.slope[i, 0] == pytest.approx(fit.params[-1], rel=1e-10, abs=1e-12)
            assert result.stderr[i, 0] == pytest.approx(fit.bse[-1], rel=rel)
            assert result.t[i, 0] == pytest.approx(fit.tvalues[-1], rel=rel, abs=1e-10)
            assert result.pvalue[i, 0] == pytest.approx(fit.pvalues[-1], rel=1e-10 if rel == 1e-10 else 1e-5)

    def test_prompts_without_weight_are_as_if_they_were_not_there(self):
        Q, E, _ = CASES[0]
        weights = np.where(RNG.random(50) < 0.3, 0.0, RNG.uniform(0.1, 2, 50))
        present = weights > 0
        meaning = Meaning.of(E, np.ones(50), intercept=True)
        partners = np.column_stack([np.ones(50), weights])
        U = np.stack([performance_rows(Q, "cosine")] * 2, axis=1)
        result = fit_lines(meaning, U, partners, meaning.squares_under(partners))
        fewer = fitted(Q[present], E[present], weights[present], "cosine", intercept=True)
        assert np.isnan(result.slope[~present, 1]).all()
        assert result.slope[present, 1] == pytest.approx(fewer.slope[:, 0], rel=1e-11)
        assert result.pvalue[present, 1] == pytest.approx(fewer.pvalue[:, 0], rel=1e-10)
        assert result.slope[:, 0] == pytest.approx(fitted(Q, E, np.ones(50), "cosine", intercept=True).slope[:, 0])


class TestLaws:
    @settings(max_examples=30)
    @given(seed=st.integers(0, 999), factor=st.sampled_from([1e-3, 1.0, 1e200]))
    def test_scales_of_scores_vectors_and_weights_and_the_order_of_prompts_change_nothing(self, seed, factor):
        rng = np.random.default_rng(seed)
        Q, E, w = rng.random((12, 4)), rng.normal(size=(12, 5)), rng.uniform(0.5, 2, 12)
        order = rng.permutation(12)
        result = fitted(Q, E, w, "cosine", intercept=True)
        second = fitted(Q[order] * factor, E[order] * 7, w[order] * 3, "cosine", intercept=True)
        assert second.t[:, 0] == pytest.approx(result.t[order, 0], rel=1e-9, abs=1e-9)
        assert second.slope[:, 0] == pytest.approx(result.slope[order, 0], rel=1e-9, abs=1e-9)

    def test_long_vectors_give_the_lines_of_their_products(self):
        Q, E = binary(20, 6), RNG.normal(size=(20, 300))
        short = np.linalg.cholesky(unit_rows(E) @ unit_rows(E).T)
        long, brief = (fitted(Q, V, np.ones(20), "cosine", intercept=True) for V in (E, short))
        assert long.slope == pytest.approx(brief.slope, rel=1e-10)
        assert long.pvalue == pytest.approx(brief.pvalue, rel=1e-10)

    def test_a_perfect_fit_has_the_smallest_error_and_no_infinity(self):
        """Each row is its own vector: both similarities are the same."""
        Q = RNG.random((9, 4))
        result = fitted(Q, Q, np.ones(9), "cosine", intercept=True)
        assert result.slope == pytest.approx(np.ones((9, 1)))
        assert np.isfinite(result.t).all()
        assert (result.pvalue < 1e-20).all()

    @pytest.mark.parametrize(
        ("Q", "E"),
        [
            (binary(9, 4), np.tile([[3.0, 1.0]], (9, 1))),
            (binary(9, 4), np.eye(9)),
            (np.ones((9, 4)), RNG.normal(size=(9, 3))),
            (np.outer(RNG.random(9), [1.0, 2.0, 3.0]), RNG.normal(size=(9, 3))),
            (binary(9, 1), RNG.normal(size=(9, 3))),
            (binary(3, 4), RNG.normal(size=(3, 3))),
        ],
        ids=["same vectors", "orthogonal vectors", "all right", "same directions", "one model", "three prompts"],
    )
    def test_there_is_no_line_where_a_similarity_does_not_vary(self, Q, E):
        result = fitted(Q, E, np.ones(len(Q)), "cosine", intercept=True)
        for values in (result.slope, result.stderr, result.t, result.pvalue):
            assert np.isnan(values).all()

    def test_zero_rows_have_no_direction(self):
        rows = unit_rows(np.array([[0.0, 0.0], [3.0, 4.0], [-1e-300, 0.0]]))
        assert rows.tolist() == [[0.0, 0.0], [0.6, 0.8], [-1.0, 0.0]]
