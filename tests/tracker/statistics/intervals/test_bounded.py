"""Intervals of scores in [0, 1] against exact and drawn references."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.statistics.intervals.binomial import beta_interval
from tracker.statistics.intervals.bounded import MAX_VALUES, bounded_intervals

RNG = np.random.default_rng(5)


def ones(Y: np.ndarray) -> np.ndarray:
    return np.ones_like(Y)


class TestAgainstReference:
    @pytest.mark.parametrize("n", [5, 40, 700])
    def test_scores_of_0_and_1_give_the_interval_of_clopper_and_pearson(self, n):
        counts = np.unique([0, 1, n // 3, n - 1, n])
        Y = (np.arange(n)[:, None] < counts).astype(float)
        low, high = bounded_intervals(Y, ones(Y))
        expected = beta_interval(counts / n, np.full(len(counts), float(n)))
        assert low == pytest.approx(expected[0], abs=0.03 / n)
        assert high == pytest.approx(expected[1], abs=0.03 / n)

    def test_ends_are_quantiles_of_dirichlet_means_with_a_score_at_the_bound(self):
        y, shapes = RNG.integers(0, 6, 30) / 5, RNG.random(30) + 0.5
        drawn = RNG.dirichlet(np.append(shapes, 1), 100_000)
        low, high = bounded_intervals(y[:, None], shapes[:, None])
        assert low[0] == pytest.approx(np.quantile(drawn @ np.append(y, 0), 0.025), abs=0.002)
        assert high[0] == pytest.approx(np.quantile(drawn @ np.append(y, 1), 0.975), abs=0.002)


class TestLaws:
    def test_intervals_lie_in_the_bounds_and_have_a_width(self):
        Y = np.column_stack([np.zeros(20), np.ones(20), np.full(20, 0.5), RNG.random(20)])
        low, high = bounded_intervals(Y, ones(Y))
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert (high > low).all()
        assert (low <= Y.mean(axis=0)).all()
        assert (high >= Y.mean(axis=0)).all()

    def test_larger_scores_have_larger_ends(self):
        Y = RNG.random((50, 1))
        Y = np.hstack([Y, np.minimum(Y + 0.1, 1)])
        low, high = bounded_intervals(Y, ones(Y))
        assert low[0] < low[1]
        assert high[0] < high[1]

    def test_turned_scores_have_turned_intervals(self):
        Y = RNG.random((30, 4))
        low, _ = bounded_intervals(Y, ones(Y))
        turned = bounded_intervals(1 - Y, ones(Y))
        assert low == pytest.approx(1 - turned[1], abs=1e-9)

    def test_bins_change_little(self, monkeypatch):
        Y = RNG.beta(0.3, 2, (4 * MAX_VALUES, 2))
        binned = bounded_intervals(Y, ones(Y))
        monkeypatch.setattr("tracker.statistics.intervals.bounded.MAX_VALUES", len(Y))
        exact = bounded_intervals(Y, ones(Y))
        width = exact[1] - exact[0]
        assert (np.abs(binned[0] - exact[0]) < 1e-3 * width).all()
