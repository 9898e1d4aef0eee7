"""Intervals by betting against a plain computation, and their coverage by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from simulated_tables import betting_interval

from tracker.statistics.grouping import group_rows
from tracker.statistics.intervals import betting
from tracker.statistics.intervals.betting import betting_intervals
from tracker.statistics.intervals.bounded import bounded_intervals
from tracker.statistics.intervals.means import estimate_means

RNG = np.random.default_rng(6)


class TestAgainstReference:
    @pytest.mark.parametrize("n", [1, 7, 60])
    def test_ends_are_those_of_the_capital_on_a_grid_of_means(self, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(betting, "N_ORDERS", 1)
        Y = np.column_stack([RNG.random(n), RNG.beta(0.3, 3, n), np.full(n, 0.4), RNG.integers(0, 2, n)])
        low, high = betting_intervals(Y)
        first, last = betting_interval(Y[np.random.default_rng(betting.SEED).permutation(n)])
        assert low == pytest.approx(first, abs=0.004)
        assert high == pytest.approx(last, abs=0.004)


class TestLaws:
    @pytest.mark.parametrize("level", [0.5, 0.9])
    @pytest.mark.parametrize("shares", [(0.2, 0.3, 0.5), (0.02, 0.03, 0.95), (0.6, 0.4, 0.0)])
    def test_coverage_by_enumeration(self, level: float, shares: tuple[float, ...]) -> None:
        values, p = np.array([0.0, 0.6, 1.0]), np.array(shares)
        codes = np.array(list(product(range(3), repeat=7))).T
        low, high = betting_intervals(values[codes], level)
        mean = values @ p
        assert p[codes].prod(axis=0)[(low <= mean) & (mean <= high)].sum() >= level

    def test_intervals_lie_in_the_bounds_around_the_mean(self) -> None:
        Y = np.column_stack([np.zeros(20), np.ones(20), np.full(20, 0.5), RNG.random(20)])
        low, high = betting_intervals(Y)
        assert ((low >= 0) & (low <= Y.mean(axis=0)) & (Y.mean(axis=0) <= high) & (high <= 1)).all()
        assert (high - low > 0.05).all()

    def test_turned_scores_have_turned_intervals(self) -> None:
        Y = RNG.random((30, 4))
        assert betting_intervals(Y)[0] == pytest.approx(1 - betting_intervals(1 - Y)[1], abs=1e-8)

    def test_columns_do_not_depend_on_each_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Y = RNG.random((30, 5))
        together = betting_intervals(Y)
        monkeypatch.setattr(betting, "MAX_CELLS", 1)
        assert np.array_equal(together, betting_intervals(Y))

    def test_dirichlet_shares_are_narrower(self) -> None:
        Y = RNG.beta(0.5, 0.5, (100, 20))
        low, high = betting_intervals(Y)
        narrow = bounded_intervals(Y, np.ones_like(Y))
        assert (high - low > narrow[1] - narrow[0]).all()


class TestEstimates:
    @pytest.mark.parametrize(
        ("groups", "weights", "bounds", "problem"),
        [
            (["a", "a", "b", "b"], None, (0.0, 1.0), "independent"),
            ([""] * 4, np.array([1.0, 2, 1, 1]), (0.0, 1.0), "independent"),
            ([""] * 4, None, (None, 1.0), "bounds"),
            ([""] * 4, None, (0.0, 0.5), "bounds"),
        ],
    )
    def test_betting_is_rejected_where_it_is_not_proven(self, groups, weights, bounds, problem) -> None:
        scores = np.array([[0.2], [0.4], [0.6], [0.8]])
        with pytest.raises(ValueError, match=problem):
            estimate_means(scores, group_rows(np.array(groups)), weights, bounds, bounded_method="betting")

    def test_each_column_is_estimated_from_its_scores(self) -> None:
        scores = RNG.random((30, 3)) * 4
        scores[:5, 1] = np.nan
        estimates = estimate_means(scores, group_rows(np.full(30, "")), None, (0.0, 4.0), bounded_method="betting")
        for j, column in enumerate((scores[:, 0], scores[5:, 1], scores[:, 2])):
            low, high = betting_intervals(column[:, None] / 4)
            assert (estimates.low[j], estimates.high[j]) == pytest.approx((4 * low[0], 4 * high[0]))
