from __future__ import annotations

import dataclasses

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from analyses.numerics.filtering.effects.correlation_change import CELLS, compare_correlations
from tracker.statistics.rng_streams import RESAMPLED_MODELS, generator

RNG = np.random.default_rng(5)
BEFORE = RNG.random(29)
AFTER = (BEFORE + 0.1 * RNG.random(29)).round(2)
EXTERNAL_SCORES = 1000 + 300 * BEFORE + 100 * RNG.normal(size=29)
SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}

few = st.integers(3, 9).flatmap(
    lambda m: st.tuples(*(arrays(np.float64, m, elements=st.integers(0, 4).map(float)) for _ in range(3)))
)


def correlation(name: str, x: np.ndarray, y: np.ndarray) -> float:
    return float("nan") if np.ptp(x) == 0 or np.ptp(y) == 0 else SCIPY[name](x, y).statistic


def by_loop(name: str, before, after, external_scores, models) -> np.ndarray:
    """The change in each draw, models drawn one draw after the other."""
    return np.array(
        [
            correlation(name, after[some], external_scores[some])
            - correlation(name, before[some], external_scores[some])
            for some in models
        ]
    )


class TestAgainstReference:
    @given(few)
    @settings(max_examples=25)
    def test_every_number_is_that_of_scipy_draw_by_draw(self, scores) -> None:
        result = compare_correlations(*scores, n_draws=15, seed=1)
        m = len(scores[0])
        models = generator(1, RESAMPLED_MODELS, 0).integers(0, m, (15, m))
        for name, correlation_change in result.items():
            before, after, external_scores = scores
            assert correlation_change.before == pytest.approx(
                correlation(name, before, external_scores), abs=1e-12, nan_ok=True
            )
            assert correlation_change.after == pytest.approx(
                correlation(name, after, external_scores), abs=1e-12, nan_ok=True
            )
            assert correlation_change.change == pytest.approx(
                correlation_change.after - correlation_change.before, nan_ok=True
            )
            changes = by_loop(name, *scores, models)
            known = changes[~np.isnan(changes)]
            assert correlation_change.n_undefined == 15 - len(known)
            if len(known):
                assert [correlation_change.low, correlation_change.high] == pytest.approx(
                    np.quantile(known, [0.025, 0.975]).tolist(), abs=1e-12
                )
                assert correlation_change.share_not_above == pytest.approx((known <= 1e-12).mean())
            else:
                assert np.isnan(
                    [correlation_change.low, correlation_change.high, correlation_change.share_not_above]
                ).all()

    def test_draws_go_on_in_the_next_block(self) -> None:
        m, per_block = 29, CELLS // 29
        n_draws = per_block + 50
        result = compare_correlations(BEFORE, AFTER, EXTERNAL_SCORES, n_draws=n_draws, seed=2)["spearman"]
        sizes = (per_block, 50)
        blocks = [generator(2, RESAMPLED_MODELS, b).integers(0, m, (size, m)) for b, size in enumerate(sizes)]
        ranks = [[stats.rankdata(row[some], axis=1) for row in (BEFORE, AFTER, EXTERNAL_SCORES)] for some in blocks]
        changes = np.concatenate(
            [stats.pearsonr(a, o, axis=1).statistic - stats.pearsonr(b, o, axis=1).statistic for b, a, o in ranks]
        )
        assert result.low == pytest.approx(np.quantile(changes, 0.025), abs=1e-12)
        assert result.share_not_above == pytest.approx((changes <= 1e-12).mean())

    def test_the_interval_is_about_that_of_scipys_bootstrap(self) -> None:
        def change(before, after, external_scores, axis=-1):
            return (
                stats.pearsonr(after, external_scores, axis=axis).statistic
                - stats.pearsonr(before, external_scores, axis=axis).statistic
            )

        reference = stats.bootstrap(
            (BEFORE, AFTER, EXTERNAL_SCORES), change, paired=True, vectorized=True, method="percentile", rng=0
        )
        interval = compare_correlations(BEFORE, AFTER, EXTERNAL_SCORES, seed=0)["pearson"]
        width = interval.high - interval.low
        assert interval.low == pytest.approx(reference.confidence_interval.low, abs=0.06 * width)
        assert interval.high == pytest.approx(reference.confidence_interval.high, abs=0.06 * width)


class TestLaws:
    def test_correlations_do_not_depend_on_scale_and_spearmans_on_no_rising_curve(self) -> None:
        plain = compare_correlations(BEFORE, AFTER, EXTERNAL_SCORES, n_draws=200, seed=0)
        scaled = compare_correlations(7 * BEFORE - 3, AFTER / 9, 2 * EXTERNAL_SCORES, n_draws=200, seed=0)
        curved = compare_correlations(np.exp(BEFORE), AFTER**3, np.log(EXTERNAL_SCORES), n_draws=200, seed=0)
        for name in ("before", "after", "change", "low", "high", "share_not_above"):
            for first, second in ((plain["pearson"], scaled["pearson"]), (plain["spearman"], curved["spearman"])):
                assert getattr(first, name) == pytest.approx(getattr(second, name), abs=1e-10)

    def test_before_and_after_in_turned_roles_turn_the_change_round(self) -> None:
        correlation_change = compare_correlations(BEFORE, AFTER, EXTERNAL_SCORES, n_draws=500, seed=0)["pearson"]
        turned = compare_correlations(AFTER, BEFORE, EXTERNAL_SCORES, n_draws=500, seed=0)["pearson"]
        assert (correlation_change.low, correlation_change.high) == pytest.approx(
            (-turned.high, -turned.low), abs=1e-12
        )
        assert correlation_change.share_not_above == pytest.approx(1 - turned.share_not_above)

    def test_models_that_lack_a_score_do_not_count(self) -> None:
        padded = [np.insert(row, [0, 10, 29], 0.5) for row in (BEFORE, AFTER, EXTERNAL_SCORES)]
        for row, place in zip(padded, (0, 11, 31), strict=True):
            row[place] = np.nan
        assert compare_correlations(*padded, n_draws=50, seed=3) == compare_correlations(
            BEFORE, AFTER, EXTERNAL_SCORES, n_draws=50, seed=3
        )

    def test_any_number_of_workers_and_the_same_seed_give_the_same_numbers(self) -> None:
        options = {"n_draws": 2 * CELLS // 29, "seed": 4}
        alone = compare_correlations(BEFORE, AFTER, EXTERNAL_SCORES, **options)
        with joblib.parallel_config(n_jobs=2, backend="threading"):
            assert compare_correlations(BEFORE, AFTER, EXTERNAL_SCORES, **options) == alone
        assert compare_correlations(BEFORE, AFTER, EXTERNAL_SCORES, **options | {"seed": 5}) != alone

    def test_a_real_rise_is_above_nothing_in_nearly_all_draws_and_noise_is_not(self) -> None:
        truth = RNG.normal(size=60)
        noisy, better = truth + 2 * RNG.normal(size=60), truth + 0.1 * RNG.normal(size=60)
        rise = compare_correlations(noisy, better, truth, n_draws=500, seed=0)["pearson"]
        assert rise.low > 0
        assert rise.share_not_above < 0.01
        noise = compare_correlations(noisy, noisy + 0.01 * RNG.normal(size=60), truth, n_draws=500, seed=0)["pearson"]
        assert noise.low < 0 < noise.high

    def test_a_filter_that_only_rescales_changes_nothing_in_any_draw(self) -> None:
        for correlation_change in compare_correlations(
            BEFORE, 0.3 + 0.7 * BEFORE, EXTERNAL_SCORES, n_draws=300, seed=0
        ).values():
            assert correlation_change.share_not_above == 1
            assert [correlation_change.change, correlation_change.low, correlation_change.high] == pytest.approx(
                [0, 0, 0], abs=1e-12
            )


class TestDegenerate:
    def test_with_two_models_nothing_is_defined(self) -> None:
        for m in (0, 1, 2):
            for correlation_change in compare_correlations(
                BEFORE[:m], AFTER[:m], EXTERNAL_SCORES[:m], n_draws=10, seed=0
            ).values():
                assert (correlation_change.n_models, correlation_change.n_draws, correlation_change.n_undefined) == (
                    m,
                    10,
                    10,
                )
                values = [value for value in dataclasses.astuple(correlation_change) if isinstance(value, float)]
                assert len(values) == 6
                assert np.isnan(values).all()

    def test_scores_that_are_all_the_same_have_no_correlation_even_up_to_rounding(self) -> None:
        constant = np.where(np.arange(29) % 2, 0.3, 0.1 + 0.2)
        for correlation_change in compare_correlations(BEFORE, AFTER, constant, n_draws=10, seed=0).values():
            assert np.isnan(
                [correlation_change.before, correlation_change.after, correlation_change.change, correlation_change.low]
            ).all()
            assert correlation_change.n_undefined == 10
        after = compare_correlations(BEFORE, constant, EXTERNAL_SCORES, n_draws=10, seed=0)["pearson"]
        assert not np.isnan(after.before)
        assert np.isnan(after.after)

    def test_draws_of_one_model_only_are_counted_and_left_out(self) -> None:
        result = compare_correlations(BEFORE[:3], AFTER[:3], EXTERNAL_SCORES[:3], n_draws=900, seed=0)["pearson"]
        assert 50 < result.n_undefined < 160  # three times the same of three models: 1 draw in 9
        assert not np.isnan(result.low)
