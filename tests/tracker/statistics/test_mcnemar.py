from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from tracker.statistics.mcnemar import mcnemar_pvalues
from tracker.statistics.multiple_testing import fdr_values, holm_values

RNG = np.random.default_rng(6)


class TestMcNemar:
    def test_it_is_the_exact_test_of_statsmodels_and_the_binomial_test_of_scipy(self):
        pairs = RNG.integers(0, 40, (60, 2)).tolist() + RNG.integers(0, 5000, (60, 2)).tolist()
        pairs += [[0, 0], [0, 1], [1, 0], [7, 7], [0, 1000], [3, 900]]
        first, second = np.array(pairs).T
        result = mcnemar_pvalues(first, second)
        for p, (a, b) in zip(result.tolist(), pairs, strict=True):
            expected = scipy.stats.binomtest(a, a + b).pvalue if a + b else 1.0
            assert p == pytest.approx(expected, rel=1e-10, abs=1e-300)
            if a + b:
                assert p == pytest.approx(mcnemar([[0, a], [b, 0]], exact=True).pvalue, abs=1e-10)

    def test_many_at_once_are_each_as_if_alone(self):
        first, second = RNG.integers(0, 100, (2, 5, 7))
        result = mcnemar_pvalues(first, second)
        assert result.shape == (5, 7)
        assert result.ravel().tolist() == [
            float(mcnemar_pvalues(a, b)) for a, b in zip(first.ravel(), second.ravel(), strict=True)
        ]
        assert result.tolist() == mcnemar_pvalues(second, first).tolist()


class TestManyTests:
    @pytest.mark.parametrize("n", [1, 2, 9, 406])
    def test_adjusted_values_are_those_of_statsmodels_and_scipy(self, n):
        p = np.round(RNG.random(n) ** 3, 3)
        assert holm_values(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
        assert fdr_values(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-12)
        assert fdr_values(p) == pytest.approx(scipy.stats.false_discovery_control(p), abs=1e-12)

    @settings(max_examples=40)
    @given(arrays(np.float64, st.integers(1, 9), elements=st.floats(0, 1).map(lambda x: round(x, 2))))
    def test_holms_values_are_the_largest_so_far_of_what_bonferroni_would_give_for_those_left(self, p):
        largest, expected = 0.0, np.empty(len(p))
        for place, item in enumerate(np.argsort(p, kind="stable")):
            largest = max(largest, min(1.0, p[item] * (len(p) - place)))
            expected[item] = largest
        assert holm_values(p) == pytest.approx(expected, abs=1e-12)

    @settings(max_examples=40)
    @given(arrays(np.float64, st.integers(0, 12), elements=st.sampled_from([0.0, 0.001, 0.04, 0.5, 1.0, np.nan])))
    def test_what_was_not_tested_is_no_hypothesis(self, p):
        present = ~np.isnan(p)
        result = holm_values(p)
        assert np.isnan(result[~present]).all()
        assert result[present].tolist() == holm_values(p[present]).tolist()
        assert (result[present] >= p[present]).all()

    def test_the_procedure_rejects_as_holm_wrote_it(self):
        p = np.array([0.01, 0.04, 0.03, 0.005])
        assert holm_values(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
