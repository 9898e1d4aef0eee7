from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from joblib import parallel_config

from analyses.numerics.comparing.bootstrap import bca_interval, jackknife_means, resampled_means

RNG = np.random.default_rng(8)


def ratio(sums, sizes, axis):
    return sums.sum(axis=axis) / sizes.sum(axis=axis)


def scipys(sums, sizes, level=0.95, n_resamples=999):
    return scipy.stats.bootstrap(
        (sums, sizes), ratio, paired=True, method="BCa", n_resamples=n_resamples, confidence_level=level, rng=1
    )


def units(kind: str) -> tuple[np.ndarray, np.ndarray]:
    if kind == "skewed prompts":
        return RNG.exponential(size=40) - 0.5, np.ones(40)
    if kind == "flips":
        return RNG.choice([-1.0, 0.0, 1.0], 60, p=[0.15, 0.6, 0.25]), np.ones(60)
    return RNG.normal(2, 5, 14), RNG.integers(3, 60, 14).astype(float)


KINDS = ("skewed prompts", "flips", "clusters")


class TestAgainstReference:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("level", [0.95, 0.8])
    def test_on_scipys_resamples_the_interval_is_scipys(self, kind, level):
        sums, sizes = units(kind)
        expected = scipys(sums, sizes, level)
        result = bca_interval(
            expected.bootstrap_distribution, sums.sum() / sizes.sum(), jackknife_means(sums, sizes), level
        )
        assert result == pytest.approx(tuple(expected.confidence_interval), abs=1e-10)

    @pytest.mark.parametrize("kind", KINDS)
    def test_on_our_resamples_scipys_interval_is_ours(self, kind):
        sums, sizes = units(kind)
        drawn = resampled_means(sums, sizes, n_resamples=999, seed=3)
        alone = scipys(sums, sizes, n_resamples=99)
        alone.bootstrap_distribution = drawn
        expected = scipy.stats.bootstrap(
            (sums, sizes), ratio, paired=True, method="BCa", n_resamples=0, bootstrap_result=alone
        )
        result = bca_interval(drawn, sums.sum() / sizes.sum(), jackknife_means(sums, sizes))
        assert result == pytest.approx(tuple(expected.confidence_interval), abs=1e-10)

    @pytest.mark.parametrize("kind", KINDS)
    def test_resamples_have_the_mean_and_spread_that_drawing_units_has(self, kind):
        sums, sizes = units(kind)
        drawn = resampled_means(sums, sizes, n_resamples=6400, seed=0)
        slow = RNG.integers(0, len(sums), (6400, len(sums)))
        slow = sums[slow].sum(axis=1) / sizes[slow].sum(axis=1)
        assert scipy.stats.ks_2samp(drawn, slow).pvalue > 1e-3
        assert drawn.std() == pytest.approx(slow.std(), rel=0.06)

    def test_the_jackknife_leaves_out_one_at_a_time(self):
        sums, sizes = units("clusters")
        expected = [np.delete(sums, i).sum() / np.delete(sizes, i).sum() for i in range(len(sums))]
        assert jackknife_means(sums, sizes) == pytest.approx(expected, rel=1e-12)


class TestLaws:
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_same_seed_gives_the_same_bytes_for_any_number_of_workers(self, kind):
        sums, sizes = units(kind)
        result = resampled_means(sums, sizes, n_resamples=200, seed=1)
        with parallel_config(n_jobs=2):
            assert resampled_means(sums, sizes, n_resamples=200, seed=1).tobytes() == result.tobytes()
        assert resampled_means(sums, sizes, n_resamples=200, seed=2).tobytes() != result.tobytes()

    def test_rounding_decides_no_tie(self):
        d = np.array([0.1, 0.2, 0.3, 0.1, 0.2, -0.1] * 5)
        drawn = resampled_means(d, np.ones(30), n_resamples=999, seed=0)
        noisy = drawn + RNG.uniform(-1e-16, 1e-16, 999)
        jackknife = jackknife_means(d, np.ones(30))
        item, second = (bca_interval(x, d.mean(), jackknife) for x in (drawn, noisy))
        assert item == pytest.approx(second, abs=1e-12)


class TestDegenerate:
    @pytest.mark.parametrize("d", [np.full(9, 0.25), np.zeros(9), np.array([0.3]), np.array([0.3 - 0.2, 0.8 - 0.7])])
    def test_units_that_report_the_same_have_no_interval(self, d):
        drawn = resampled_means(d, np.ones(len(d)), n_resamples=99, seed=0)
        assert np.isnan(bca_interval(drawn, float(d.mean()), jackknife_means(d, np.ones(len(d))))).all()

    def test_resamples_on_one_side_give_no_interval(self):
        d = np.array([0.0, 1.0, 3.0])
        assert np.isnan(bca_interval(np.full(99, 9.0), float(d.mean()), jackknife_means(d, np.ones(3)))).all()
