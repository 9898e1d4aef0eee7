"""Scores of any finite size have the ranks, p-values and errors of the same scores in another unit."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.statistics.grouping import group_rows
from tracker.statistics.intervals.means import estimate_means
from tracker.statistics.rank_intervals import rank_intervals
from tracker.statistics.ranking import mean_ranks, scale_exponent

RNG = np.random.default_rng(3)
TABLE = np.hstack([RNG.uniform(0.1, 1, (24, 3)), RNG.uniform(0.3, 1, (24, 2))])
TASKS = np.repeat(["a", "b", "c", "d"], 6)
UNITS = (2.0**1023, 2.0**-1000, 1e300, 1e-300, -1e307)


@pytest.mark.parametrize("unit", UNITS)
class TestUnits:
    def test_rank_intervals(self, unit):
        groups = group_rows(TASKS)
        expected = rank_intervals(TABLE, groups, n_resamples=40)
        result = rank_intervals(TABLE * unit, groups, n_resamples=40, higher_is_better=unit > 0)
        for name in ("rank", "rank_low", "rank_high", "bootstrap_low", "bootstrap_high", "better"):
            np.testing.assert_array_equal(getattr(result, name), getattr(expected, name))
        np.testing.assert_allclose(result.pvalues, expected.pvalues, rtol=1e-9)
        ends = (result.low, result.high) if unit > 0 else (result.high, result.low)
        for values, reference in zip((result.mean, *ends), (expected.mean, expected.low, expected.high), strict=True):
            np.testing.assert_allclose(values / unit, reference, rtol=1e-12)
        np.testing.assert_allclose(
            result.pairs.stderr_clustered / abs(unit), expected.pairs.stderr_clustered, rtol=1e-9
        )

    def test_means_and_errors(self, unit):
        expected, result = (estimate_means(Q, group_rows(TASKS)) for Q in (TABLE, TABLE * unit))
        np.testing.assert_allclose(result.mean / unit, expected.mean, rtol=1e-12)
        for error in ("stderr", "stderr_design"):
            np.testing.assert_allclose(getattr(result, error) / abs(unit), getattr(expected, error), rtol=1e-9)


class TestRanks:
    def test_infinities_and_the_largest_numbers(self):
        scores = np.array([np.inf, -1.7e308, np.inf, 1.7e308, -np.inf, 1.7e308, 0.0])
        np.testing.assert_array_equal(mean_ranks(scores), [1.5, 6, 1.5, 3.5, 7, 3.5, 5])
        np.testing.assert_array_equal(mean_ranks(scores, higher_is_better=False), [6.5, 2, 6.5, 4.5, 1, 4.5, 3])

    def test_missing_scores_come_last(self) -> None:
        scores = np.array([np.nan, 1.0, np.nan, 2.0])
        assert mean_ranks(scores).tolist() == [3, 2, 4, 1]

    def test_the_smallest_numbers_are_distinct(self):
        np.testing.assert_array_equal(mean_ranks(np.array([5e-324, 1.5e-323, 0.0])), [2, 1, 3])

    def test_exponent(self):
        assert [scale_exponent(np.array(x)) for x in ([0.0], [1.0, 0.5], [-1.9], [np.inf, 4.0], [5e-324], [])] == [
            0, 0, 0, 2, -1074, 0,
        ]  # fmt: skip
