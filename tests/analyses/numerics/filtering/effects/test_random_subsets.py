from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from scipy.stats import kendalltau, pearsonr, percentileofscore, spearmanr

from analyses.numerics.filtering.effects.random_subsets import (
    SubsetStatistics,
    draw_random_subsets,
    find_position,
    random_subset_statistics,
    subset_statistics,
)

NAMES = tuple(SubsetStatistics.__dataclass_fields__)


def table(seed: int, n_prompts: int, n_models: int, missing: float = 0.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    Q = (random.random((n_prompts, n_models)) < random.random(n_models)).astype(np.float64)
    Q[random.random(Q.shape) < missing] = np.nan
    return Q


class TestAgainstReference:
    @settings(max_examples=25)
    @given(st.integers(0, 10**6), st.integers(3, 9), st.sampled_from([0.0, 0.3]))
    def test_statistics_are_those_of_scipy_one_selection_at_a_time(self, seed, n_models, missing):
        Q = table(seed, 40, n_models, missing)
        random = np.random.default_rng(seed)
        external_scores = random.normal(size=n_models).round(1)
        excluded = random.random(n_models) < 0.4
        selections = random.random((4, 40)) < 0.5
        result = subset_statistics(Q, selections, excluded=excluded, external_scores=external_scores)
        full = np.nanmean(Q, axis=0)
        for row, chosen in enumerate(selections):
            means = np.nanmean(Q[chosen], axis=0)
            np.testing.assert_allclose(result.means[row], means)
            if np.ptp(means) and np.ptp(external_scores):
                assert result.pearson[row] == pytest.approx(pearsonr(means, external_scores)[0])
                assert result.spearman[row] == pytest.approx(spearmanr(means, external_scores)[0])
            assert result.tau[row] == pytest.approx(kendalltau(full, means)[0], nan_ok=True)
            rest = kendalltau(full[~excluded], means[~excluded])[0] if (~excluded).sum() > 1 else np.nan
            assert result.tau_without_excluded[row] == pytest.approx(rest, nan_ok=True)

    def test_a_position_is_scipys_mean_percentile(self):
        among = np.array([1.0, 2.0, 2.0, 3.0, np.nan])
        for value in (0.5, 1.0, 2.0, 2.5, 9.0):
            assert find_position(value, among) == percentileofscore(among[:4], value, kind="mean") / 100


class TestLaws:
    def test_random_subsets_have_their_size_and_are_the_same_whoever_draws_them(self):
        together = draw_random_subsets(50, 20, range(12), 7)
        assert (together.sum(axis=1) == 20).all()
        np.testing.assert_array_equal(together[5:9], draw_random_subsets(50, 20, range(5, 9), 7))
        assert len({row.tobytes() for row in together}) == 12
        assert (draw_random_subsets(50, 20, range(12), 8) != together).any()

    def test_every_prompt_is_chosen_as_often_as_any_other(self):
        often = draw_random_subsets(10, 3, range(4000), 0).mean(axis=0)
        np.testing.assert_allclose(often, 0.3, atol=6 * np.sqrt(0.3 * 0.7 / 4000))

    def test_all_prompts_rank_as_all_prompts_do(self):
        result = random_subset_statistics(table(1, 30, 6), 30, n_subsets=3, seed=0)
        assert (result.tau == 1).all()

    def test_any_number_of_workers_finds_the_same_bytes(self):
        Q = table(2, 100, 8)
        external_scores = np.arange(8.0)
        alone = random_subset_statistics(Q, 40, n_subsets=70, seed=3, external_scores=external_scores)
        with parallel_config(n_jobs=3, backend="threading"):
            spread = random_subset_statistics(Q, 40, n_subsets=70, seed=3, external_scores=external_scores)
        for name in NAMES:
            np.testing.assert_array_equal(getattr(alone, name), getattr(spread, name))

    def test_they_are_the_statistics_of_the_random_subsets(self):
        Q = table(4, 60, 5)
        drawn = random_subset_statistics(Q, 25, n_subsets=40, seed=3, external_scores=np.arange(5.0))
        explicit_subsets = subset_statistics(
            Q, draw_random_subsets(60, 25, range(40), 3), external_scores=np.arange(5.0)
        )
        for name in NAMES:
            np.testing.assert_allclose(getattr(drawn, name), getattr(explicit_subsets, name))

    @settings(max_examples=25)
    @given(st.integers(0, 10**6))
    def test_the_positions_of_all_values_average_to_the_middle(self, seed):
        among = np.random.default_rng(seed).integers(0, 5, 30).astype(np.float64)
        assert np.mean([find_position(value, among) for value in among]) == pytest.approx(0.5)


class TestDegenerate:
    def test_an_empty_selection_has_no_statistics(self):
        result = subset_statistics(table(0, 10, 4), np.zeros((1, 10), bool), external_scores=np.arange(4.0))
        for name in NAMES:
            assert np.isnan(getattr(result, name)).all()

    def test_a_model_without_scores_in_a_selection_is_in_none_of_its_rankings(self):
        Q = table(5, 40, 6)
        Q[:20, 2] = np.nan
        chosen = np.zeros((1, 40), bool)
        chosen[0, :20] = True
        result = subset_statistics(Q, chosen, external_scores=np.arange(6.0))
        assert np.isnan(result.means[0, 2])
        rest = [0, 1, 3, 4, 5]
        means = Q[:20, rest].mean(axis=0)
        assert result.tau[0] == pytest.approx(kendalltau(np.nanmean(Q, axis=0)[rest], means)[0])
        assert result.pearson[0] == pytest.approx(pearsonr(means, np.array(rest))[0])

    def test_tied_models_have_no_correlation_and_no_rank_agreement(self):
        result = subset_statistics(np.full((8, 5), 0.1), np.ones((1, 8), bool), external_scores=np.arange(5.0))
        assert np.isnan([result.tau[0], result.pearson[0], result.spearman[0]]).all()

    def test_two_models_have_no_correlation(self):
        result = subset_statistics(np.array([[0.0, 1.0]]), np.ones((1, 1), bool), external_scores=np.array([1.0, 2.0]))
        assert result.tau[0] == 1
        assert np.isnan(result.pearson[0])

    def test_models_unknown_elsewhere_are_left_out_of_correlations(self):
        Q = table(6, 50, 6)
        external_scores = np.array([1.0, np.nan, 3.0, 2.0, 5.0, np.nan])
        known = ~np.isnan(external_scores)
        result = subset_statistics(Q, np.ones((1, 50), bool), external_scores=external_scores)
        assert result.spearman[0] == pytest.approx(spearmanr(Q.mean(axis=0)[known], external_scores[known])[0])
        assert np.isnan(subset_statistics(Q, np.ones((1, 50), bool)).pearson[0])

    def test_no_subsets_have_no_statistics(self):
        result = random_subset_statistics(table(0, 10, 4), 5, n_subsets=0, seed=0)
        assert result.means.shape == (0, 4)
        assert result.tau.shape == (0,)

    def test_without_a_value_or_others_there_is_no_position(self):
        assert np.isnan(find_position(np.nan, np.ones(3)))
        assert np.isnan(find_position(1.0, np.full(2, np.nan)))
