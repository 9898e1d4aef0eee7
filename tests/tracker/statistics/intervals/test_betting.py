"""Intervals by betting against a plain computation, and their coverage by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from tracker.statistics.grouping import group_rows
from tracker.statistics.intervals import betting, means
from tracker.statistics.intervals.betting import betting_intervals
from tracker.statistics.intervals.bounded import bounded_intervals
from tracker.statistics.intervals.means import estimate_means

RNG = np.random.default_rng(6)


def final_share(y: np.ndarray, mean: float, chance: float) -> float:
    """The capital after the scores as a share of 1 / chance: bets that would replicate a digital option on them."""
    share, squares = chance, mean * (1 - mean)
    step = -(-len(y) // betting.MAX_BETS)
    for start in range(0, len(y), step):
        if share >= 1 or share < betting.RUIN:
            break
        rate = betting._hedge_rates()[int(share**0.25 * betting.N_RATES)]
        sd_left = np.sqrt(squares / (start + 1) * (len(y) - start))
        bet = min(rate / sd_left, betting.LARGEST_SHARE / mean)
        for score in y[start : start + step]:
            share *= 1 + bet * (score - mean)
            squares += (score - mean) ** 2
    return share


def reaches(y: np.ndarray, mean: float, chance: float) -> bool:
    """Whether the capital reaches 1 / chance."""
    return final_share(y[np.random.default_rng(betting.SEED).permutation(len(y))], mean, chance) >= 1


class TestAgainstReference:
    @pytest.mark.parametrize("n", [1, 7, 60, 1100])
    def test_the_lower_end_is_where_the_capital_is_reached(self, n: int) -> None:
        Y = np.column_stack([RNG.random(n), RNG.beta(0.3, 3, n), np.full(n, 0.4), RNG.integers(0, 2, n)])
        low, high = betting_intervals(Y)
        for j in range(4):
            for y, end in ((Y[:, j], low[j]), (1 - Y[:, j], 1 - high[j])):
                assert end < 1e-6 or reaches(y, end - 1e-9, 0.025)
                assert not reaches(y, end + 1e-6, 0.025)

    def test_rates_of_bets_are_those_of_a_digital_option(self) -> None:
        rates = betting._hedge_rates()
        for share in (1e-9, 0.025, 0.4, 0.97):
            quantile = stats.norm.ppf(share)
            rate = rates[int(share**0.25 * betting.N_RATES)]
            assert rate == pytest.approx(stats.norm.pdf(quantile) / share, rel=0.05)


class TestLaws:
    @pytest.mark.parametrize("chance", [0.025, 0.25])
    @pytest.mark.parametrize("shares", [(0.2, 0.3, 0.5), (0.02, 0.03, 0.95), (0.6, 0.4, 0.0)])
    def test_the_capital_is_not_expected_to_grow_by_enumeration(self, chance: float, shares: tuple[float, ...]) -> None:
        values, p = np.array([0.0, 0.6, 1.0]), np.array(shares)
        codes = np.array(list(product(range(3), repeat=7)))
        rates = betting._hedge_rates()
        capitals = [betting._final_share(values[code], float(values @ p), chance, rates) / chance for code in codes]
        assert p[codes].prod(axis=1) @ capitals == pytest.approx(1, abs=1e-9)

    @pytest.mark.parametrize("level", [0.5, 0.9])
    @pytest.mark.parametrize("shares", [(0.2, 0.3, 0.5), (0.02, 0.03, 0.95), (0.6, 0.4, 0.0)])
    def test_coverage_by_enumeration(self, level: float, shares: tuple[float, ...]) -> None:
        values, p = np.array([0.0, 0.6, 1.0]), np.array(shares)
        codes = np.array(list(product(range(3), repeat=7))).T
        low, high = betting_intervals(values[codes], level)
        mean = values @ p
        assert p[codes].prod(axis=0)[(low <= mean) & (mean <= high)].sum() >= level

    def test_the_chance_to_reject_the_mean_by_enumeration_where_several_orders_would_exceed_it(self) -> None:
        """Capitals of orders that a seed fixes are not exchangeable: their running mean would be too large here."""
        largest, p, chance = 0.99672404, 0.052823, 0.234074
        codes = np.array(list(product((0, 1), repeat=5)))
        shares = [betting._final_share(largest * y, largest * p, chance, betting._hedge_rates()) for y in codes]
        weights = np.where(codes == 1, p, 1 - p).prod(axis=1)
        assert weights[np.array(shares) >= 1].sum() <= chance

    def test_intervals_lie_in_the_bounds_around_the_mean(self) -> None:
        Y = np.column_stack([np.zeros(20), np.ones(20), np.full(20, 0.5), RNG.random(20)])
        low, high = betting_intervals(Y)
        assert ((low >= 0) & (low <= Y.mean(axis=0)) & (Y.mean(axis=0) <= high) & (high <= 1)).all()
        assert (high - low > 0.05).all()

    def test_turned_scores_have_turned_intervals(self) -> None:
        Y = RNG.random((30, 4))
        assert betting_intervals(Y)[0] == pytest.approx(1 - betting_intervals(1 - Y)[1], abs=1e-8)

    def test_columns_do_not_depend_on_each_other(self) -> None:
        Y = RNG.random((30, 5))
        single = [betting_intervals(Y[:, [j]]) for j in range(5)]
        assert np.array_equal(np.array(betting_intervals(Y)), np.hstack(single))

    @pytest.mark.parametrize(("n", "most"), [(20, 1.35), (200, 1.15), (3000, 1.1)])
    def test_intervals_are_nearly_as_narrow_as_those_of_dirichlet_shares(self, n: int, most: float) -> None:
        for a, b in ((0.5, 0.5), (2, 1), (1, 6)):
            Y = RNG.beta(a, b, (n, 20))
            low, high = betting_intervals(Y)
            narrow = bounded_intervals(Y, np.ones_like(Y))
            assert np.median(high - low) < most * np.median(narrow[1] - narrow[0])

    def test_no_mean_below_the_end_remains(self) -> None:
        """Capitals need not fall as the mean grows: of the means that are not rejected, the lowest is the end."""
        grid, rates = np.arange(1, 2000) / 2000, betting._hedge_rates()
        Y = RNG.beta(0.8, 1.2, (40, 150))
        low, _ = betting_intervals(Y)
        order, n_gaps = np.random.default_rng(betting.SEED).permutation(len(Y)), 0
        for column, end in zip(Y[order].T, low, strict=True):
            shares = np.array([betting._final_share(column, mean, 0.025, rates) for mean in grid])
            first, last = grid[shares < 1].min(), grid[shares >= 1].max()
            assert end <= first + 0.003
            n_gaps += last > first
        assert n_gaps > 0

    @pytest.mark.parametrize("level", [0.01, 0.1, 0.5])
    def test_ends_of_a_low_level_lie_around_the_mean(self, level: float) -> None:
        Y = np.hstack([RNG.beta(0.5, 0.5, (20, 300)), RNG.beta(1, 9, (20, 300))])
        low, high = betting_intervals(Y, level)
        assert ((low <= Y.mean(axis=0) + 1e-12) & (Y.mean(axis=0) <= high + 1e-12)).all()


class TestEstimates:
    def test_each_column_is_estimated_from_its_scores(self) -> None:
        scores = RNG.random((30, 3)) * 4
        scores[:5, 1] = np.nan
        estimates = estimate_means(scores, group_rows(np.full(30, "")), None, (0.0, 4.0))
        for j, column in enumerate((scores[:, 0], scores[5:, 1], scores[:, 2])):
            low, high = betting_intervals(column[:, None] / 4)
            assert (estimates.low[j], estimates.high[j]) == pytest.approx((4 * low[0], 4 * high[0]))

    def test_few_scores_have_dirichlet_shares(self) -> None:
        for n in (means.MIN_BETS - 1, means.MIN_BETS):
            scores = RNG.random((n, 2))
            estimates = estimate_means(scores, group_rows(np.full(n, "")), None, (0.0, 1.0))
            is_by_shares = bool((estimates.low == bounded_intervals(scores, np.ones_like(scores))[0]).all())
            assert is_by_shares == (n < means.MIN_BETS)

    def test_clusters_strata_and_weights_have_dirichlet_shares(self) -> None:
        scores = RNG.random((30, 2))
        independent = group_rows(np.full(30, ""))
        by_betting = estimate_means(scores, independent, None, (0.0, 1.0))
        weighted = estimate_means(scores, independent, 1 + RNG.random(30), (0.0, 1.0))
        tasks = estimate_means(scores, group_rows(np.full(30, ""), np.repeat(["a", "b"], 15)), None, (0.0, 1.0))
        assert (by_betting.low == betting_intervals(scores)[0]).all()
        assert (weighted.low != by_betting.low).all()
        assert (tasks.low != by_betting.low).all()


@pytest.mark.parametrize(
    ("values", "bounds", "name"),
    [
        (np.arange(30) % 2 * 4.0, (0.0, 4.0), "Blaker"),
        (np.arange(30) % 2 * 1.0, (None, None), "Blaker"),
        (np.arange(30) % 3 * 2.0, (0.0, 4.0), "betting"),
        (np.arange(19) % 3 * 2.0, (0.0, 4.0), "Dirichlet"),
        (np.arange(30) % 3 * 2.0, (0.0, 3.0), "bootstrap-t"),
        (np.arange(30) % 3 * 2.0, (0.0, None), "bootstrap-t"),
    ],
)
def test_the_method_is_named(values: np.ndarray, bounds: tuple[float | None, float | None], name: str) -> None:
    assert means.name_interval_method(values, bounds).startswith(name)
