"""Cardinal sensitivity: proven against every order of small tables, and by its witness on all."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import weak_orders
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.elections.cardinal.boxes.box_search import BoxSearch
from analyses.numerics.elections.cardinal.cardinal_sensitivity import cardinal_sensitivity
from analyses.numerics.elections.cardinal.reversals import possible_overtakes, reversal_inequalities
from analyses.numerics.elections.cardinal.standard_deviations import exact_standard_deviations
from analyses.numerics.elections.cardinal.weight_programs import solve_weight_program
from analyses.numerics.elections.cardinal.weighted_sums import weighted_sums
from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import decimal_fraction, exact_scores

FOREVER = 30.0
EPSILONS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(1))


def small_table(rng: np.random.Generator) -> np.ndarray:
    """At most five tasks and five models, small whole numbers: ties everywhere, often copies of tasks or models."""
    m, n, highest = rng.integers(3, 6), rng.integers(1, 6), rng.integers(1, 8)
    T = rng.integers(0, highest + 1, (n, m)).astype(float)
    if rng.random() < 0.3 and n > 1:
        T[-1] = T[0] * rng.integers(1, 3) + 1
    if rng.random() < 0.3:
        T[:, -1] = T[:, 0]
    return T


def sensitivity(T: np.ndarray, *, epsilon: Fraction = EPSILONS[0], standardised: bool = True, limit: float = FOREVER):
    return cardinal_sensitivity(exact_scores(T), epsilon=epsilon, standardised=standardised, time_limit=limit)


def check_against_every_order(rng: np.random.Generator) -> None:
    T = small_table(rng)
    epsilon, standardised = EPSILONS[rng.integers(len(EPSILONS))], bool(rng.random() < 0.5)
    result = sensitivity(T, epsilon=epsilon, standardised=standardised)
    tau, mrc = weak_orders.largest_distances(T, result.before, result.scale, epsilon)
    assert (result.tau.value, result.mrc.value) == pytest.approx((tau, mrc), abs=1e-12)
    assert result.is_exact


class TestAgainstReference:
    @pytest.mark.parametrize("seed", range(3))
    def test_both_measures_equal_the_largest_over_every_order_a_linear_program_reaches(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(3):
            check_against_every_order(rng)

    @pytest.mark.soak
    @pytest.mark.parametrize("seed", range(100, 120))
    def test_two_hundred_tables_equal_every_order(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(10):
            check_against_every_order(rng)

    @pytest.mark.parametrize("seed", range(6))
    def test_halving_boxes_alone_finds_what_exact_arithmetic_finds(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sums = weighted_sums(exact_scores(rng.random((4, 5)).round(3)), standardised=True)
        rows = reversal_inequalities(sums, possible_overtakes(sums, EPSILONS[0]))
        searches = [
            BoxSearch(rows, epsilon=EPSILONS[0], min_weight=0.01, incumbent=0, max_exact_rows=max_exact_rows)
            for max_exact_rows in (0, 12)
        ]
        for search in searches:
            search.advance(deadline=np.inf)
        assert searches[0].incumbent == searches[0].upper_bound == searches[1].incumbent == searches[1].upper_bound

    def test_a_resumed_search_ends_as_an_uninterrupted_one(self) -> None:
        sums = weighted_sums(exact_scores(np.random.default_rng(9).random((5, 12)).round(3)), standardised=True)
        rows = reversal_inequalities(sums, possible_overtakes(sums, EPSILONS[0]))
        at_once, in_steps = (BoxSearch(rows, epsilon=EPSILONS[0], min_weight=0.01, incumbent=0) for _ in range(2))
        at_once.advance(deadline=np.inf)
        bounds = []
        for enough in range(in_steps.upper_bound, -1, -3):
            in_steps.advance(deadline=np.inf, target_bound=enough)
            bounds.append(in_steps.upper_bound)
        assert bounds == sorted(bounds, reverse=True)
        assert in_steps.incumbent == in_steps.upper_bound == at_once.incumbent == at_once.upper_bound

    @pytest.mark.parametrize("seed", range(3))
    def test_an_integer_program_finds_weights_as_good_as_the_proven_ones(self, seed: int) -> None:
        sums = weighted_sums(exact_scores(np.random.default_rng(seed).random((5, 9)).round(3)), standardised=True)
        rows = reversal_inequalities(sums, possible_overtakes(sums, EPSILONS[0]))
        proven, offered = (BoxSearch(rows, epsilon=EPSILONS[0], min_weight=0.01, incumbent=0) for _ in range(2))
        proven.advance(deadline=np.inf)
        weights = solve_weight_program(rows, min_weight=0.01, time_limit=20.0)
        offered.propose(weights)
        assert offered.incumbent == proven.incumbent
        assert np.array_equal(offered.weights, weights)
        assert weights.min() >= 0.01
        assert weights.max() <= 1

    @pytest.mark.soak
    def test_a_thin_region_of_weights_is_found_and_proven(self, shared: Path) -> None:
        T = np.loadtxt(
            shared / "data/leaderboards/cardinal_vtab.csv", delimiter=",", skiprows=1, usecols=range(1, 20), ndmin=2
        ).T
        result = sensitivity(T, epsilon=Fraction(1, 10), standardised=False, limit=60.0)
        assert result.is_exact
        assert result.tau.distance.n_reversed == 9


class TestLaws:
    @settings(max_examples=40)
    @given(st.integers(0, 10**6), st.booleans())
    def test_the_witness_keeps_the_bounds_and_achieves_the_value(self, seed: int, standardised: bool) -> None:
        rng = np.random.default_rng(seed)
        T = small_table(rng)
        result = sensitivity(T, standardised=standardised, limit=0.0)
        exact = exact_scores(T)
        scale = (
            exact_standard_deviations(exact.numerators.tolist(), exact.denominator)
            if standardised
            else [Fraction(1)] * len(T)
        )
        assert result.scale.tolist() == [float(item) for item in scale]
        for change in (result.tau, result.mrc):
            weighed = [task for task, weight in enumerate(change.witness) if weight == weight]
            shares = {task: decimal_fraction(change.witness[task]) / scale[task] for task in weighed}
            assert all(Fraction(1, 100) <= decimal_fraction(change.witness[task]) <= 1 for task in weighed)
            columns = exact.numerators.T.tolist()
            totals = [sum(share * column[task] for task, share in shares.items()) for column in columns]
            assert np.array_equal(average_ranks([Fraction(total) for total in totals]), change.ranks_after)
            assert change.value <= change.upper_bound
        assert result.tau.value == result.tau.distance.tau
        assert result.mrc.value == result.mrc.distance.mrc

    @settings(max_examples=25)
    @given(st.integers(0, 10**6))
    def test_neither_order_of_tasks_nor_of_models_nor_unit_nor_a_copied_task_matters(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        T = rng.random((3, 5)).round(2)
        plain = sensitivity(T, standardised=False)
        variants = (
            T[rng.permutation(3)][:, rng.permutation(5)],
            np.rint(T * 100) + 7,
        )
        for variant in variants:
            result = sensitivity(variant, standardised=False)
            assert (result.tau.value, result.mrc.value) == (plain.tau.value, plain.mrc.value)
        doubled = sensitivity(np.vstack([T, T]), standardised=False)
        assert (doubled.tau.value, doubled.mrc.value) == (plain.tau.value, plain.mrc.value)

    @settings(max_examples=25)
    @given(st.integers(0, 10**6))
    def test_a_smaller_least_weight_allows_no_less(self, seed: int) -> None:
        T = np.random.default_rng(seed).integers(0, 6, (3, 4)).astype(float)
        values = [sensitivity(T, epsilon=epsilon, standardised=False) for epsilon in EPSILONS]
        assert [item.tau.value for item in values] == sorted((item.tau.value for item in values), reverse=True)
        assert [item.mrc.value for item in values] == sorted((item.mrc.value for item in values), reverse=True)
        assert values[-1].tau.value == values[-1].mrc.value == 0

    def test_the_same_scores_give_the_same_bytes(self) -> None:
        T = np.random.default_rng(3).random((25, 12))
        first, second = (sensitivity(T, limit=0.0) for _ in range(2))
        assert first.tau.witness.tobytes() == second.tau.witness.tobytes()
        assert first.mrc.witness.tobytes() == second.mrc.witness.tobytes()

    def test_time_only_narrows_the_interval(self) -> None:
        T = np.random.default_rng(4).random((8, 20)).round(3)
        quick, proven = sensitivity(T, limit=0.0), sensitivity(T)
        assert quick.tau.value <= proven.tau.value <= proven.tau.upper_bound <= quick.tau.upper_bound
        assert quick.mrc.value <= proven.mrc.value <= proven.mrc.upper_bound <= quick.mrc.upper_bound

    def test_explicit_start_weights_are_not_lost(self) -> None:
        T = np.random.default_rng(5).random((30, 40))
        alone, proven = sensitivity(T, limit=0.0), sensitivity(T, limit=0.5)
        again = cardinal_sensitivity(
            exact_scores(T), epsilon=EPSILONS[0], standardised=True, time_limit=0.0, start=[proven.tau.witness]
        )
        assert alone.tau.value < proven.tau.value <= again.tau.value


class TestDegenerate:
    @pytest.mark.parametrize(
        "T",
        [
            np.array([[1.0, 2.0, 3.0]]),
            np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [5.0, 5.0, 5.0]]),
            np.ones((4, 3)),
        ],
        ids=["one task", "tasks that are multiples of one another", "all tied"],
    )
    def test_nothing_moves_where_there_is_one_direction_at_most(self, T: np.ndarray) -> None:
        result = sensitivity(T)
        assert result.is_exact
        assert result.tau.value == result.mrc.value == 0
        assert np.array_equal(result.tau.ranks_after, result.before)

    def test_a_task_that_ties_all_models_has_no_weight(self) -> None:
        result = sensitivity(np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [4.0, 4.0, 4.0]]))
        assert np.isnan(result.tau.witness).tolist() == [False, False, True]

    @pytest.mark.parametrize("factor", [1, 3, 7])
    def test_standardised_scores_that_tie_are_no_reversal_for_having_been_rounded(self, factor: int) -> None:
        # Tasks of the same spread, in units of their own: at equal weights the second and the third model tie.
        T = np.array([[0.0, 5.0, 2.0, 1.0], [factor * 5.0, 0.0, factor * 1.0, factor * 2.0]]) + 0.1
        result = sensitivity(np.vstack([T[:, [0, 1, 2, 3]], T[:, [0, 1, 3, 2]]]), epsilon=Fraction(1))
        assert result.is_exact
        assert result.tau.ranks_after[2] == result.tau.ranks_after[3]

    def test_scores_of_many_digits_are_compared_in_full(self) -> None:
        T = np.array([[0.1234567890123456, 0.1234567890123457, 0.5], [0.3, 0.2, 0.1]])
        result = sensitivity(T, standardised=False)
        assert result.is_exact
        assert result.before.tolist() == [2.0, 3.0, 1.0]

    @pytest.mark.parametrize("size", [1e308, 1e-300, 1e-320])
    @pytest.mark.parametrize("standardised", [True, False])
    def test_the_largest_and_smallest_numbers_are_scores_as_well(self, size: float, standardised: bool) -> None:
        T = np.array(
            [[1.0, 1.0, 1.0, 0.5], [0.3 * size, 0.2 * size, 0.1 * size, 0.0], [0.0, 0.05 * size, 0.12 * size, 0.0]]
        )
        result = sensitivity(T, standardised=standardised)
        assert result.is_exact
        assert result.tau.distance.n_reversed == 3
