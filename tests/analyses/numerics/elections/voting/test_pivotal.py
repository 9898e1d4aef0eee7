from __future__ import annotations

import itertools

import numpy as np
import pytest

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.voting import bradley_terry
from analyses.numerics.elections.voting.pivotal import find_leaders, find_pivotal_models, find_pivotal_tasks
from analyses.numerics.elections.voting.rules import COMPLETE_TASK_RULES, VOTING_RULES, Election, count_points
from tracker.statistics.jit import working_time

NAN = float("nan")
SECONDS = 60.0


def election(T) -> Election:
    return Election.from_scores(exact_scores(np.asarray(T, dtype=float)))


def soon() -> float:
    return working_time() + SECONDS


def first(rule, field) -> set[int] | None:
    """Who leads, by the definition of each rule; None where nobody can be said to."""
    m = field.n_models
    if rule == "kemeny":
        wins = field.duels.wins
        costs = {
            order: sum(int(wins[b, a]) for i, a in enumerate(order) for b in order[i + 1 :])
            for order in itertools.permutations(range(m))
        }
        return {order[0] for order, cost in costs.items() if cost == min(costs.values())}
    if rule == "bradley-terry":
        if field.is_complete:
            rule = "borda"
        elif m == 1 or not bradley_terry.has_finite_strengths(field.duels):
            return None
        else:
            levels = bradley_terry.tie_levels(bradley_terry.fit_strengths(field.duels))
            return set(np.flatnonzero(levels == levels.max()).tolist())
    expected_points = count_points(rule, field).points.tolist()
    return {j for j in range(m) if expected_points[j] == max(expected_points)}


def plain_tasks(rule, field, leading) -> int | None:
    for size in range(1, field.n_tasks):
        for kept in itertools.combinations(range(field.n_tasks), field.n_tasks - size):
            result = first(rule, field.select_tasks(np.array(kept)))
            if result is not None and not result & leading:
                return size
    return None


def plain_models(rule, field, leading) -> int | None:
    remaining = [j for j in range(field.n_models) if j not in leading]
    for size in range(1, len(remaining) + 1):
        for gone in itertools.combinations(remaining, size):
            kept = [j for j in range(field.n_models) if j not in gone]
            result = first(rule, field.select_models(np.array(kept)))
            if result is not None and not {kept[j] for j in result} & leading:
                return size
    return None


def table(rng, rule) -> np.ndarray:
    n, m = int(rng.integers(1, 6)), int(rng.integers(3, 6 if rule == "kemeny" else 7))
    T = rng.integers(0, int(rng.choice([3, 6, 30])), (n, m)).astype(float)
    if rng.random() < 0.3:
        T = T[:, rng.integers(0, m, m)]
    if rule not in COMPLETE_TASK_RULES and rng.random() < 0.4:
        T[rng.random(T.shape) < 0.2] = NAN
        T[0] = np.where(np.isnan(T[0]), 1.0, T[0])
    return T[~np.isnan(T).all(axis=1)]


class TestAgainstReference:
    @pytest.mark.parametrize("rule", VOTING_RULES)
    def test_the_smallest_sets_are_those_of_all_sets(self, rule):
        rng = np.random.default_rng(VOTING_RULES.index(rule))
        n_tasks = n_models = n_bounds = 0
        for _ in range(12 if rule in ("kemeny", "bradley-terry") else 40):
            field = election(table(rng, rule))
            result = find_leaders(rule, field, deadline=soon())
            leading = first(rule, field)
            assert (None if result is None else set(result.tolist())) == leading
            if leading is None:
                continue
            for search, plain in ((find_pivotal_tasks, plain_tasks), (find_pivotal_models, plain_models)):
                removal = search(rule, field, result, deadline=soon())
                truth = plain(rule, field, leading)
                known = None if removal.removed is None else len(removal.removed)
                if removal.is_exact:
                    assert known == truth
                else:
                    # Several leaders, or strengths that do not exist without some task or model.
                    n_bounds += 1
                    assert removal.lower_bound <= (truth or 99) <= (known or 99)
                if known is None:
                    continue
                n_tasks, n_models = n_tasks + (search is find_pivotal_tasks), n_models + (search is find_pivotal_models)
                if search is find_pivotal_tasks:
                    kept = np.setdiff1d(np.arange(field.n_tasks), removal.removed)
                    assert len(kept)
                    assert not first(rule, field.select_tasks(kept)) & leading
                else:
                    assert not leading & set(removal.removed.tolist())
                    kept = np.setdiff1d(np.arange(field.n_models), removal.removed)
                    assert not {int(kept[j]) for j in first(rule, field.select_models(kept))} & leading
        assert n_tasks > 2
        assert n_models > 0 or rule in ("mean", "median", "kemeny", "minimax")
        assert n_bounds <= 8


class TestLaws:
    def test_a_leader_that_is_first_on_every_task_stays(self):
        T = np.array([[5, 3, 4, 1], [9, 9, 2, 0], [7, 1, 3, 6]])
        for rule in VOTING_RULES:
            field = election(T)
            for search in (find_pivotal_tasks, find_pivotal_models):
                removal = search(rule, field, np.array([0]), deadline=soon())
                assert removal.removed is None
                assert removal.is_exact

    def test_one_task_cannot_be_left_out(self):
        for rule in VOTING_RULES:
            field = election([[3, 2, 1, 2.5]])
            removal = find_pivotal_tasks(rule, field, find_leaders(rule, field, deadline=soon()), deadline=soon())
            assert removal.removed is None
            assert removal.is_exact

    def test_where_all_lead_nobody_can_take_over(self):
        field = election(np.ones((3, 4)))
        for rule in VOTING_RULES:
            everyone = find_leaders(rule, field, deadline=soon())
            assert everyone.tolist() == [0, 1, 2, 3]
            assert find_pivotal_tasks(rule, field, everyone, deadline=soon()).is_exact
            assert find_pivotal_models(rule, field, everyone, deadline=soon()).removed is None

    def test_without_time_the_result_is_a_bound(self):
        rng = np.random.default_rng(5)
        field = election(rng.random((9, 8)) + np.linspace(0, 1, 8))
        leading = find_leaders("median", field, deadline=soon())
        removal = find_pivotal_tasks("median", field, leading, deadline=working_time() - 1)
        assert removal.removed is None
        assert removal.lower_bound == 1
        assert not removal.is_exact

    def test_the_third_wheel_decides(self):
        """Borda: without the model that splits the field, the runner-up leads."""
        field = election([[3, 2, 1]] * 3 + [[1, 3, 2]] * 2)
        assert count_points("borda", field).ranks.tolist() == [2, 1, 3]
        assert field.duels.condorcet_winner == 0
        removal = find_pivotal_models("borda", field, np.array([1]), deadline=soon())
        assert removal.removed.tolist() == [2]
        assert removal.is_exact
