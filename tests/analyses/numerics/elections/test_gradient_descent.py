"""The paper's own algorithms: gradient descent on hinges, which gives lower bounds."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import average_ranks, ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores, exact_scores
from analyses.numerics.elections.gradient_descent import (
    SmoothWinRates,
    descend_cardinal_sensitivity,
    descend_ordinal_sensitivity,
    hinge_gradient,
    normalised_weights,
    weight_gradient,
)
from analyses.numerics.elections.win_rates import WIN_RATE_RULES, WinRateRule, win_rates

EPSILONS = st.sampled_from([Fraction(1, 1000), Fraction(1, 100), Fraction(1, 3), Fraction(1)])
LEADING = np.array([0, 1, 2])


def table(seed: int, *, levels: int = 4, missing: float = 0.0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    T = rng.integers(0, levels, (rng.integers(1, 6), rng.integers(4, 8))).astype(float)
    T[rng.random(T.shape) < missing] = np.nan
    T[0, np.isnan(T).all(axis=0)] = 1.0
    return T


def hinge(scores: NDArray[np.float64], before: NDArray[np.float64], margin: float) -> float:
    """As printed, over the number of ordered pairs."""
    pairs = [(i, j) for i in range(len(scores)) for j in range(len(scores)) if before[i] < before[j]]
    return sum(max(scores[i] - scores[j], -margin) for i, j in pairs) / len(pairs)


class TestAgainstReference:
    def test_the_slope_by_theta_is_the_quotient_of_small_differences(self) -> None:
        rng = np.random.default_rng(5)
        T, before, theta = rng.normal(size=(4, 9)), average_ranks(rng.normal(size=9)), rng.normal(size=4)

        def loss(theta: NDArray[np.float64]) -> float:
            return hinge(normalised_weights(theta, 0.01)[0] @ T, before, 0.0)

        step = 1e-6
        quotients = [(loss(theta + step * e) - loss(theta - step * e)) / (2 * step) for e in np.eye(4)]
        assert weight_gradient(T, theta, before, 0.01) == pytest.approx(quotients, abs=1e-8)

    def test_the_slope_of_the_hinge_knows_the_margin(self) -> None:
        rng = np.random.default_rng(6)
        scores, before, step = rng.normal(size=8) / 10, average_ranks(rng.integers(0, 5, 8)), 1e-7
        quotients = [
            (hinge(scores + step * e, before, 0.05) - hinge(scores - step * e, before, 0.05)) / (2 * step)
            for e in np.eye(8)
        ]
        assert hinge_gradient(scores, before, 0.05) == pytest.approx(quotients, abs=1e-6)

    @pytest.mark.parametrize("rule", WIN_RATE_RULES)
    def test_win_rates_of_every_subset_are_those_counted_exactly(self, rule: WinRateRule) -> None:
        scores = exact_scores(table(11, missing=0.3))
        n_others = scores.n_models - 3
        smooth = SmoothWinRates.from_scores(scores, np.arange(scores.n_models), 3, rule)
        for added in itertools.product([False, True], repeat=n_others):
            field = np.concatenate([LEADING, 3 + np.flatnonzero(added)])
            exact = [float(rate) for rate in win_rates(scores, field, rule=rule)[:3]]
            assert smooth.evaluate(np.array(added))[0] == pytest.approx(exact, abs=1e-12)

    def test_the_slopes_of_win_rates_are_those_of_the_printed_quotient(self) -> None:
        scores = exact_scores(table(4))
        smooth = SmoothWinRates.from_scores(scores, np.arange(scores.n_models), 3, "pairwise")
        won = smooth.points[0]
        added = np.zeros(scores.n_models - 3, bool)
        added[0] = True
        with_model = np.concatenate([np.ones(3), added])
        step = 1e-7
        for place in range(len(added)):
            more = with_model.copy()
            more[3 + place] += step
            quotient = ((won @ more) / more.sum() - (won @ with_model) / with_model.sum()) / step
            assert smooth.evaluate(added)[1][:, place] == pytest.approx(quotient, abs=1e-6)


class TestLaws:
    @given(st.integers(0, 10**6), EPSILONS, st.booleans())
    @settings(max_examples=30)
    def test_weights_are_within_their_limits_and_achieve_the_value(
        self, seed: int, epsilon: Fraction, standardised: bool
    ) -> None:
        scores = exact_scores(table(seed))
        result = descend_cardinal_sensitivity(scores, epsilon=epsilon, standardised=standardised, n_steps=20, seed=seed)
        weights = result.tau.witness
        constant = (scores.T[:, :1] == scores.T).all(axis=1)
        assert (np.isnan(weights) == constant).all()
        if not constant.all():
            least, most = float(np.nanmin(weights)), float(np.nanmax(weights))
            assert Fraction(repr(least)) >= epsilon
            assert most == 1
        assert (result.before == average_ranks(scores.numerators.sum(axis=0))).all()
        assert result.tau.distance == ranking_distance(result.before, result.tau.ranks_after)
        assert 0 <= result.tau.value <= result.tau.upper_bound <= 1
        assert 0 <= result.mrc.value <= result.mrc.upper_bound <= 1
        if epsilon == 1 and not standardised:
            assert (result.tau.value, result.mrc.value) == (0, 0)

    @given(st.integers(0, 10**6), st.sampled_from(WIN_RATE_RULES), st.sampled_from([0.0, 0.3]))
    @settings(max_examples=30)
    def test_no_subset_does_more_than_the_largest_over_all_subsets(
        self, seed: int, rule: WinRateRule, missing: float
    ) -> None:
        scores = exact_scores(table(seed, missing=missing))
        result = descend_ordinal_sensitivity(scores, leading=LEADING, rule=rule, n_steps=20, seed=seed)
        taus, mrcs = _over_all_subsets(scores, rule)
        assert result.tau.value <= max(taus) <= result.tau.upper_bound
        assert result.mrc.value <= max(mrcs) <= result.mrc.upper_bound
        assert (result.tau.value, result.mrc.value) in zip(taus, mrcs, strict=True)

    def test_descent_finds_what_a_plain_case_offers(self) -> None:
        scores = exact_scores(np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 0.9, 1.8, 2.7]]))
        result = descend_cardinal_sensitivity(scores, epsilon=Fraction(1, 100), standardised=False, seed=0)
        assert (result.tau.value, result.mrc.value) == (1.0, 1.0)

    @pytest.mark.parametrize("unit", [128.0, 2.0**900, 2.0**-900])
    def test_the_unit_of_the_scores_does_not_matter(self, unit: float) -> None:
        scores, percent = exact_scores(table(8)), exact_scores(unit * table(8))
        item, second = (
            descend_cardinal_sensitivity(scores_expected, epsilon=Fraction(1, 100), standardised=False, seed=1)
            for scores_expected in (scores, percent)
        )
        assert item.tau.witness == pytest.approx(second.tau.witness, rel=1e-6, nan_ok=True)

    def test_the_same_seed_gives_the_same_bytes(self) -> None:
        scores = exact_scores(np.random.default_rng(0).random((12, 30)))
        weights = [
            descend_cardinal_sensitivity(
                scores, epsilon=Fraction(1, 100), standardised=True, n_steps=1, seed=seed
            ).tau.witness
            for seed in (1, 1, 2)
        ]
        added = [
            descend_ordinal_sensitivity(scores, leading=LEADING, rule="pairwise", n_steps=1, seed=seed).tau.witness
            for seed in (1, 1, 2)
        ]
        for first, again, second in (weights, added):
            assert first.tobytes() == again.tobytes() != second.tobytes()


class TestDegenerate:
    def test_where_every_task_ties_all_nothing_moves(self) -> None:
        result = descend_cardinal_sensitivity(
            exact_scores(np.ones((3, 4))), epsilon=Fraction(1, 100), standardised=True, seed=0
        )
        assert np.isnan(result.tau.witness).all()
        assert (result.tau.value, result.tau.upper_bound, result.mrc.value) == (0, 0, 0)

    def test_without_other_models_nothing_is_added(self) -> None:
        scores = exact_scores(np.array([[1.0, 2.0, 3.0]]))
        result = descend_ordinal_sensitivity(scores, leading=np.array([2, 1, 0]), rule="pairwise", seed=0)
        assert (result.tau.value, len(result.tau.witness)) == (0, 0)


def _over_all_subsets(scores: ExactScores, rule: WinRateRule) -> tuple[list[float], list[float]]:
    before = average_ranks(win_rates(scores, LEADING, rule=rule))
    taus, mrcs = [], []
    for added in itertools.product([False, True], repeat=scores.n_models - 3):
        field = np.concatenate([LEADING, 3 + np.flatnonzero(added)])
        distance = ranking_distance(before, average_ranks(win_rates(scores, field, rule=rule)[:3]))
        taus.append(distance.tau)
        mrcs.append(distance.mrc)
    return taus, mrcs
