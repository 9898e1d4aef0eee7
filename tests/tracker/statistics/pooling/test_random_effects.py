"""Overall differences against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.weightstats import DescrStatsW

from tracker.statistics.pooling.random_effects import between_variance, pool_differences

ERRORS = np.array([0.004, 0.006, 0.01, 0.012, 0.02, 0.03])


class TestAgainstReference:
    @pytest.mark.parametrize("spread", [0.0, 0.01, 0.1])
    @pytest.mark.parametrize("k", [3, 6])
    def test_all_numbers_are_those_of_statsmodels(self, k, spread):
        rng = np.random.default_rng(20 + k)
        d = 0.02 + rng.normal(0, spread, k) + rng.normal(0, ERRORS[:k])
        result = pool_differences(d, ERRORS[:k])
        expected = combine_effects(d, ERRORS[:k] ** 2, method_re="iterated", use_t=True, atol=1e-8)
        assert result.tau**2 == pytest.approx(expected.tau2, rel=1e-6, abs=1e-12)
        assert result.weighted_mean == pytest.approx(expected.mean_effect_re, rel=1e-6)
        low, high = expected.conf_int(use_t=True)[3]
        assert (result.weighted_low, result.weighted_high) == pytest.approx((low, high), rel=1e-4, abs=1e-6)
        assert result.weights == pytest.approx(expected.weights_rel_re, rel=1e-6)

    def test_with_equal_errors_it_is_students_t(self):
        d = np.array([0.1, 0.4, -0.2, 0.05])
        result, reference = pool_differences(d, np.full(4, 0.01)), DescrStatsW(d)
        assert result.pvalue == pytest.approx(reference.ttest_mean(0)[1])
        assert (result.low, result.high) == pytest.approx(reference.tconfint_mean())
        assert (result.weighted_low, result.weighted_high) == pytest.approx((result.low, result.high))


class TestLaws:
    @given(st.lists(st.floats(-1, 1), min_size=3, max_size=8), st.floats(0.001, 1))
    def test_the_unit_does_not_matter(self, differences, unit):
        d, errors = np.array(differences), np.resize(ERRORS, len(differences))
        first, second = pool_differences(d, errors), pool_differences(d * unit, errors * unit)
        assert second.mean == pytest.approx(first.mean * unit, rel=1e-6, abs=1e-12)
        assert second.stderr == pytest.approx(first.stderr * unit, rel=1e-6, abs=1e-12)
        mirrored = pool_differences(-d, errors)
        assert mirrored.low == pytest.approx(-first.high, rel=1e-9, abs=1e-12)

    def test_the_variance_between_benchmarks_solves_its_equation(self):
        d, variances = np.array([0.1, -0.2, 0.3, 0.05]), ERRORS[:4] ** 2
        tau2 = between_variance(d, variances)
        weights = 1 / (variances + tau2)
        mean = weights @ d / weights.sum()
        assert weights @ (d - mean) ** 2 == pytest.approx(3)

    def test_too_few_or_exact_differences_are_rejected(self):
        with pytest.raises(ValueError, match="at least 3"):
            pool_differences(np.array([0.1, 0.2]), np.array([0.1, 0.1]))
        with pytest.raises(ValueError, match="positive errors"):
            pool_differences(np.zeros(3), np.array([0.1, 0.0, 0.1]))

    def test_equal_differences_have_the_errors_of_the_benchmarks(self):
        result, error = pool_differences(np.full(4, 0.1), ERRORS[:4]), np.sqrt((ERRORS[:4] ** 2).sum()) / 4
        assert result.pvalue == pytest.approx(2 * stats.t.sf(0.1 / error, 3))
        assert (result.low, result.high) == pytest.approx(stats.t.interval(0.95, 3, 0.1, error))
        assert (result.predicted_low, result.predicted_high) == pytest.approx(stats.t.interval(0.95, 2, 0.1, error))

    @pytest.mark.parametrize("gap", [0.0, 1e-9, 1e-4, 1e-3])
    def test_differences_that_agree_too_closely_have_these_errors_too(self, gap):
        d, errors = np.array([0.2, 0.2, 0.2 + gap]), np.full(3, 0.09)
        result, equal = pool_differences(d, errors), pool_differences(np.full(3, 0.2), errors)
        assert result.pvalue == pytest.approx(equal.pvalue, rel=0.01)
        for name in ("low", "high", "predicted_low", "predicted_high", "weighted_low", "weighted_high"):
            assert getattr(result, name) == pytest.approx(getattr(equal, name), abs=gap)
        assert result.low < 0 < result.pvalue - 0.05
        assert result.weighted_low < result.weighted_high

    def test_intervals_end_at_the_largest_possible_difference(self):
        result = pool_differences(np.array([0.9, 0.1, 0.95]), ERRORS[:3], largest=1.0)
        assert result.high == result.predicted_high == 1
        assert -1 <= result.low < result.mean

    def test_no_differences_have_p_1(self):
        assert pool_differences(np.zeros(4), ERRORS[:4]).pvalue == 1
