from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize

from tracker.statistics.related.conditional_moments import RIDGE, compute_disagreement_moments


def rasch(seed: int, n: int, k: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((n, k)) < 1 / (1 + np.exp(rng.normal(0, 1.5, (n, 1)) - rng.normal(0, 1, k)))).astype(float)


def with_gaps(Q: np.ndarray, seed: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(Q.shape) < 0.15, np.nan, Q)


def moments(Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    right = np.nan_to_num(Q)
    return compute_disagreement_moments(
        (~np.isnan(Q)).astype(float), right.sum(axis=1), np.ones(len(Q)), right.sum(axis=0)
    )


def possible_patterns(row: np.ndarray) -> list[np.ndarray]:
    """Every pattern of a prompt's scores with its measured models and its number right."""
    cells = [(0.0,) if np.isnan(score) else (0.0, 1.0) for score in row]
    return [np.array(pattern) for pattern in product(*cells) if sum(pattern) == np.nansum(row)]


def slow_moments(Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loops over prompts and patterns; the abilities by a general optimizer."""
    patterns = [possible_patterns(row) for row in Q]

    def probabilities(ability, row):
        weights = np.array([np.exp(pattern @ ability) for pattern in patterns[row]])
        return weights / weights.sum()

    def loss(ability):
        scores = np.nan_to_num(Q)
        logs = [scores[i] @ ability - np.log(sum(np.exp(x @ ability) for x in patterns[i])) for i in range(len(Q))]
        return RIDGE * ability @ ability / 2 - sum(logs)

    ability = minimize(loss, np.zeros(Q.shape[1]), tol=1e-12).x
    k = Q.shape[1]
    mean, variance = np.zeros((k, k)), np.zeros((k, k))
    for a, b in combinations(range(k), 2):
        covariance = np.zeros((k + 1, k + 1))
        for i, row in enumerate(Q):
            both = not np.isnan(row[a]) and not np.isnan(row[b])
            values = np.array([[float(both and x[a] != x[b]), *x] for x in patterns[i]])
            p = probabilities(ability, i)
            mean[a, b] += p @ values[:, 0]
            covariance += (values.T * p) @ values - np.outer(p @ values, p @ values)
        explained = covariance[0, 1:] @ np.linalg.lstsq(covariance[1:, 1:], covariance[1:, 0], rcond=1e-9)[0]
        variance[a, b] = covariance[0, 0] - explained
    return mean + mean.T, variance + variance.T


class TestAgainstReference:
    @pytest.mark.parametrize("k", [3, 4])
    def test_moments_are_those_of_loops_over_patterns(self, k):
        for seed in range(3):
            Q = rasch(seed, 25, k)
            for table in (Q, with_gaps(Q, seed)):
                mean, variance = moments(table)
                slow_mean, slow_variance = slow_moments(table)
                assert mean == pytest.approx(slow_mean, abs=1e-3)
                assert variance == pytest.approx(slow_variance, abs=1e-3)

    @pytest.mark.parametrize("seed", range(3))
    def test_moments_approach_those_of_all_tables_with_these_margins(self, seed):
        """Tables with the same margins, by many random swaps of a 2 x 2 part: a chain with the uniform distribution."""
        Q, rng = rasch(seed, 60, 4), np.random.default_rng(seed + 10)
        T, numbers = Q.copy(), []
        for step in range(60_000):
            (i, j), (a, b) = rng.integers(0, 60, 2), rng.integers(0, 4, 2)
            if T[i, a] == T[j, b] != T[i, b] == T[j, a]:
                T[i, a], T[i, b], T[j, a], T[j, b] = T[i, b], T[i, a], T[j, b], T[j, a]
            if step % 20 == 0:
                numbers.append((T[:, :, None] != T[:, None, :]).sum(axis=0))
        mean, variance = moments(Q)
        off = ~np.eye(4, dtype=bool)
        assert mean[off] == pytest.approx(np.mean(numbers, axis=0)[off], abs=0.6)
        assert variance[off] == pytest.approx(np.var(numbers, axis=0)[off], rel=0.25)


class TestLaws:
    def test_two_models_leave_no_freedom(self):
        Q = rasch(4, 50, 2)
        mean, variance = moments(Q)
        assert mean[0, 1] == pytest.approx((Q[:, 0] != Q[:, 1]).sum())
        assert variance[0, 1] == 0

    def test_a_model_with_equal_scores_is_explained_by_its_sum(self):
        Q = rasch(5, 50, 4)
        Q[:, 0] = 1
        mean, variance = moments(Q)
        assert mean[0, 1:] == pytest.approx((Q[:, :1] != Q[:, 1:]).sum(axis=0), abs=0.01)
        assert (variance[0] < 0.01).all()

    def test_one_model_has_no_pair(self):
        mean, variance = moments(rasch(6, 10, 1))
        assert mean.tolist() == variance.tolist() == [[0.0]]
