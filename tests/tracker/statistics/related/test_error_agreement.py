from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import binary_tables_with_gaps

from tracker.statistics.related.answer_agreement import compare_answers
from tracker.statistics.related.error_agreement import MIN_MODELS, compare_errors

N_TABLES = 40


def rasch(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Scores of independent models."""
    odds = rng.normal(0, 1.0, (1, k)) - rng.normal(0, 1.5, (n, 1))
    return (rng.random((n, k)) < 1 / (1 + np.exp(-odds))).astype(float)


def flip(rng: np.random.Generator, column: np.ndarray, share: float) -> np.ndarray:
    """A copy of a model with some scores changed."""
    return np.abs(column - (rng.random(len(column)) < share))


def tables_with_the_margins_of(Q: np.ndarray) -> list[np.ndarray]:
    """Every binary table with the row sums and column sums of a complete one: slow and obvious."""
    tables = (np.array(cells, float).reshape(Q.shape) for cells in product((0, 1), repeat=Q.size))
    return [T for T in tables if (T.sum(0) == Q.sum(0)).all() and (T.sum(1) == Q.sum(1)).all()]


class TestAgainstReference:
    @given(table=binary_tables_with_gaps())
    @settings(max_examples=40)
    def test_counts_are_those_of_a_loop_over_pairs(self, table):
        result = compare_errors(table)
        k = table.shape[1]
        for a, b in product(range(k), repeat=2):
            if a == b:
                continue
            both = ~np.isnan(table[:, a]) & ~np.isnan(table[:, b])
            x, y = table[both, a], table[both, b]
            assert result.n[a, b] == both.sum()
            assert result.disagreements[a, b] == (x != y).sum()
            assert result.both_wrong[a, b] == ((x == 0) & (y == 0)).sum()
        assert (result.expected_disagreements >= 0).all()
        assert (result.variance >= 0).all()

    @pytest.mark.parametrize("seed", range(4))
    def test_expected_disagreements_are_close_to_their_mean_over_all_tables_with_these_margins(self, seed):
        Q = rasch(np.random.default_rng(seed), 5, 3)
        tables = tables_with_the_margins_of(Q)
        expected = np.mean([(T[:, :, None] != T[:, None, :]).sum(axis=0) for T in tables], axis=0)
        assert compare_errors(Q).expected_disagreements == pytest.approx(expected, abs=0.35)

    def test_equally_able_models_have_the_exact_expectation(self):
        Q = np.array(list(product((0.0, 1.0), repeat=4)))
        pairs = 4 * 3 / 2
        expected = sum(row.sum() * (4 - row.sum()) for row in Q) / pairs
        result = compare_errors(Q).expected_disagreements[np.triu_indices(4, 1)]
        assert result == pytest.approx(expected, abs=1e-6)

    def test_equal_wrong_answers_are_those_of_a_loop_over_pairs(self):
        rng = np.random.default_rng(2)
        codes, is_wrong = rng.integers(-1, 4, (30, 5)).astype(np.int32), rng.random((30, 5)) < 0.7
        result = compare_answers(codes, is_wrong)
        usable = is_wrong & (codes >= 0)
        for a, b in product(range(5), repeat=2):
            if a == b:
                continue
            rows = np.flatnonzero(usable[:, a] & usable[:, b])
            assert result.n[a, b] == rows.size
            assert result.same[a, b] == (codes[rows, a] == codes[rows, b]).sum()
            expected = 0.0
            for row in rows:
                wrong = codes[row][usable[row]]
                equal = [x == y for i, x in enumerate(wrong) for y in wrong[:i]]
                expected += np.mean(equal)
            assert result.expected_same[a, b] == pytest.approx(expected)


class TestLaws:
    def test_the_excess_of_independent_models_is_about_zero_and_that_of_copies_about_two_thirds(self):
        rng = np.random.default_rng(1)
        z, copies = [], []
        for _ in range(N_TABLES):
            Q = rasch(rng, 400, 10)
            result = compare_errors(Q)
            assert not result.near_copies.any()
            z.append(result.z[np.triu_indices(10, 1)])
            share = rng.choice([0.05, 0.1])
            copied = compare_errors(np.column_stack([Q, flip(rng, Q[:, 0], share)]))
            copies.append(copied.near_copies[0, 10])
            assert copied.excess[0, 10] == pytest.approx(np.nanmax(copied.excess))
            assert copied.near_copies.sum() == 2 * copied.near_copies[0, 10]
        assert np.mean(z) == pytest.approx(0, abs=0.02)
        assert 0.95 < np.std(z) < 1.07
        assert np.mean(copies) == 1

    def test_the_approximation_for_eight_models_is_near_the_enumerated_moments(self, monkeypatch):
        Q = rasch(np.random.default_rng(8), 300, 8)
        Q[np.random.default_rng(9).random(Q.shape) < 0.02] = np.nan
        i, j = np.triu_indices(8, 1)
        fitted = compare_errors(Q)
        monkeypatch.setattr("tracker.statistics.related.error_agreement.MIN_CONDITIONED", 9)
        exact = compare_errors(Q)
        assert fitted.expected_disagreements[i, j] == pytest.approx(exact.expected_disagreements[i, j], rel=0.02)
        assert fitted.variance[i, j] == pytest.approx(exact.variance[i, j], rel=0.15)

    def test_scores_missing_at_random_change_neither(self):
        rng = np.random.default_rng(4)
        Q = rasch(rng, 600, 8)
        Q = np.column_stack([Q, flip(rng, Q[:, 2], 0.05)])
        Q[rng.random(Q.shape) < 0.1] = np.nan
        result = compare_errors(Q)
        assert np.argwhere(np.triu(result.near_copies)).tolist() == [[2, 8]]

    def test_the_parts_of_the_pairs_add_up_to_the_variance_of_the_similarity_of_prompts(self):
        Q = rasch(np.random.default_rng(5), 40, 6)
        agree = (Q[:, None] == Q[None]).mean(axis=2)
        result = compare_errors(Q)
        i, j = np.triu_indices(6, 1)
        squares = ((result.n - 2 * result.disagreements) ** 2)[i, j].sum()
        assert (2 * squares + 6 * 40**2) / (4 * 6**2) == pytest.approx(((agree - 0.5) ** 2).sum())

    def test_models_and_prompts_with_one_score_everywhere_are_explained_by_their_sums(self):
        rng = np.random.default_rng(6)
        Q = rasch(rng, 60, 6)
        Q[:, 0], Q[:, 1], Q[:3], Q[3:6] = 0, 1, 1, 0
        result = compare_errors(Q)
        assert np.isfinite(result.expected_disagreements).all()
        assert not result.near_copies[0].any()
        assert not result.near_copies[1].any()

    @pytest.mark.parametrize("k", [1, 2])
    def test_fewer_than_three_models_have_no_near_copies(self, k):
        assert k < MIN_MODELS
        Q = np.repeat(rasch(np.random.default_rng(7), 50, 1), k, axis=1)
        assert not compare_errors(Q).near_copies.any()

    def test_copied_wrong_answers_are_found(self):
        rng = np.random.default_rng(8)
        codes = rng.integers(0, 4, (200, 6)).astype(np.int32)
        codes[:180, 5] = codes[:180, 4]
        is_wrong = np.ones(codes.shape, dtype=bool)
        result = compare_answers(codes, is_wrong)
        assert np.argwhere(np.triu(result.near_copies)).tolist() == [[4, 5]]
        assert np.isnan(compare_answers(codes, ~is_wrong).agreement).all()
