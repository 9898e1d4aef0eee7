from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import ks_2samp

from analyses.numerics.pooled_distance import compute_pooled_distances

SAMPLES = arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 12)),
    elements=st.sampled_from([np.float32(x) for x in (0, 0.25, 0.5, 1, 3, np.nan)]),
)


@given(values=SAMPLES)
def test_equal_to_the_two_sample_distance_of_scipy(values):
    distances = compute_pooled_distances(np.sort(values, axis=1))
    pool = values[~np.isnan(values)]
    for row, distance in zip(values, distances, strict=True):
        observed = row[~np.isnan(row)]
        if observed.size:
            assert distance == pytest.approx(ks_2samp(observed, pool, method="asymp").statistic, abs=1e-12)
        else:
            assert np.isnan(distance)
