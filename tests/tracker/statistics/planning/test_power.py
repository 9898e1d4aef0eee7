from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import stdtrit
from statsmodels.stats.power import TTestPower

from tracker.statistics.planning.power import detectable_difference, power, units_needed

NAN = float("nan")


class TestAgainstReference:
    @pytest.mark.parametrize("n", [3, 14, 100, 12_032])
    @pytest.mark.parametrize("effect", [0.001, 0.05, 0.3])
    def test_power_is_that_of_statsmodels(self, n, effect):
        expected = TTestPower().power(effect, n, 0.05, alternative="two-sided")
        assert power(effect * np.sqrt(n), n - 1) == pytest.approx(expected, abs=1e-10)

    @pytest.mark.parametrize("n", [3, 14, 100, 1000])
    def test_the_detectable_difference_is_that_of_statsmodels(self, n):
        result = detectable_difference(0.7 / np.sqrt(n), n - 1) / 0.7
        assert TTestPower().power(result, n, 0.05) == pytest.approx(0.8, abs=1e-10)
        expected = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8)  # whose power is 0.8 but for some 1e-5
        assert result == pytest.approx(expected, rel=5e-5)

    @pytest.mark.parametrize(("noncentrality", "degrees", "alpha"), [(250, 1, 0.01), (3, 1.7, 0.05), (11, 99, 0.05)])
    def test_far_out_power_is_that_of_the_integral_in_thirty_digits(self, noncentrality, degrees, alpha):
        critical, half = mpmath.mpf(float(stdtrit(degrees, 1 - alpha / 2))), mpmath.mpf(degrees) / 2

        def integrand(s):
            result = mpmath.ncdf(noncentrality - critical * s) + mpmath.ncdf(-noncentrality - critical * s)
            return s ** (2 * half - 1) * mpmath.exp(-half * s * s) * result

        with mpmath.workdps(30):
            points = [0, 0.3, 0.7, 0.9, 1, 1.1, 1.3, 2, 3, 4, 8]
            expected = mpmath.quad(integrand, points) * 2 * half**half / mpmath.gamma(half)
        assert power(noncentrality, degrees, alpha) == pytest.approx(float(expected), rel=1e-12)

    @pytest.mark.parametrize("effect", [0.02, 0.1, 0.5, 1.3])
    def test_as_many_prompts_are_needed_as_statsmodels_reports(self, effect):
        expected = np.ceil(TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8))
        assert units_needed(effect, 1 / np.sqrt(50), 50, 49) == expected

    def test_a_simulated_t_test_finds_the_detectable_difference_as_often_as_reported(self):
        rng, n = np.random.default_rng(0), 14
        delta = detectable_difference(1 / np.sqrt(n), n - 1)
        x = rng.normal(delta, 1, (40_000, n))
        t = x.mean(axis=1) / (x.std(axis=1, ddof=1) / np.sqrt(n))
        assert (np.abs(t) > 2.1603687).mean() == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / 40_000))


class TestLaws:
    @pytest.mark.parametrize("degrees", [1, 1.7, 13, 5000])
    def test_what_is_detectable_is_found_with_the_chance_requested_for(self, degrees):
        result = detectable_difference(0.013, degrees, alpha=0.01, chance=0.9)
        assert power(result / 0.013, degrees, 0.01) == pytest.approx(0.9, abs=1e-9)

    def test_the_number_needed_is_the_least(self):
        needed = units_needed(0.02, 0.013, 400, 399)
        each = 0.02 / 0.013 / 20
        assert power(each * np.sqrt(needed), needed - 1) >= 0.8 > power(each * np.sqrt(needed - 1), needed - 2)

    def test_a_difference_that_is_just_detectable_needs_the_units_there_are(self):
        assert units_needed(detectable_difference(0.1, 13) * (1 + 1e-9), 0.1, 14, 13) == 14


class TestDegenerate:
    def test_without_an_error_there_is_no_power(self):
        assert np.isnan(
            [detectable_difference(0.0, 9), detectable_difference(NAN, 9), detectable_difference(0.1, 0)]
        ).all()
        assert np.isnan(
            [units_needed(0.0, 0.1, 9, 8), units_needed(0.1, 0.0, 9, 8), units_needed(0.1, NAN, 1, 0)]
        ).all()

    def test_a_difference_that_is_next_to_nothing_needs_more_than_anybody_requests(self):
        assert units_needed(1e-9, 0.1, 9, 8) == float("inf")
