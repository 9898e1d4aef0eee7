from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from joblib import parallel_config

from analyses.numerics.comparing import sign_flips
from analyses.numerics.comparing.sign_flips import sign_flip_test
from tracker.statistics.mcnemar import mcnemar_pvalues

RNG = np.random.default_rng(7)


def every_sign(values: np.ndarray) -> float:
    """Slow: the share of all signs with a sum at least as large."""
    observed = abs(values.sum())
    sums = [abs(np.dot(signs, values)) for signs in itertools.product((-1, 1), repeat=len(values))]
    return float(np.mean([item >= observed - 1e-9 for item in sums]))


def scipys(values: np.ndarray, n_resamples: float, **options) -> float:
    return scipy.stats.permutation_test(
        (values,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        n_resamples=n_resamples,
        vectorized=True,
        **options,
    ).pvalue


class TestAgainstReference:
    @settings(max_examples=40)
    @given(arrays(np.float64, st.integers(1, 9), elements=st.floats(-2, 2).map(lambda x: round(x, 4))))
    def test_all_signs_are_counted_for_any_numbers(self, values):
        assert sign_flip_test(values).pvalue == pytest.approx(every_sign(values), abs=1e-12)
        assert sign_flip_test(values).is_exact

    @settings(max_examples=40)
    @given(arrays(np.float64, st.integers(1, 9), elements=st.sampled_from([-1.0, -0.5, 0.0, 0.1 + 0.2, 0.7, 1.0])))
    def test_multiples_of_a_number_are_counted_without_rounding(self, values):
        assert sign_flip_test(values).pvalue == pytest.approx(every_sign(values), abs=1e-12)

    @pytest.mark.parametrize("values", [RNG.normal(0.4, 1, 11), RNG.integers(-3, 5, 12) / 2, np.array([1.0, 2.0])])
    def test_exact_pvalues_are_those_of_scipy(self, values):
        assert sign_flip_test(values).pvalue == pytest.approx(scipys(values, np.inf), abs=1e-10)

    @pytest.mark.parametrize("n", [30, 3000])
    def test_scores_of_0_and_1_give_mcnemars_test(self, n):
        d = RNG.choice([-1.0, 0.0, 1.0], n, p=[0.2, 0.5, 0.3])
        result = sign_flip_test(d)
        assert result.is_exact
        assert result.pvalue == pytest.approx(float(mcnemar_pvalues((d > 0).sum(), (d < 0).sum())), rel=1e-10)

    def test_many_prompts_with_halves_are_counted_exactly(self):
        d = RNG.choice([-1.0, -0.5, 0.0, 0.5, 1.0], 4000)
        result, drawn = sign_flip_test(d), sign_flips._drawn(np.abs(d[d != 0]), abs(d.sum()), 9999, 1)
        assert result.is_exact
        assert result.pvalue == pytest.approx(drawn.pvalue, abs=4 * np.sqrt(0.25 / 9999))

    def test_drawn_signs_agree_with_scipys_and_with_t(self):
        values = RNG.normal(0.08, 1, 500)
        result = sign_flip_test(values, n_draws=9999)
        assert result.n_drawn == 9999
        error = 4 * np.sqrt(result.pvalue / 9999)
        assert result.pvalue == pytest.approx(scipys(values, 9999, rng=1), abs=2 * error)
        assert result.pvalue == pytest.approx(scipy.stats.ttest_1samp(values, 0).pvalue, abs=error + 0.003)

    def test_drawn_signs_agree_with_all_signs(self):
        values = RNG.normal(0.5, 1, 15)
        drawn = sign_flips._drawn(np.abs(values), abs(values.sum()), 50_000, 3)
        assert drawn.pvalue == pytest.approx(every_sign(values), abs=4 * np.sqrt(0.25 / 50_000))

    def test_a_published_example(self):
        # Darwin's 15 pairs of maize, in eighths of an inch: Fisher counts 1,726 of 32,768 signs as large.
        inches = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]) / 8
        assert sign_flip_test(inches).pvalue == pytest.approx(1726 / 2**15, abs=1e-12)


class TestLaws:
    @settings(max_examples=40)
    @given(arrays(np.float64, st.integers(1, 12), elements=st.floats(-2, 2).map(lambda x: round(x, 3))), st.randoms())
    def test_order_sign_scale_and_units_of_0_do_not_matter(self, values, random):
        expected = sign_flip_test(values).pvalue
        changed = np.array([*random.sample(values.tolist(), len(values)), 0.0, 0.0]) * -4
        assert sign_flip_test(changed).pvalue == pytest.approx(expected, abs=1e-12)
        assert 0 < expected <= 1

    @pytest.mark.parametrize("size", [1e-12, 1e-9, 1e9, 1e300])
    @pytest.mark.parametrize("n", [12, 40])
    def test_very_small_and_large_differences_are_no_multiples_of_anything(self, size, n):
        values = np.random.default_rng(n).normal(0.3, 1, n)
        assert sign_flip_test(values * size).pvalue == pytest.approx(sign_flip_test(values).pvalue, rel=1e-6)

    def test_the_same_seed_gives_the_same_number_for_any_number_of_workers(self):
        values = RNG.normal(0.1, 1, 101)
        result = sign_flip_test(values, n_draws=999, seed=4)
        with parallel_config(n_jobs=2):
            assert sign_flip_test(values, n_draws=999, seed=4) == result
        assert sign_flip_test(values, n_draws=999, seed=5) != result

    def test_a_drawn_pvalue_is_never_0(self):
        assert sign_flip_test(RNG.uniform(1, 2, 60), n_draws=99).pvalue == 1 / 100

    def test_without_any_difference_p_is_1(self):
        for values in (np.zeros(5), np.array([0.1, 0.2, -0.3]), np.empty(0)):
            assert sign_flip_test(values) == sign_flips.SignFlips(pvalue=1.0, n_drawn=0)

    @pytest.mark.soak
    def test_clusters_whose_signs_are_fair_coins_give_small_pvalues_as_rarely_as_they_should(self):
        rng = np.random.default_rng(1)
        result = np.array([sign_flip_test(rng.normal(0, rng.uniform(0.5, 2, 14))).pvalue for _ in range(2000)])
        for alpha in (0.01, 0.05, 0.2):
            assert (result <= alpha).mean() <= alpha + 3 * np.sqrt(alpha / 2000)
