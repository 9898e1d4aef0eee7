"""Diversity against sensitivity: correlations, lines, and the sides of them."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analyses.numerics.elections.tradeoff_panel import (
    ABOVE,
    BELOW,
    UNDECIDED,
    TradeoffPanel,
    association,
    format_correlation,
)

RNG = np.random.default_rng(3)
POINTS = [(RNG.random(n), RNG.random(n)) for n in (4, 7, 20)] + [(np.arange(5.0), np.array([1, 1, 0, 3, 2.0]))]
NUMBERS = st.floats(0, 1).map(lambda x: round(x, 3))


def panel(diversity, result, upper_bound=None, *, constant=None, random=None) -> TradeoffPanel:
    n = len(diversity)
    simulated = np.array([i in (constant, random) for i in range(n)], dtype=np.bool_)
    return TradeoffPanel(
        system="cardinal",
        change="tau",
        names=tuple(f"b{i}" for i in range(n)),
        is_simulated=simulated,
        diversity=np.asarray(diversity, float),
        sensitivity=np.asarray(result, float),
        upper_bound=np.asarray(result if upper_bound is None else upper_bound, float),
        constant=constant,
        random=random,
    )


class TestAgainstReference:
    @pytest.mark.parametrize(("x", "y"), POINTS)
    def test_pearson_and_its_interval_are_scipys(self, x, y) -> None:
        result, expected = association(x, y), stats.pearsonr(x, y)
        assert result.pearson == pytest.approx(expected.statistic, abs=1e-12)
        assert (result.low, result.high) == pytest.approx(tuple(expected.confidence_interval(0.95)), abs=1e-12)

    @pytest.mark.parametrize(("x", "y"), POINTS)
    def test_spearman_is_scipys_ties_included(self, x, y) -> None:
        assert association(x, y).spearman == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)

    @pytest.mark.parametrize(("x", "y"), POINTS)
    def test_the_line_through_the_origin_is_that_of_least_squares_without_intercept(self, x, y) -> None:
        slope = association(x, y).slope
        assert slope == pytest.approx(np.linalg.lstsq(x[:, None], y, rcond=None)[0][0], rel=1e-12)
        assert slope == pytest.approx(sm.OLS(y, x).fit().params[0], rel=1e-12)


class TestLaws:
    @given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=12))
    def test_correlations_are_between_their_limits_and_do_not_depend_on_the_order_of_points(self, points) -> None:
        x, y = np.array(points).T
        item, second = association(x, y), association(x[::-1].copy(), y[::-1].copy())
        assert second.pearson == pytest.approx(item.pearson, abs=1e-9, nan_ok=True)
        for value in (item.pearson, item.spearman):
            assert np.isnan(value) or -1 <= value <= 1
        if np.isfinite(item.low):
            assert -1 <= item.low <= item.pearson <= item.high <= 1

    @given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=10))
    def test_a_side_of_the_line_holds_for_every_sensitivity_within_its_bounds(self, points) -> None:
        x, low, width = np.array(points).T
        x[:2], high = (0.0, 1.0), low + width
        place = panel(x, low, high, constant=0, random=1).sides
        rng = np.random.default_rng(0)
        for share in rng.random((20, len(x))):
            y = low + share * (high - low)
            line = y[0] + (y[1] - y[0]) * x
            assert not (y > line + 1e-12)[place == BELOW].any()
            assert not (y < line - 1e-12)[place == ABOVE].any()


class TestDegenerate:
    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_fewer_than_three_points_lie_on_any_line(self, n: int) -> None:
        result = association(np.arange(n, dtype=float), np.arange(n, dtype=float))
        assert np.isnan([result.pearson, result.spearman, result.slope, result.low, result.high]).all()

    def test_three_points_have_a_correlation_and_no_interval(self) -> None:
        result = association(np.array([0.0, 1, 2]), np.array([0.0, 2, 1]))
        assert result.pearson == pytest.approx(0.5)
        assert np.isnan([result.low, result.high]).all()

    def test_points_on_a_straight_line_have_no_interval(self) -> None:
        x = np.array([0.1, 0.2, 0.3, 0.7])
        for y, r in ((3 * x, 1.0), (1 - x, -1.0)):
            result = association(x, y)
            assert result.pearson == r
            assert np.isnan([result.low, result.high]).all()

    def test_a_number_that_is_the_same_in_all_points_correlates_with_nothing(self) -> None:
        result = association(np.full(4, 0.3), np.arange(4.0))
        assert np.isnan([result.pearson, result.spearman]).all()
        assert np.isnan(association(np.zeros(4), np.arange(4.0)).slope)

    def test_without_both_baselines_or_with_equal_ones_there_is_no_line_between_them(self) -> None:
        assert panel([0, 1], [0, 1], constant=0).sides is None
        assert panel([0, 1], [0, 1], random=1).baseline_line(np.ones(2)) is None
        assert panel([1, 1], [0, 1], constant=0, random=1).sides is None

    def test_a_correlation_is_written_as_one_only_where_it_is(self) -> None:
        assert [format_correlation(r) for r in (1.0, 0.99996, 0.9994, -0.9999, -1.0)] == [
            "1.000",
            "above 0.999",
            "0.999",
            "below -0.999",
            "-1.000",
        ]


def test_benchmarks_are_below_or_above_the_line_or_left_open_by_bounds() -> None:
    drawn = panel([0, 1, 0.5, 0.5, 0.5], [0, 0.6, 0.1, 0.9, 0.4], [0, 0.8, 0.2, 0.9, 0.5], constant=0, random=1)
    assert drawn.sides.tolist() == [UNDECIDED, UNDECIDED, BELOW, ABOVE, UNDECIDED]
    assert drawn.baseline_line(drawn.sensitivity) == pytest.approx((0.6, 0.0))
    assert drawn.benchmark_association.n == 3
