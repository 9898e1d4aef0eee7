"""Integer programs: solutions and bounds as HiGHS has them, without its words."""

from __future__ import annotations

import os
from itertools import product

import numpy as np
import pytest

from analyses.numerics.elections.integer_programs import _silence as silence
from analyses.numerics.elections.integer_programs import maximize
from analyses.numerics.elections.ordinal.added_models import LinearAdditions
from analyses.numerics.elections.ordinal.local_search import PairGoal
from analyses.numerics.elections.ordinal.reversal_programs import solve_met_pairs

FOREVER = float("inf")


class TestAgainstReference:
    def test_it_finds_the_best_of_all_points(self) -> None:
        for seed in range(40):
            rng = np.random.default_rng(seed)
            objective, matrix, upper = rng.integers(-3, 9, 5), rng.integers(-4, 5, (4, 5)), rng.integers(-4, 6, 4)
            points = np.array(list(product(range(3), repeat=5)))
            fits = (points @ matrix.T <= upper).all(axis=1)
            result = maximize(objective, matrix, -np.inf, upper, bounds=(0, 2), time_limit=30)
            assert result.is_infeasible == (not fits.any())
            if fits.any():
                assert result.x is not None
                assert (matrix @ result.x <= upper).all()
                assert result.value == objective @ result.x == (points[fits] @ objective).max()
                assert result.is_optimal
                assert result.upper_bound == pytest.approx(result.value)
            else:
                assert (result.x, result.upper_bound) == (None, -np.inf)

    def test_fractions_are_left_where_they_are_allowed(self) -> None:
        result = maximize([1, 1.5], np.array([[1, 1]]), -np.inf, [1.2], integrality=0, time_limit=9)
        assert result.x == pytest.approx([0.2, 1.0])
        assert result.value == pytest.approx(1.7) == result.upper_bound

    def test_most_pairs_are_those_of_all_additions(self) -> None:
        n_better = 0
        for seed in range(120):
            rng = np.random.default_rng(seed)
            k, n_others, spread = (
                int(rng.integers(3, 6)),
                int(rng.integers(3, 8)),
                int(rng.choice([2, 9, 10**6, 10**12])),
            )
            # Large numbers close to each other: floats are off by more than the differences that decide.
            common = int(rng.choice([0, 10**14]))
            base, effects = rng.integers(0, spread * 2, k), rng.integers(0, spread + 1, (k, n_others)) + common
            behind, ahead = np.nonzero(~np.eye(k, dtype=bool))
            chosen = rng.random(len(behind)) < 0.7
            chosen[0] = True
            goal = PairGoal(behind=behind[chosen], ahead=ahead[chosen], allows_tie=rng.random(int(chosen.sum())) < 0.3)

            def met(
                added: np.ndarray, goal: PairGoal = goal, base: np.ndarray = base, effects: np.ndarray = effects
            ) -> int:
                totals = base + effects[:, added].sum(axis=1)
                lacks = totals[goal.behind] - totals[goal.ahead]
                return int(((lacks < 0) | (goal.allows_tie & (lacks == 0))).sum())

            best = max(met(np.array(added, dtype=bool)) for added in product([False, True], repeat=n_others))
            additions = LinearAdditions(base=base, effects=effects)
            start = met(np.zeros(n_others, dtype=bool))
            result, upper_bound = solve_met_pairs(additions, goal, incumbent=start, deadline=FOREVER)
            assert upper_bound == best, seed
            assert result is None if best == start else result is not None and met(result) == best, seed
            n_better += best > start
        assert n_better > 60


class TestSilence:
    @pytest.mark.parametrize("seed", [14, 28, 32])
    def test_what_the_solver_prints_reaches_nobody(self, seed: int, capfd: pytest.CaptureFixture[str]) -> None:
        # HiGHS 1.12 prints to the descriptor while it solves these, whatever its options say.
        rng = np.random.default_rng(seed)
        matrix = rng.integers(-9, 10, (40, 15)).astype(float)
        objective, upper = rng.integers(-5, 9, 15), rng.integers(0, 30, 40)
        bounds, whole = (0, float(rng.integers(1, 9))), rng.random(15) < 0.9
        print("before")
        result = maximize(objective, matrix, -np.inf, upper, bounds=bounds, integrality=whole, time_limit=30)
        print("after")
        assert result.is_optimal
        assert capfd.readouterr() == ("before\nafter\n", "")

    def test_the_descriptor_comes_back(self, capfd: pytest.CaptureFixture[str]) -> None:
        with silence():
            os.write(1, b"noise")
        os.write(1, b"heard")
        assert capfd.readouterr().out == "heard"


class TestTimeLimit:
    def test_without_time_nothing_is_known(self) -> None:
        result = maximize([1, 1], np.array([[1, 1]]), -np.inf, [1], time_limit=0)
        assert (result.x, result.upper_bound, result.is_optimal, result.is_infeasible) == (None, np.inf, False, False)

    def test_a_bound_remains_when_time_runs_out(self) -> None:
        # A market split: hard for its size.
        rng = np.random.default_rng(0)
        matrix = rng.integers(0, 100, (4, 40)).astype(float) / 100
        half = np.floor(matrix.sum(axis=1) * 50) / 100
        slack = np.hstack([matrix, np.eye(4), -np.eye(4)])
        objective = np.concatenate([np.zeros(40), -np.ones(8)])
        bounds = (np.zeros(48), np.concatenate([np.ones(40), np.full(8, 99.0)]))
        whole = np.concatenate([np.ones(40), np.zeros(8)])
        result = maximize(objective, slack, half, half, bounds=bounds, integrality=whole, time_limit=0.3)
        assert not result.is_optimal
        assert not result.is_infeasible
        assert result.value <= result.upper_bound <= 1e-6
