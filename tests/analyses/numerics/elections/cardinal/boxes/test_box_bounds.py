"""Bounds of boxes: proven against exact arithmetic, every subset of weights and random points of small boxes."""

from __future__ import annotations

import itertools
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.elections.cardinal.boxes import clique_search
from analyses.numerics.elections.cardinal.boxes.box_bounds import BoxBound, bound_box
from analyses.numerics.elections.cardinal.boxes.box_search import BoxSearch, WeightInequalities
from analyses.numerics.elections.cardinal.boxes.clique_search import CliqueSearch
from analyses.numerics.elections.cardinal.boxes.conflict_cliques import cover_with_cliques
from analyses.numerics.elections.cardinal.boxes.exact_feasibility import find_feasible_weights, maximize_in_box
from analyses.numerics.elections.cardinal.boxes.row_hulls import majorize
from analyses.numerics.elections.cardinal.boxes.rows_in_box import RowsInBox, rows_in_box
from analyses.numerics.elections.cardinal.reversals import possible_overtakes, reversal_inequalities
from analyses.numerics.elections.cardinal.weighted_sums import weighted_sums
from analyses.numerics.elections.exact_scores import exact_scores

EPSILON = Fraction(1, 100)
SEEDS = st.integers(0, 10**6)


def random_inequalities(rng: np.random.Generator, *, n_rows: int) -> WeightInequalities:
    """Rows of small whole numbers, two to five weights: exact ties and opposite rows are common."""
    steps = rng.integers(-4, 5, (int(rng.integers(2, 6)), n_rows))
    steps[0] = np.where(np.abs(steps).sum(axis=0) == 0, 1, steps[0])
    return WeightInequalities(
        D=steps / np.abs(steps).sum(axis=0),
        worth=rng.integers(1, 4, n_rows),
        worth_tied=np.zeros(n_rows, np.int64),
        steps=steps,
        units=(Fraction(1),) * len(steps),
    )


def random_box(rng: np.random.Generator, n_weights: int) -> np.ndarray:
    """Ends in 64ths; a weight may be fixed."""
    return np.sort(rng.integers(1, 65, (2, n_weights)), axis=0) / 64


def rows_of(inequalities: WeightInequalities, box: np.ndarray) -> RowsInBox:
    return rows_in_box(inequalities.D.T, inequalities.slack, inequalities.worth, box)


def exact_ends(box: np.ndarray) -> tuple[list[Fraction], list[Fraction]]:
    low, high = ([Fraction(end) for end in ends] for ends in box.tolist())
    return low, high


def most_in_box(inequalities: WeightInequalities, box: np.ndarray) -> int:
    """By exact arithmetic."""
    rows = [inequalities.exact_row(row) for row in range(inequalities.D.shape[1])]
    return maximize_in_box(
        rows, inequalities.worth.tolist(), inequalities.worth_tied.tolist(), *exact_ends(box), incumbent=0
    )[0]


def random_points(rng: np.random.Generator, n_free: int) -> np.ndarray:
    """``(100, n_free)`` points in [−1, 1], many at ends."""
    points = rng.uniform(-1, 1, (100, n_free))
    return np.where(rng.random(points.shape) < 0.5, np.sign(points), points)


class TestAgainstReference:
    @settings(max_examples=30)
    @given(SEEDS)
    def test_no_weights_in_the_box_make_two_rows_of_a_clique_hold(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        inequalities = random_inequalities(rng, n_rows=10)
        box = random_box(rng, len(inequalities.D))
        rows = rows_of(inequalities, box)
        clique_of = cover_with_cliques(rows)
        for first, second in itertools.combinations(range(len(clique_of)), 2):
            if clique_of[first] == clique_of[second]:
                pair = [inequalities.exact_row(int(rows.index[row])) for row in (first, second)]
                assert find_feasible_weights([], pair, *exact_ends(box)) is None

    @settings(max_examples=60)
    @given(SEEDS)
    def test_opposite_rows_that_cannot_tie_share_a_clique(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        d = rng.uniform(-1, 1, 4)
        D = np.column_stack([d, 0.02 - d])
        D /= np.abs(D).sum(axis=0)
        rows = rows_in_box(D.T, np.full(2, 1e-13), np.ones(2, np.int64), np.array([[0.01] * 4, [1.0] * 4]))
        assert np.unique(cover_with_cliques(rows)).size == min(1, len(rows.worth))

    @settings(max_examples=60)
    @given(SEEDS)
    def test_the_bound_of_a_row_is_the_least_over_every_set_of_weights(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        inequalities = random_inequalities(rng, n_rows=1)
        rows = rows_of(inequalities, random_box(rng, len(inequalities.D)))
        for slopes, centre in zip(rows.slopes, rows.centre, strict=True):
            x = random_points(rng, len(slopes))[0]
            reached = np.abs(slopes) - slopes * x
            bounds = [1.0]
            for chosen in itertools.product([False, True], repeat=len(slopes)):
                size = centre - 1 + 2 * np.abs(slopes)[list(chosen)].sum()
                if size > 1e-5:
                    bounds.append(reached[list(chosen)].sum() / size)
            majorant = majorize(rows, np.zeros(1, np.int64), rows.worth.astype(float), x)
            value = (majorant.constant + majorant.slopes @ x - rows.certain_worth) / rows.worth[0]
            assert value == pytest.approx(min(bounds), abs=1e-3)

    @settings(max_examples=20)
    @given(SEEDS)
    def test_a_box_and_its_halves_are_bounded_by_no_less_than_exact_arithmetic_finds(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        inequalities = random_inequalities(rng, n_rows=8)
        box = random_box(rng, len(inequalities.D))
        parent: BoxBound | None = None
        max_worth = int(inequalities.worth.sum())
        for _ in range(5):
            rows = rows_of(inequalities, box)
            if not len(rows.worth):
                break
            bound = bound_box(rows, box, parent, max_worth=max_worth, incumbent=0)
            assert most_in_box(inequalities, box) <= bound.worth <= max_worth
            assert ((box[0] <= bound.point) & (bound.point <= box[1])).all()
            j, parent, max_worth = bound.branching_weight, bound, bound.worth
            box = box.copy()
            box[int(rng.integers(2)), j] = box[:, j].mean()

    @pytest.mark.parametrize("seed", range(4))
    def test_the_search_ends_where_halving_alone_ends(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clique_search, "MIN_ROWS", 1)
        sums = weighted_sums(exact_scores(np.random.default_rng(seed).random((4, 9)).round(2)), standardised=True)
        rows = reversal_inequalities(sums, possible_overtakes(sums, EPSILON))
        halving, bounding = (
            search(rows, epsilon=EPSILON, min_weight=0.01, incumbent=0) for search in (BoxSearch, CliqueSearch)
        )
        halving.advance(deadline=np.inf)
        bounding.advance(deadline=np.inf)
        assert bounding.incumbent == bounding.upper_bound == halving.incumbent
        assert bounding.weights is not None
        assert (bounding.weights @ rows.D < 0) @ rows.worth == bounding.incumbent


class TestLaws:
    @settings(max_examples=60)
    @given(SEEDS)
    def test_a_majorant_is_above_what_holds_at_every_point_of_the_box(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        inequalities = random_inequalities(rng, n_rows=30)
        rows = rows_of(inequalities, random_box(rng, len(inequalities.D)))
        if not len(rows.worth):
            return
        clique_of = cover_with_cliques(rows)
        most = np.zeros(clique_of.max() + 1)
        np.maximum.at(most, clique_of, rows.worth)
        points = random_points(rng, len(rows.free))
        holds = rows.centre[:, None] + rows.slopes @ points.T < -1e-9
        majorant = majorize(rows, clique_of, most, points[0])
        assert (rows.certain_worth + rows.worth @ holds <= majorant.constant + points @ majorant.slopes + 1e-9).all()

    def test_a_search_that_follows_keeps_weights_and_bound(self) -> None:
        sums = weighted_sums(exact_scores(np.random.default_rng(5).random((11, 18))), standardised=True)
        rows = reversal_inequalities(sums, possible_overtakes(sums, EPSILON))
        assert CliqueSearch.suits(rows)
        first = BoxSearch(rows, epsilon=EPSILON, min_weight=0.01, incumbent=0)
        first.advance(deadline=np.inf, target_bound=first.upper_bound - 5)
        follower = CliqueSearch.follow(first)
        assert first.incumbent <= follower.upper_bound <= first.upper_bound
        assert follower.weights is first.weights
        assert follower.weights is not None
        target = follower.upper_bound - 5
        follower.advance(deadline=np.inf, target_bound=target)
        assert first.incumbent <= follower.incumbent <= follower.upper_bound <= target

    def test_the_number_of_threads_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clique_search, "MIN_ROWS", 1)
        sums = weighted_sums(exact_scores(np.random.default_rng(7).random((6, 12))), standardised=True)
        rows = reversal_inequalities(sums, possible_overtakes(sums, EPSILON))
        bounds = []
        for n_processors in (1, 4):
            monkeypatch.setattr(os, "cpu_count", lambda n=n_processors: n)
            search = CliqueSearch(rows, epsilon=EPSILON, min_weight=0.01, incumbent=0)
            search.advance(deadline=np.inf, target_bound=search.upper_bound * 2 // 3)
            assert search.weights is not None
            bounds.append((search.upper_bound, search.incumbent, search.weights.tobytes()))
        assert bounds[0] == bounds[1]
