"""Cardinal sensitivity along the least weight, and the limits from which on pairs keep their order."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from analyses.numerics.elections.cardinal.pair_limits import pair_limits
from analyses.numerics.elections.cardinal.sensitivity_path import SensitivityPath, interpolate_weights, sensitivity_path
from analyses.numerics.elections.cardinal.weighted_sums import weighted_sums
from analyses.numerics.elections.diversity.ranking_distance import average_ranks, ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores, exact_scores
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange

EPSILONS = [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(4, 5), Fraction(1)]
SEEDS = st.integers(0, 10**6)


def table(seed: int) -> NDArray[np.float64]:
    """With ties, duplicate models, duplicate and constant tasks now and then."""
    rng = np.random.default_rng(seed)
    T = rng.integers(0, rng.integers(2, 9), (rng.integers(1, 6), rng.integers(2, 7))).astype(float)
    if rng.random() < 0.3:
        T[:, -1] = T[:, 0]
    if rng.random() < 0.3:
        T[-1] = T[0] * 2 + 1
    return T / 8


def ranks_under(scores: ExactScores, change: LargestChange, scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """By plain rational arithmetic; sums of scores divided by roots, which are rounded, tie to twelve decimals."""
    shares = [
        Fraction(0) if np.isnan(w) else Fraction(repr(w)) / Fraction(repr(s))
        for w, s in zip(change.witness.tolist(), scale.tolist(), strict=True)
    ]
    sums = [sum(map(Fraction.__mul__, shares, map(Fraction, row))) for row in scores.T.T.tolist()]
    return average_ranks(np.array(sums if (scale == 1).all() else [round(total, 12) for total in sums]))


def most_reversed(T: NDArray[np.float64], epsilon: Fraction) -> int:
    """The largest set of pairs for which a linear program finds weights that reverse them all."""
    means, e = T.sum(axis=0), float(epsilon)
    pairs = [T[:, i] - T[:, j] for i, j in itertools.permutations(range(T.shape[1]), 2) if means[i] > means[j]]
    for size in range(len(pairs), 0, -1):
        for chosen in itertools.combinations(pairs, size):
            rows = np.column_stack([np.array(chosen), np.ones(size)])
            result = linprog(
                np.append(np.zeros(len(T)), -1), A_ub=rows, b_ub=np.zeros(size), bounds=[(e, 1)] * len(T) + [(None, 1)]
            )
            if result.status == 0 and -result.fun > 1e-7:
                return size
    return 0


def found_along(T: NDArray[np.float64], *, standardised: bool = False, time_limit: float = 0.0) -> SensitivityPath:
    return sensitivity_path(exact_scores(T), epsilons=EPSILONS, standardised=standardised, time_limit=time_limit)


class TestAgainstReference:
    @pytest.mark.parametrize("seed", range(4))
    def test_tau_is_that_of_linear_programs_over_all_sets_of_pairs(self, seed: int) -> None:
        T = np.random.default_rng(seed).integers(0, 9, (4, 4)).astype(float)
        for sensitivity in found_along(T, time_limit=20.0).sensitivities:
            assert sensitivity.tau.is_exact
            assert sensitivity.tau.distance.n_reversed == most_reversed(T, sensitivity.epsilon)

    def test_no_weights_of_a_dense_grid_do_more(self) -> None:
        scores = exact_scores(np.random.default_rng(8).integers(0, 9, (3, 6)).astype(float))
        steps = np.linspace(0, 1, 21)
        grid = [np.array(u) for u in itertools.product(steps, repeat=3) if max(u) == 1]
        for standardised in (False, True):
            sums = weighted_sums(scores, standardised=standardised)
            path = sensitivity_path(scores, epsilons=EPSILONS, standardised=standardised, time_limit=20.0).sensitivities
            for sensitivity in path:
                assert sensitivity.is_exact
                reached = [
                    ranking_distance(sums.before, sums.ranks_after(interpolate_weights(u, sensitivity.epsilon)))
                    for u in grid
                ]
                assert max(distance.tau for distance in reached) <= sensitivity.tau.value
                assert max(distance.mrc for distance in reached) <= sensitivity.mrc.value

    @given(SEEDS)
    def test_limits_are_plain_quotients(self, seed: int) -> None:
        T = table(seed)
        limits = pair_limits(weighted_sums(exact_scores(T), standardised=False))
        plain = {}
        for i, j in itertools.permutations(range(T.shape[1]), 2):
            d = [Fraction(a) - Fraction(b) for a, b in zip(T[:, i].tolist(), T[:, j].tolist(), strict=True)]
            if sum(d) > 0:
                plain[i, j] = -sum(x for x in d if x < 0) / Fraction(sum(x for x in d if x > 0))
        pairs = zip(limits.ahead.tolist(), limits.behind.tolist(), strict=True)
        assert {pair: limits.exact_limit(place) for place, pair in enumerate(pairs)} == plain
        assert limits.max_limit() == max(plain.values(), default=0)
        for epsilon in {*EPSILONS, *plain.values()} - {0}:
            assert limits.count_reversible(epsilon) == sum(limit > epsilon for limit in plain.values())

    def test_one_direction_reverses_a_pair_below_one_threshold_only(self) -> None:
        T = np.random.default_rng(2).integers(0, 9, (4, 6)).astype(float)
        sums = weighted_sums(exact_scores(T), standardised=False)
        for u in (np.array([1, 0, 0.5, 0.25]), np.array([0, 1, 1, 0])):
            for epsilon in (Fraction(1, 64), Fraction(1, 8), Fraction(1, 2)):
                after = sums.ranks_after(interpolate_weights(u, epsilon))
                for i, j in itertools.permutations(range(6), 2):
                    d = T[:, i] - T[:, j]
                    if d.sum() > 0:
                        assert (after[i] > after[j]) == (-(d @ u) / d.sum() > epsilon / (1 - epsilon))


class TestLaws:
    @given(SEEDS, st.booleans())
    @example(21159, True)  # two models whose standardised scores differ by the root of 2, up and down: a tie
    @settings(max_examples=25)
    def test_curves_and_bounds_never_grow_and_witnesses_achieve_their_values(
        self, seed: int, standardised: bool
    ) -> None:
        scores = exact_scores(table(seed))
        path = found_along(scores.T, standardised=standardised).sensitivities
        assert [sensitivity.epsilon for sensitivity in path] == EPSILONS
        for sensitivity in path:
            for change, name in ((sensitivity.tau, "tau"), (sensitivity.mrc, "mrc")):
                weights = change.witness[~np.isnan(change.witness)]
                assert all(sensitivity.epsilon <= Fraction(repr(weight)) <= 1 for weight in weights.tolist())
                assert change.ranks_after.tolist() == ranks_under(scores, change, sensitivity.scale).tolist()
                assert (
                    getattr(ranking_distance(sensitivity.before, change.ranks_after), name)
                    == change.value
                    <= change.upper_bound
                    <= 1
                )
        for smaller, larger in itertools.pairwise(path):
            for name in ("tau", "mrc"):
                smaller_change, larger_change = getattr(smaller, name), getattr(larger, name)
                assert smaller_change.value >= larger_change.value
                assert smaller_change.upper_bound >= larger_change.upper_bound
        if not standardised:
            assert (path[-1].tau.upper_bound, path[-1].mrc.upper_bound) == (0, 0)

    @given(SEEDS)
    @settings(max_examples=25)
    def test_a_pair_below_its_limit_is_reversed_by_its_own_weights(self, seed: int) -> None:
        sums = weighted_sums(exact_scores(table(seed)), standardised=False)
        limits = pair_limits(sums)
        top = limits.max_limit()
        directions = limits.reversing_directions(1)
        assert len(directions) == (top > 0)
        for u in directions:
            pair = int(np.argmax(limits.limit))
            i, j = limits.ahead[pair], limits.behind[pair]
            below, above = (
                sums.ranks_after(interpolate_weights(u, epsilon)) for epsilon in (top * Fraction(999, 1000), top)
            )
            assert below[i] > below[j]
            assert above[i] <= above[j]

    def test_where_a_pair_can_be_reversed_a_reversal_is_found(self) -> None:
        T = np.random.default_rng(3).random((12, 20)).round(3)
        largest = pair_limits(weighted_sums(exact_scores(T), standardised=False)).max_limit()
        epsilons = [largest * Fraction(999_999, 1_000_000), largest]
        just_below, at = sensitivity_path(
            exact_scores(T), epsilons=epsilons, standardised=False, time_limit=0.0
        ).sensitivities
        assert just_below.tau.distance.n_reversed == 1
        assert just_below.tau.is_exact
        assert (at.tau.value, at.tau.upper_bound) == (0, 0)

    def test_equal_weights_of_standardised_tasks_are_a_change_of_their_own(self) -> None:
        T = np.array([[0.0, 10.0, 20.0], [3.0, 2.0, 1.0], [3.0, 2.5, 1.0]])
        last = found_along(T, standardised=True).sensitivities[-1]
        standardised = (T - T.mean(axis=1, keepdims=True)) / T.std(axis=1, ddof=1, keepdims=True)
        assert last.tau.ranks_after.tolist() == average_ranks(standardised.sum(axis=0)).tolist() == [1, 2, 3]
        assert (last.tau.value, last.mrc.value, last.is_exact) == (1, 1, True)

    def test_a_time_limit_of_nothing_gives_the_same_bytes_twice(self) -> None:
        T = np.random.default_rng(4).random((6, 12)).round(3)
        first, second = (found_along(T).sensitivities for _ in range(2))
        assert [_bytes(sensitivity) for sensitivity in first] == [_bytes(sensitivity) for sensitivity in second]


class TestDegenerate:
    @pytest.mark.parametrize("T", [np.ones((3, 4)), np.array([[1.0, 2.0, 2.0]]), np.array([[1.0, 2.0], [0.0, 5.0]])])
    def test_what_weights_cannot_move_is_zero_and_proven(self, T: NDArray[np.float64]) -> None:
        for sensitivity in found_along(T).sensitivities:
            assert (sensitivity.tau.upper_bound, sensitivity.mrc.upper_bound) == (0, 0)

    def test_a_pair_tied_before_moves_without_a_reversal(self) -> None:
        path = found_along(np.array([[1.0, 0.0, -3.0], [0.0, 1.0, -3.0]]))
        assert path.limits.max_limit() == 0
        for sensitivity in path.sensitivities[:-1]:
            assert (sensitivity.tau.upper_bound, sensitivity.mrc.value) == (0, 0.25)


def _bytes(sensitivity: CardinalSensitivity) -> tuple[bytes, bytes]:
    return sensitivity.tau.witness.tobytes(), sensitivity.mrc.witness.tobytes()
