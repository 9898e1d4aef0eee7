from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analyses.numerics.filtering.effects.spread import Spread, summarize_spread
from analyses.numerics.filtering.effects.subset_error import MIN_MODELS, measure_subset_error
from tracker.statistics.rng_streams import SPLITS, generator

RNG = np.random.default_rng(8)
DIFFICULTY = RNG.normal(size=(400, 1))
Q = (RNG.random((400, 13)) < 1 / (1 + np.exp(DIFFICULTY - np.linspace(-1, 2, 13)))).astype(float)


def not_easy(models: np.ndarray) -> np.ndarray:
    """What not all of the first three models at hand get right."""
    return ~(Q[:, models[:3]] == 1).all(axis=1)


class TestAgainstReference:
    @pytest.mark.parametrize("table", [Q, 50 * Q - 7])
    def test_every_split_is_as_scipy_and_polyfit_have_it(self, table) -> None:
        result = measure_subset_error(table, not_easy, n_splits=12, seed=3)
        for split in range(12):
            order = generator(3, SPLITS, split).permutation(13)
            first, second = np.sort(order[:6]), np.sort(order[6:])
            kept = not_easy(first)
            drawn = generator(3, SPLITS, split, 1).choice(400, kept.sum(), replace=False)
            assert result.n_kept[split] == kept.sum()
            for errors, rows in ((result.chosen, np.flatnonzero(kept)), (result.random, drawn)):
                full, some = table.mean(axis=0), table[rows].mean(axis=0)
                slope, level = np.polyfit(some[first], full[first], 1)
                predicted = level + slope * some[second]
                assert errors.raw[split] == pytest.approx(np.abs(full - some)[second].mean())
                assert errors.fitted[split] == pytest.approx(np.abs(full[second] - predicted).mean())
                tau = stats.kendalltau(table[rows].sum(axis=0)[second], table.sum(axis=0)[second]).statistic
                assert errors.tau[split] == pytest.approx(tau, abs=1e-12)

    def test_mean_and_quantiles_are_of_what_is_known(self) -> None:
        values = np.array([0.3, np.nan, 0.1, 0.2, 0.9])
        low, high = np.nanquantile(values, [0.025, 0.975])
        assert summarize_spread(values) == Spread(
            mean=pytest.approx(0.375), low=pytest.approx(low), high=pytest.approx(high), n=4
        )


class TestLaws:
    def test_the_models_that_choose_are_half_of_them_and_change_from_split_to_split(self) -> None:
        chosen_columns = []

        def choose(models: np.ndarray) -> np.ndarray:
            chosen_columns.append(models.tolist())
            return not_easy(models)

        result = measure_subset_error(Q, choose, n_splits=40, seed=0)
        assert result.n_choosing == 6
        assert all(len(models) == 6 and models == sorted(set(models)) for models in chosen_columns)
        assert {model for models in chosen_columns for model in models} == set(range(13))
        assert len({tuple(models) for models in chosen_columns}) > 30

    def test_keeping_everything_foretells_everything(self) -> None:
        result = measure_subset_error(Q, lambda _: np.ones(400, bool), n_splits=5, seed=0)
        for errors in (result.chosen, result.random):
            assert errors.raw.tolist() == [0] * 5
            assert errors.fitted == pytest.approx(0, abs=1e-12)
            assert errors.tau == pytest.approx(1)
        assert result.n_kept.tolist() == [400] * 5

    def test_without_easy_prompts_scores_are_lower_and_a_line_makes_up_for_it(self) -> None:
        result = measure_subset_error(Q, lambda _: DIFFICULTY[:, 0] > -0.5, n_splits=50, seed=0)
        assert result.chosen.raw.mean() > 5 * result.random.raw.mean()
        assert result.chosen.fitted.mean() < 0.3 * result.chosen.raw.mean()
        assert result.chosen.tau.mean() > 0.8

    def test_a_line_of_the_models_whose_answers_chose_misleads_about_the_others(self) -> None:
        """The choosing models lose just what they got right, the others only part of it."""
        result = measure_subset_error(Q, not_easy, n_splits=50, seed=0)
        assert result.chosen.fitted.mean() > 2 * result.random.fitted.mean()
        assert result.chosen.fitted.mean() > 0.8 * result.chosen.raw.mean()

    def test_a_line_foretells_all_that_a_line_can(self) -> None:
        skill, hardness = RNG.random(10), RNG.random((60, 1))
        table = skill * hardness  # on every subset, a multiple of the score on all
        result = measure_subset_error(table, lambda _: hardness[:, 0] > 0.5, n_splits=5, seed=0)
        assert result.chosen.raw.min() > 0.05
        assert result.chosen.fitted == pytest.approx(0, abs=1e-12)

    def test_the_same_seed_gives_the_same_bytes_and_another_one_others(self) -> None:
        first, same, second = (measure_subset_error(Q, not_easy, n_splits=6, seed=seed) for seed in (1, 1, 2))
        for name in ("raw", "fitted", "tau"):
            assert getattr(first.random, name).tobytes() == getattr(same.random, name).tobytes()
        assert first.random.raw.tobytes() != second.random.raw.tobytes()

    def test_the_direction_of_scores_does_not_matter(self) -> None:
        first, turned = (
            measure_subset_error(Q, not_easy, n_splits=6, seed=1, higher_is_better=up) for up in (True, False)
        )
        assert first.chosen.tau.tolist() == turned.chosen.tau.tolist()


class TestDegenerate:
    def test_too_few_models_are_not_split_and_have_a_reason(self) -> None:
        def nobody(_: np.ndarray) -> np.ndarray:
            raise AssertionError

        result = measure_subset_error(Q[:, : MIN_MODELS - 1], nobody, seed=0)
        assert "8" in result.reason
        assert "7" in result.reason
        assert result.chosen.raw.size == result.random.tau.size == result.n_kept.size == 0
        assert not measure_subset_error(Q[:, :MIN_MODELS], not_easy, n_splits=2, seed=0).reason

    def test_a_subset_of_no_prompts_foretells_nothing(self) -> None:
        result = measure_subset_error(Q, lambda _: np.zeros(400, bool), n_splits=3, seed=0)
        assert result.n_kept.tolist() == [0] * 3
        for errors in (result.chosen, result.random):
            assert np.isnan([errors.raw, errors.fitted, errors.tau]).all()
        assert summarize_spread(result.chosen.raw).n == 0
        assert np.isnan(summarize_spread(result.chosen.raw).mean)

    def test_without_spread_there_is_no_line_and_no_order(self) -> None:
        result = measure_subset_error(Q, lambda _: (Q[:, :1] == Q).all(axis=1), n_splits=3, seed=0)
        assert (result.n_kept > 0).all()
        assert not np.isnan(result.chosen.raw).any()
        assert np.isnan([result.chosen.fitted, result.chosen.tau]).all()
        assert not np.isnan(result.random.fitted).any()
