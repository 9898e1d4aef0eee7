"""How far tasks disagree: Kendall's coefficient of concordance, reversed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from analyses.numerics.elections.diversity.concordance import diversity, task_distances, task_ranks
from analyses.numerics.elections.diversity.imputation import impute_knn
from analyses.numerics.elections.exact_scores import exact_scores

TABLES = st.tuples(st.integers(2, 6), st.integers(2, 8), st.integers(0, 10**6)).map(
    lambda of: np.random.default_rng(of[2]).integers(0, 4, of[:2]).astype(float)
)


def plain_w(T: NDArray[np.float64], *, corrected: bool) -> float:
    """By the textbook, in floats."""
    ranks = np.array([stats.rankdata(-row) for row in T])
    n, m = T.shape
    spread = ((ranks.sum(axis=0) - n * (m + 1) / 2) ** 2).sum()
    ties = sum((counts**3 - counts).sum() for counts in (np.unique(row, return_counts=True)[1] for row in T))
    return float(1 - 12 * spread / (n**2 * (m**3 - m) - corrected * n * ties))


def leaderboard(shared: Path, file: str) -> NDArray[np.float64]:
    """``(n_tasks, n_models)`` as the file has it, every row a model of its own."""
    columns = pd.read_csv(shared / "data" / "leaderboards" / file).drop(columns="model")
    return columns.to_numpy(np.float64).T.copy()


class TestAgainstReference:
    @given(TABLES)
    def test_it_is_the_textbook_formula(self, T: NDArray[np.float64]) -> None:
        result = diversity(exact_scores(T))
        assert result.raw == pytest.approx(plain_w(T, corrected=False), abs=1e-12)
        if np.ptp(T, axis=1).any():
            assert result.tie_corrected == pytest.approx(plain_w(T, corrected=True), abs=1e-12)

    def test_without_ties_it_is_the_statistic_of_friedman(self) -> None:
        T = np.random.default_rng(0).random((7, 9))
        result = diversity(exact_scores(T))
        friedman = stats.friedmanchisquare(*T.T).statistic
        assert 1 - result.raw == pytest.approx(friedman / (7 * 8), abs=1e-12)
        assert result.raw == result.tie_corrected

    def test_the_values_of_real_leaderboards(self, shared: Path) -> None:
        known = json.loads((shared / "reference" / "social_choice.json").read_text())
        checked = 0
        for file, values in (known["cardinal"] | known["ordinal"]).items():
            scores = exact_scores(leaderboard(shared, file))
            complete = scores.rows(scores.present.all(axis=1))
            result = {
                "W": lambda scores=scores: diversity(scores).raw,
                "W_tie_corrected": lambda scores=scores: diversity(scores).tie_corrected,
                "W_knn_imputed": lambda scores=scores: diversity(impute_knn(scores)).raw,
                "W_complete_tasks": lambda complete=complete: diversity(complete).raw,
            }
            for name in result.keys() & values.keys():
                assert round(result[name](), 6) == values[name], (file, name)
                checked += 1
        assert checked >= 18

    def test_distances_of_tasks_are_those_of_a_plain_count(self) -> None:
        rng = np.random.default_rng(3)
        T = rng.integers(0, 5, (5, 12)).astype(float)
        T[rng.random(T.shape) < 0.2] = np.nan
        result = task_distances(T)
        for a in range(5):
            for b in range(5):
                products = [
                    np.sign(T[a, i] - T[a, j]) * np.sign(T[b, i] - T[b, j]) for i in range(12) for j in range(i)
                ]
                ordered = [p for p in products if abs(p) == 1]
                assert result[a, b] == pytest.approx(np.mean(np.array(ordered) < 0), abs=1e-12)


class TestLaws:
    @given(TABLES)
    def test_reversing_every_task_and_renaming_models_change_nothing(self, T: NDArray[np.float64]) -> None:
        result = diversity(exact_scores(T))
        assert diversity(exact_scores(T, higher_is_better=False)).raw == result.raw
        moved = diversity(exact_scores(T[::-1, ::-1]))
        assert (moved.raw, 0 <= moved.raw <= 1) == (result.raw, True)
        assert not result.tie_corrected > result.raw

    def test_tasks_that_rank_equally_have_none_and_two_opposite_ones_all(self) -> None:
        T = np.array([[1.0, 2.0, 3.0, 4.0]])
        assert diversity(exact_scores(np.vstack([T, T * 10, T**2]))).raw == 0
        assert diversity(exact_scores(np.vstack([T, -T]))).raw == 1

    def test_ties_are_decided_on_the_numbers_that_were_meant(self) -> None:
        n_prompts = np.array([[3, 6, 3], [1, 1, 1]])
        T = np.array([[2 / 3, 4 / 6 + 1e-16, 1 / 3], [2.0, 2.0, 1.0]])
        assert task_ranks(exact_scores(T, n_prompts)).tolist() == [[1.5, 1.5, 3.0]] * 2


class TestDegenerate:
    def test_one_task_has_no_one_to_disagree_with(self) -> None:
        result = diversity(exact_scores(np.array([[1.0, 1.0, 2.0]])))
        assert (result.raw, result.tie_corrected) == (0.0, 0.0)

    def test_where_every_task_ties_all_the_raw_one_counts_ties_and_the_other_is_not_defined(self) -> None:
        result = diversity(exact_scores(np.ones((3, 4))))
        assert result.raw == 1.0
        assert np.isnan(result.tie_corrected)

    def test_tasks_that_order_no_pair_in_common_have_no_distance(self) -> None:
        result = task_distances(np.array([[1.0, 2.0, np.nan], [1.0, 1.0, 2.0], [3.0, 1.0, 2.0]]))
        assert np.isnan(result[0, 1])
        assert result[0, 2] == 1.0
