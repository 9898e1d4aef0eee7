"""Sorting and searching in kernels agree with NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyses.numerics.sorting import first_above, stable_argsort

# Few distinct values, so that ties are common; more values than two runs, so that runs are merged more than once.
VALUES = st.lists(st.integers(-5, 5) | st.floats(allow_nan=False), max_size=90)


class TestAgainstReference:
    @given(VALUES)
    def test_indices_are_those_of_a_stable_sort(self, values: list[float]) -> None:
        array = np.array(values, np.float64)
        order, buffer = np.full(len(values), -1), np.empty(len(values), np.int64)
        stable_argsort(array, order, buffer)
        assert order.tolist() == np.argsort(array, kind="stable").tolist()

    @given(VALUES, st.integers(-6, 6) | st.floats(allow_nan=False))
    def test_first_above_is_where_a_bound_is_inserted_after_equal_values(
        self, values: list[float], bound: float
    ) -> None:
        array = np.sort(np.array(values, np.float64))
        assert first_above(array, float(bound)) == np.searchsorted(array, bound, side="right")
