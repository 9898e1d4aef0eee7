from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from tracker.statistics.multiple_testing import ascending_fdr_values, fdr_values

PVALUES = arrays(np.float64, st.integers(1, 30), elements=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.05, 1.0])))


class TestAgainstReference:
    @given(pvalues=PVALUES)
    def test_equal_to_scipy(self, pvalues):
        assert fdr_values(pvalues) == pytest.approx(false_discovery_control(pvalues), rel=1e-14)

    @given(pvalues=PVALUES)
    def test_equal_to_statsmodels(self, pvalues):
        assert fdr_values(pvalues) == pytest.approx(multipletests(pvalues, method="fdr_bh")[1], rel=1e-14)


class TestLaws:
    def test_what_is_no_hypothesis_changes_nothing(self):
        pvalues = np.array([0.01, np.nan, 0.3, 0.02, np.nan])
        values = fdr_values(pvalues)
        assert np.isnan(values).tolist() == [False, True, False, False, True]
        assert values[[0, 2, 3]] == pytest.approx(fdr_values(pvalues[[0, 2, 3]]), abs=0)
        assert np.isnan(fdr_values(np.full(3, np.nan))).all()

    def test_rows_are_families_of_their_own(self):
        rng = np.random.default_rng(0)
        pvalues = np.sort(rng.random((4, 9)), axis=1)
        pvalues[2, 5:] = np.nan
        together = ascending_fdr_values(pvalues)
        for row, values in zip(pvalues, together, strict=True):
            present = ~np.isnan(row)
            assert values[present] == pytest.approx(false_discovery_control(row[present]), rel=1e-14)
            assert np.isnan(values[~present]).all()
