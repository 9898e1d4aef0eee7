"""Intervals of a proportion against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tracker.statistics.intervals.binomial import beta_interval, blaker_interval

GRID = np.linspace(0, 1, 200_001)[1:-1]


def acceptability(x: int, n: int, p: np.ndarray) -> np.ndarray:
    """Blaker's confidence curve, from its definition: the chance of a count whose smaller tail is as small."""
    counts = np.arange(n + 1)
    smaller = np.minimum(stats.binom.cdf(counts, n, p[:, None]), stats.binom.sf(counts - 1, n, p[:, None]))
    as_rare = smaller <= smaller[:, [x]] * (1 + 1e-9)
    return (stats.binom.pmf(counts, n, p[:, None]) * as_rare).sum(axis=1)


class TestAgainstReference:
    @pytest.mark.parametrize(("x", "n"), [(0, 5), (1, 5), (2, 5), (3, 8), (7, 8), (4, 20), (10, 20)])
    def test_blaker_is_the_hull_of_the_probabilities_that_are_not_rejected(self, x, n):
        grid = GRID[::20]
        kept = grid[acceptability(x, n, grid) > 0.05]
        low, high = blaker_interval(np.array([x]), n)
        assert (low[0], high[0]) == pytest.approx((kept.min() if x else 0, kept.max() if x < n else 1), abs=1.1e-4)

    def test_effective_numbers_that_are_integers_give_the_interval_of_clopper_and_pearson(self):
        x = np.array([0, 3, 20])
        low, high = beta_interval(x / 20, np.full(3, 20.0))
        expected = [stats.binomtest(int(count), 20).proportion_ci(method="exact") for count in x]
        assert np.column_stack([low, high]) == pytest.approx(np.array(expected), abs=1e-12)


class TestLaws:
    @pytest.mark.parametrize("n", [50, 100, 500])
    def test_the_truth_is_held_with_95_percent_for_every_probability(self, n):
        counts = np.arange(n + 1)
        low, high = blaker_interval(counts, n)

        def coverage(p: float) -> float:
            return float(stats.binom.pmf(counts, n, p)[(low <= p) & (p <= high)].sum())

        exact = beta_interval(counts / n, np.full(n + 1, float(n)))
        assert min(coverage(p) for p in [0.01, 0.03, 0.5, 0.9, 0.97, 0.99, *GRID[::997]]) >= 0.95
        assert (low >= exact[0] - 1e-12).all()
        assert (high <= exact[1] + 1e-12).all()
        assert (np.diff(low) > 0).all()
        assert (high > low).all()

    def test_intervals_are_symmetric(self):
        low, high = blaker_interval(np.arange(31), 30)
        assert low == pytest.approx(1 - high[::-1], abs=1e-12)
