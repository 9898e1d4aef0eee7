from __future__ import annotations

import itertools

import numpy as np
import pytest

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.voting import kemeny as kemeny_module
from analyses.numerics.elections.voting.kemeny import find_kemeny_order
from analyses.numerics.elections.voting.rules import Election
from tracker.statistics.jit import working_time

NAN = float("nan")


def codes_of(T) -> np.ndarray:
    return Election.from_scores(exact_scores(np.asarray(T, dtype=float))).codes


def find_order(T, *, seconds=20.0):
    return find_kemeny_order(codes_of(T), deadline=working_time() + seconds)


def contradictions(T, order) -> int:
    """As said in words: where a task has one strictly better and the order the other ahead."""
    return sum(
        int(T[t][behind] > T[t][ahead])
        for t in range(len(T))
        for place, ahead in enumerate(order)
        for behind in order[place + 1 :]
    )


def table(rng, kind) -> np.ndarray:
    n, m = int(rng.integers(1, 7)), int(rng.integers(2, 6 + (kind == "all different")))
    if kind == "ties":
        return rng.integers(0, 3, (n, m)).astype(float)
    if kind == "duplicates":
        some = rng.integers(0, 9, (n, m)).astype(float)
        return some[rng.integers(0, n, n)][:, rng.integers(0, m, m)]
    if kind == "gaps":
        return np.where(rng.random((n, m)) < 0.3, NAN, rng.integers(0, 5, (n, m)))
    return rng.random((n, m))


class TestAgainstReference:
    @pytest.mark.parametrize("kind", ["ties", "duplicates", "gaps", "all different"])
    def test_it_costs_what_the_best_of_all_orders_costs(self, kind):
        rng = np.random.default_rng(len(kind))
        n_cycles = 0
        for _ in range(60):
            T = table(rng, kind)
            result = find_order(T)
            orders = list(itertools.permutations(range(T.shape[1])))
            costs = np.array([contradictions(T, order) for order in orders])
            assert result.is_exact
            assert result.distance == costs.min() == contradictions(T, result.order.tolist())
            n_cycles += costs.min() > sum(
                min((T[:, i] > T[:, j]).sum(), (T[:, j] > T[:, i]).sum())
                for i, j in itertools.combinations(range(T.shape[1]), 2)
            )
            # Copies aside, the order is unique where all best orders are one.
            names = np.unique(codes_of(T), axis=1, return_inverse=True)[1].ravel()
            best = {tuple(names[list(order)]) for order in itertools.compress(orders, costs == costs.min())}
            together = {
                item
                for item in best
                if all(len(list(run)) == (names == name).sum() for name, run in itertools.groupby(item))
            }
            assert result.is_unique == (len(together) == 1)
        assert n_cycles or kind != "all different"

    def test_models_that_share_a_rank_can_be_put_in_any_order(self):
        rng = np.random.default_rng(4)
        n_shared = 0
        for _ in range(40):
            T = table(rng, "ties")
            result = find_order(T)
            for rank in np.unique(result.ranks):
                winner = np.flatnonzero(result.ranks == rank)
                n_shared += len(winner) > 1
                for inner in itertools.permutations(winner):
                    order = sorted(
                        range(T.shape[1]),
                        key=lambda j, inner=inner: (result.ranks[j], list(inner).index(j) if j in inner else 0),
                    )
                    assert contradictions(T, order) == result.distance
        assert n_shared > 5

    def test_with_the_program_alone_the_best_order_is_the_same(self, monkeypatch):
        rng = np.random.default_rng(8)
        for _ in range(8):
            T = rng.random((5, 14))
            by_search = find_order(T)
            monkeypatch.setattr(kemeny_module, "_improve_order", lambda cost, order, deadline: order)
            by_program = find_order(T)
            monkeypatch.undo()
            assert by_search.is_exact
            assert by_program.is_exact
            assert by_program.distance == by_search.distance == contradictions(T, by_program.order.tolist())


class TestLaws:
    def test_the_names_of_models_and_tasks_do_not_matter(self):
        rng = np.random.default_rng(2)
        for _ in range(30):
            T = rng.integers(0, 6, (5, 8)).astype(float)
            columns = rng.permutation(8)
            item, second = find_order(T), find_order(T[rng.permutation(5)][:, columns])
            assert item.distance == second.distance
            assert item.is_unique == second.is_unique
            if item.is_unique:
                assert item.ranks[columns].tolist() == second.ranks.tolist()

    def test_whoever_wins_every_duel_is_first(self):
        rng = np.random.default_rng(3)
        n_winners = 0
        for _ in range(60):
            T = rng.random((5, 6))
            winner = Election.from_scores(exact_scores(T)).duels.condorcet_winner
            if winner is not None:
                n_winners += 1
                assert find_order(T).ranks[winner] == 1
        assert n_winners > 10

    def test_electorates_that_agree_agree_together(self):
        """Reinforcement, which of all Condorcet rules only this one has."""
        rng = np.random.default_rng(5)
        n_agreements = 0
        for _ in range(80):
            item, second = (rng.random((3, 4)) + np.arange(4) / 4 for _ in range(2))
            alone, separate, together = find_order(item), find_order(second), find_order(np.vstack([item, second]))
            if alone.is_unique and separate.is_unique and alone.order.tolist() == separate.order.tolist():
                n_agreements += 1
                assert together.is_unique
                assert together.order.tolist() == alone.order.tolist()
        assert n_agreements > 2

    def test_a_task_all_models_tie_on_changes_nothing(self):
        T = np.random.default_rng(6).random((4, 6))
        assert find_order(np.vstack([T, np.ones(6)])).order.tolist() == find_order(T).order.tolist()

    def test_without_time_the_bound_still_holds(self):
        rng = np.random.default_rng(7)
        n_open = 0
        for _ in range(6):
            T = rng.random((7, 30))
            hasty, patient = find_order(T, seconds=-1.0), find_order(T)
            assert hasty.lower_bound <= patient.distance <= hasty.distance
            assert patient.is_exact
            n_open += not hasty.is_exact
            assert hasty.is_exact or hasty.is_unique is None
        assert n_open

    def test_where_all_tie_all_share_the_rank(self):
        result = find_order(np.ones((3, 5)))
        assert result.ranks.tolist() == [3.0] * 5
        assert result.distance == 0
        assert result.is_unique
        assert find_order([[1.0, NAN], [NAN, 1.0]]).ranks.tolist() == [1.5, 1.5]

    def test_cycles_of_many_models_are_solved(self):
        rng = np.random.default_rng(9)
        for m in (30, 40):
            T = rng.random((9, m))
            result = find_order(T, seconds=60)
            assert result.is_exact
            assert result.distance == contradictions(T, result.order.tolist())
