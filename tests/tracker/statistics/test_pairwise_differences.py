from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from scipy.linalg import fractional_matrix_power
from statsmodels.regression.linear_model import OLS

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.paired_differences import estimate_clustered_mean, estimate_mean
from tracker.statistics.pairwise_differences import compare_all_pairs

RNG = np.random.default_rng(9)


def tables(scores: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    shape = st.tuples(st.integers(1, 14), st.integers(1, 5))
    return shape.flatmap(lambda size: arrays(np.float64, size, elements=scores))


def one_by_one(Q: np.ndarray, groups: Grouping, correction: str, i: int, j: int):
    """Slow: the differences of one pair, over its shared prompts."""
    both = ~np.isnan(Q[:, i] - Q[:, j])
    d = (Q[:, i] - Q[:, j])[both]
    scale = np.nanmax(np.abs(Q))
    within = groups.rows(both)
    return d, estimate_mean(d, scale=scale), estimate_clustered_mean(d, within, scale=scale, correction=correction)


def assert_equal_to_reference(Q: np.ndarray, names: np.ndarray, correction: str) -> None:
    groups = group_rows(names)
    result = compare_all_pairs(Q, groups, correction)
    p, p_clustered, mcnemar = result.pvalues, result.pvalues_clustered, result.pvalues_mcnemar
    k = Q.shape[1]
    for i in range(k):
        for j in range(k):
            if np.isnan(Q[:, i] - Q[:, j]).all():
                assert result.n[i, j] == 0
                assert np.isnan([result.difference[i, j], result.stderr[i, j], result.stderr_clustered[i, j]]).all()
                continue
            d, plain, clustered = one_by_one(Q, groups, correction, i, j)
            slack = 1e-12 * max(result.scale, 1e-300)
            assert result.n[i, j] == len(d)
            assert result.difference[i, j] == pytest.approx(plain.mean, abs=slack)
            # Rounding of a difference counts as none (1e-12 of the largest score), on either side.
            close = {"rel": 1e-9, "abs": 2 * slack, "nan_ok": True}
            assert result.stderr[i, j] == pytest.approx(plain.stderr, **close)
            assert result.stderr_clustered[i, j] == pytest.approx(clustered.stderr, **close)
            if plain.stderr > 1e-9 * result.scale:
                assert p[i, j] == pytest.approx(plain.pvalue, abs=1e-9)
            if clustered.stderr > 1e-9 * result.scale:
                assert result.n_clusters[i, j] == clustered.n_units
                assert result.degrees_clustered[i, j] == pytest.approx(clustered.degrees)
                assert p_clustered[i, j] == pytest.approx(clustered.pvalue, abs=1e-9)
            if mcnemar is not None:
                assert (result.only_first[i, j], result.only_second[i, j]) == ((d > 0).sum(), (d < 0).sum())


class TestAgainstReference:
    @settings(max_examples=60)
    @given(
        tables(st.sampled_from([0.0, 1.0])) | tables(st.sampled_from([0.0, 1.0, 1.0, np.nan])),
        st.randoms(),
        st.sampled_from(["CR1", "CR2"]),
    )
    def test_scores_of_0_and_1_give_what_every_pair_gives_alone(self, Q, random, correction):
        assert_equal_to_reference(Q, np.array([random.choice(["a", "b", "c", ""]) for _ in Q]), correction)

    @settings(max_examples=60)
    @given(
        tables(st.sampled_from([0.0, 0.1, 0.25, 1e-9, 3.0])) | tables(st.sampled_from([0.5, -2.0, 0.3, np.nan])),
        st.randoms(),
        st.sampled_from(["CR1", "CR2"]),
    )
    def test_other_scores_give_what_every_pair_gives_alone(self, Q, random, correction):
        assert_equal_to_reference(Q, np.array([random.choice(["a", "b", "c", ""]) for _ in Q]), correction)

    @pytest.mark.parametrize("gaps", [0.0, 0.2])
    def test_errors_and_pvalues_are_those_of_statsmodels(self, gaps):
        Q = (RNG.random((200, 4)) < [0.4, 0.5, 0.55, 0.7]).astype(float)
        Q[RNG.random(Q.shape) < gaps] = np.nan
        codes = RNG.integers(0, 9, 200)
        result = compare_all_pairs(Q, group_rows(codes.astype(str)))
        for i, j in zip(*np.triu_indices(4, 1), strict=True):
            both = ~np.isnan(Q[:, i] - Q[:, j])
            d = (Q[:, i] - Q[:, j])[both]
            plain = OLS(d, np.ones(len(d))).fit()
            clustered = plain.get_robustcov_results("cluster", groups=codes[both], use_t=True)
            assert result.stderr[i, j] == pytest.approx(plain.bse[0], rel=1e-10)
            assert result.pvalues[i, j] == pytest.approx(plain.pvalues[0], rel=1e-10, abs=1e-15)
            assert result.stderr_clustered[i, j] == pytest.approx(clustered.bse[0], rel=1e-10)
            assert result.pvalues_clustered[i, j] == pytest.approx(clustered.pvalues[0], rel=1e-10, abs=1e-15)

    @pytest.mark.parametrize("sizes", [(5, 5, 5), (1, 2, 9, 3), (20, 1, 1), (7, 2)])
    def test_cr2_and_its_degrees_are_those_of_the_matrices_they_are_defined_by(self, sizes):
        codes = np.repeat(np.arange(len(sizes)), sizes)
        n = len(codes)
        d = RNG.normal(size=n)
        X = np.ones((n, 1))
        left = np.eye(n) - X @ np.linalg.inv(X.T @ X) @ X.T  # what makes residuals
        error, columns = 0.0, []
        for cluster in range(len(sizes)):
            rows = codes == cluster
            A = fractional_matrix_power(left[np.ix_(rows, rows)], -0.5).real
            error += ((X[rows].T @ A @ (left @ d)[rows]) ** 2).item() / n**2
            columns.append(left[rows].T @ A @ X[rows] / n)
        P = np.hstack(columns)
        eigenvalues = np.linalg.eigvalsh(P.T @ P)
        groups = group_rows(codes.astype(str))
        result = estimate_clustered_mean(d, groups, scale=1.0, correction="CR2")
        assert result.stderr == pytest.approx(np.sqrt(error), rel=1e-8)
        assert result.degrees == pytest.approx(eigenvalues.sum() ** 2 / (eigenvalues**2).sum(), rel=1e-8)


class TestLaws:
    def test_cr1_and_cr2_agree_where_clusters_are_equally_large(self):
        Q, groups = RNG.random((60, 3)), group_rows(np.array(list("abcdef") * 10))
        item, second = compare_all_pairs(Q, groups, "CR1"), compare_all_pairs(Q, groups, "CR2")
        assert item.stderr_clustered == pytest.approx(second.stderr_clustered, rel=1e-12)
        assert second.degrees_clustered == pytest.approx(np.full((3, 3), 5.0))

    def test_identical_models_differ_by_exactly_nothing(self):
        item = RNG.normal(1e3, 1, 500)
        Q = np.stack([item, RNG.normal(1e3, 1, 500), item], axis=1)
        result = compare_all_pairs(Q, group_rows(RNG.integers(0, 7, 500).astype(str)))
        assert result.difference[0, 2] == result.stderr[0, 2] == result.stderr_clustered[0, 2] == 0
        assert result.pvalues[0, 2] == result.pvalues_clustered[0, 2] == 1

    @pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
    def test_models_that_hardly_differ_keep_their_digits(self, size):
        item, d = RNG.normal(size=400), RNG.normal(0.3, 1, 400) * size
        Q = np.stack([item, item + d], axis=1)
        exact = Q[:, 0] - Q[:, 1]  # what the stored numbers differ by
        groups = group_rows(RNG.integers(0, 7, 400).astype(str))
        result = compare_all_pairs(Q, groups)
        assert result.stderr[0, 1] == pytest.approx(exact.std(ddof=1) / 20, rel=1e-10)
        expected = estimate_clustered_mean(exact, groups, scale=1.0).stderr
        assert result.stderr_clustered[0, 1] == pytest.approx(expected, rel=1e-10)

    def test_pairs_are_the_same_the_other_method_round(self):
        Q = RNG.random((30, 4))
        Q[RNG.random(Q.shape) < 0.2] = np.nan
        result = compare_all_pairs(Q, group_rows(RNG.integers(0, 4, 30).astype(str)))
        assert result.difference == pytest.approx(-result.difference.T)
        assert result.stderr == pytest.approx(result.stderr.T)
        assert result.stderr_clustered == pytest.approx(result.stderr_clustered.T)

    def test_scores_that_are_not_0_and_1_have_no_mcnemar(self):
        assert compare_all_pairs(RNG.random((9, 3))).pvalues_mcnemar is None

    def test_without_clusters_there_are_no_clustered_errors(self):
        result = compare_all_pairs(RNG.random((9, 3)))
        assert np.isnan(result.stderr_clustered[~np.eye(3, dtype=bool)]).all()
        assert np.isnan(result.pvalues_clustered[~np.eye(3, dtype=bool)]).all()


def test_two_models_that_part_within_clusters_only_keep_their_digits_beside_others_that_do_not():
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(10), 20)
    separate = np.tile([1.0, -1.0], 100) + 1e-8 * rng.normal(size=10)[codes]
    base = rng.normal(size=200)
    rest = 10 * rng.normal(size=(10, 2))[codes]
    groups = group_rows(codes.astype(str))
    result = compare_all_pairs(np.column_stack([base, base - separate, rest]), groups)
    expected = estimate_clustered_mean(base - (base - separate), groups, scale=20.0)
    assert result.stderr_clustered[0, 1] == pytest.approx(expected.stderr, rel=1e-6)
