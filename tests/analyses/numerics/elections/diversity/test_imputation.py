"""Missing scores filled in from the nearest models."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.impute import KNNImputer

from analyses.numerics.elections.diversity.imputation import N_NEIGHBOURS, impute_knn
from analyses.numerics.elections.exact_scores import exact_scores

NAN = float("nan")


def filled(T: NDArray[np.float64], n_neighbours: int = N_NEIGHBOURS) -> NDArray[np.float64]:
    """``(n_tasks, n_models)`` from the exact numbers."""
    result = impute_knn(exact_scores(T), n_neighbours)
    exact = (result.numerators / result.denominator).astype(np.float64)
    np.testing.assert_allclose(result.T, exact, rtol=1e-15)
    return exact


def with_gaps(n_tasks: int, n_models: int, share: float, seed: int) -> NDArray[np.float64]:
    """Random scores, of which a share is missing; every task and every model keeps one at least."""
    rng = np.random.default_rng(seed)
    T = rng.normal(size=(n_tasks, n_models))
    gaps = rng.random(T.shape) < share
    gaps[rng.integers(n_tasks, size=n_models), np.arange(n_models)] = False
    gaps[np.arange(n_tasks), rng.integers(n_models, size=n_tasks)] = False
    T[gaps] = NAN
    return T


class TestAgainstReference:
    @pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
    @pytest.mark.parametrize(("n_tasks", "n_models"), [(8, 30), (30, 8), (3, 60)])
    @pytest.mark.parametrize("k", [1, 5])
    def test_it_is_the_imputer_of_scikit_learn(self, n_tasks: int, n_models: int, share: float, k: int) -> None:
        T = with_gaps(n_tasks, n_models, share, seed=n_tasks + k)
        assert np.isnan(T).any()
        expected = KNNImputer(n_neighbors=k, weights="uniform").fit_transform(T.T).T
        assert filled(T, k) == pytest.approx(expected, rel=1e-12, abs=1e-12)

    def test_a_model_that_shares_no_task_with_those_that_have_the_score_gets_the_mean_of_the_task(self) -> None:
        T = np.array([[1.0, 2.0, 6.0, NAN], [NAN, NAN, NAN, 5.0]])
        expected = KNNImputer().fit_transform(T.T).T
        assert filled(T).tolist() == expected.tolist() == [[1, 2, 6, 3], [5, 5, 5, 5]]


class TestLaws:
    @given(st.integers(0, 10**6))
    def test_the_order_of_models_and_tasks_changes_no_neighbour_even_among_duplicates(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        T = rng.integers(0, 3, (4, 9)).astype(float)
        T[rng.random(T.shape) < 0.3] = NAN
        T[0, np.isnan(T).all(axis=0)] = 1.0
        T[np.isnan(T).all(axis=1), 0] = 1.0
        rows, columns = rng.permutation(4), rng.permutation(9)
        moved = filled(T[rows][:, columns], 2)
        assert moved == pytest.approx(filled(T, 2)[rows][:, columns], abs=1e-14)

    def test_what_was_measured_stays_and_nothing_stays_missing(self) -> None:
        scores = exact_scores(with_gaps(6, 12, 0.5, seed=1))
        result, is_present = impute_knn(scores), scores.present
        assert np.array_equal(result.T[is_present], scores.T[is_present])
        assert result.is_complete
        assert not is_present.all()
        assert impute_knn(result) is result

    def test_two_models_with_the_same_neighbours_tie_exactly(self) -> None:
        T = np.array([[0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, NAN, NAN]])
        result = impute_knn(exact_scores(T), 3)
        assert result.numerators[1, 3] == result.numerators[1, 4] == result.numerators[1, 1]

    def test_models_at_the_same_distance_share_the_last_place(self) -> None:
        T = np.array([[0.0, 0.0, 1.0, 1.0, 9.0], [NAN, 4.0, 5.0, 7.0, 0.0]])
        assert filled(T, 2)[1, 0] == (4 + 6) / 2

    def test_the_largest_numbers_do_not_overflow(self) -> None:
        T = np.array([[1.0, 1.1, 5.0, 5.1], [NAN, 2.0, 3.0, 4.0]]) * 1e300
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert filled(T, 1)[1, 0] == T[1, 1]
