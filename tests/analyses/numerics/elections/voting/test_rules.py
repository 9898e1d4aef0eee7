from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.voting import bradley_terry
from analyses.numerics.elections.voting.rules import (
    COMPLETE_TASK_RULES,
    VOTING_RULES,
    Election,
    canonical_rule,
    count_points,
)
from analyses.numerics.elections.win_rates import win_rates

NAN = float("nan")
POINTS_RULES = tuple(rule for rule in VOTING_RULES if rule not in ("kemeny", "bradley-terry"))
ORDINAL = tuple(rule for rule in POINTS_RULES if rule not in ("mean", "median"))


def election(T) -> Election:
    return Election.from_scores(exact_scores(np.asarray(T, dtype=float)))


def displayed_scores(rule, T) -> list[Fraction]:
    result = count_points(rule, election(T))
    return [Fraction(value) * result.unit for value in result.points.tolist()]


def table(rng, *, gaps=False) -> np.ndarray:
    n, m = int(rng.integers(1, 8)), int(rng.integers(2, 8))
    T = rng.integers(0, 5, (n, m)).astype(float)
    T = T[rng.integers(0, n, n)] if rng.random() < 0.3 else T
    T = T[:, rng.integers(0, m, m)] if rng.random() < 0.3 else T
    return np.where(rng.random(T.shape) < 0.3, NAN, T) if gaps else T


def mean_of_places(row, j, value) -> Fraction:
    """What a model gets where those that tie share the mean of the places they take."""
    ahead, tied = int((row > row[j]).sum()), int((row == row[j]).sum())
    return sum((value(ahead + 1 + k) for k in range(tied)), Fraction(0)) / tied


def literally(rule, T, j) -> Fraction:
    """Each rule as a book has it."""
    n, m = T.shape
    column = [] if np.isnan(T).any() else [Fraction(str(value)) for value in T[:, j]]
    if rule == "mean":
        return sum(column) / n
    if rule == "median":
        ordered = sorted(column)
        return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    if rule == "borda":
        return sum(m - mean_of_places(row, j, Fraction) for row in T) / n
    if rule == "dowdall":
        return sum(mean_of_places(row, j, lambda place: Fraction(1, place)) for row in T) / n
    if rule == "plurality":
        return sum(mean_of_places(row, j, lambda place: Fraction(int(place == 1))) for row in T) / n
    duels = []
    for second in range(m):
        if second != j:
            both = ~np.isnan(T[:, j]) & ~np.isnan(T[:, second])
            won, lost = int((T[both, j] > T[both, second]).sum()), int((T[both, j] < T[both, second]).sum())
            duels.append((won, lost, int(both.sum())))
    if rule == "copeland":
        return sum((Fraction(won > lost) + Fraction(won == lost, 2) for won, lost, _ in duels), Fraction(0))
    return min(Fraction(won - lost, shared) if shared else Fraction(0) for won, lost, shared in duels)


class TestAgainstReference:
    @pytest.mark.parametrize("rule", [rule for rule in POINTS_RULES if not rule.startswith("win-rate")])
    def test_points_are_those_of_the_definition(self, rule):
        rng = np.random.default_rng(1)
        for _ in range(60):
            T = table(rng, gaps=rule not in COMPLETE_TASK_RULES)
            assert displayed_scores(rule, T) == [literally(rule, T, j) for j in range(T.shape[1])]

    def test_win_rates_are_those_of_the_field(self):
        T = table(np.random.default_rng(2), gaps=True)
        assert displayed_scores("win-rate", T) == win_rates(exact_scores(T))
        assert displayed_scores("win-rate-per-task", T) == win_rates(exact_scores(T), rule="per_task")

    def test_the_worked_example_of_the_paper(self):
        """Three models and nine tasks; then a fourth comes and parts the first two (section 3).

        For the first model the paper prints 17/36; by its own equation 2 and rankings it is 16/36, as 4 · 3 + 2 · 2
        tasks are won, and as all win rates of four models must add up to 54/36. The order is the one it gives.
        """

        def tasks(*orders):
            return np.array([[-order.index(j) for j in range(len(order))] for n, order in orders for _ in range(n)])

        three = tasks((4, (0, 1, 2)), (3, (1, 2, 0)), (2, (2, 0, 1)))
        assert displayed_scores("win-rate", three) == [Fraction(10, 27), Fraction(10, 27), Fraction(7, 27)]
        assert count_points("win-rate", election(three)).ranks.tolist() == [1.5, 1.5, 3]
        four = tasks((4, (0, 1, 3, 2)), (3, (1, 3, 2, 0)), (2, (2, 0, 1, 3)))
        assert displayed_scores("win-rate", four)[:3] == [Fraction(16, 36), Fraction(19, 36), Fraction(9, 36)]
        assert sum(displayed_scores("win-rate", four)) == Fraction(54, 36)
        assert count_points("win-rate", election(four)).ranks[:3].tolist() == [2, 1, 4]
        # All three are in a cycle before; the duels among them are the same after.
        assert election(three).duels.condorcet_winner is None
        assert election(three).duels.smith_set.tolist() == [0, 1, 2]
        assert election(four).duels.wins[:3, :3].tolist() == election(three).duels.wins.tolist()

    def test_many_models_and_long_decimals_are_counted_exactly(self):
        rng = np.random.default_rng(3)
        T = rng.random((4, 60)).round(9)
        T[:, 7] = T[:, 3]
        for rule in ("mean", "dowdall"):
            assert displayed_scores(rule, T)[3] == displayed_scores(rule, T)[7] == literally(rule, T, 3)

    def test_strengths_meet_the_equations_of_bradley_and_terry(self):
        rng = np.random.default_rng(4)
        n_fitted = 0
        for _ in range(20):
            T = rng.integers(0, 6, (9, 5)).astype(float)
            T[rng.random(T.shape) < 0.1] = NAN
            duels = election(T).duels
            if not bradley_terry.has_finite_strengths(duels):
                continue
            n_fitted += 1
            s = bradley_terry.fit_strengths(duels)
            for i in range(5):
                won = expected = 0.0
                for j in range(5):
                    for a, b in zip(T[:, i], T[:, j], strict=True):
                        if i != j and not np.isnan(a) and not np.isnan(b):
                            won += (a > b) + (a == b) / 2
                            expected += 1 / (1 + np.exp(s[j] - s[i]))
                assert won == pytest.approx(expected, abs=1e-6)
        assert n_fitted > 10


class TestDuels:
    def test_winners_and_tiers_are_those_of_the_definition(self):
        rng = np.random.default_rng(5)
        n_cycles = 0
        for _ in range(80):
            duels = election(table(rng, gaps=rng.random() < 0.5)).duels
            m = len(duels.wins)
            beats = duels.wins > duels.wins.T
            winners = [i for i in range(m) if all(beats[i, j] for j in range(m) if j != i)]
            assert duels.condorcet_winner == (winners[0] if winners else None)
            assert duels.weak_condorcet_winners.tolist() == [i for i in range(m) if not beats[:, i].any()]
            sets = [[i for i in range(m) if bits >> i & 1] for bits in range(1, 2**m)]
            closed = [some for some in sets if all(beats[i, j] for i in some for j in range(m) if j not in some)]
            nested = sorted(closed, key=len)
            assert duels.smith_set.tolist() == nested[0]
            n_cycles += len(nested[0]) > 1
            # Sets that beat everyone outside lie in each other, like Russian dolls; tiers are what each adds.
            assert duels.tiers.tolist() == [
                next(k for k, members in enumerate(nested) if i in members) for i in range(m)
            ]
        assert n_cycles > 10

    def test_a_model_dominates_where_it_is_never_worse_and_once_better(self):
        T = np.array([[3, 2, 3, NAN], [1, 1, 1, 1], [5, 4, 2, 6]], dtype=float)
        assert election(T).duels.pareto_dominates.astype(int).tolist() == [
            [0, 1, 1, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 1, 1, 0],
        ]


class TestLaws:
    @pytest.mark.parametrize("rule", POINTS_RULES)
    def test_names_of_models_and_order_of_tasks_do_not_matter(self, rule):
        rng = np.random.default_rng(6)
        for _ in range(20):
            T = table(rng, gaps=rule not in COMPLETE_TASK_RULES)
            columns = rng.permutation(T.shape[1])
            item, second = displayed_scores(rule, T), displayed_scores(rule, T[rng.permutation(len(T))][:, columns])
            assert [item[j] for j in columns] == second

    @pytest.mark.parametrize("rule", ORDINAL)
    def test_only_the_order_within_a_task_counts(self, rule):
        rng = np.random.default_rng(7)
        T = table(rng, gaps=rule not in COMPLETE_TASK_RULES)
        assert displayed_scores(rule, T) == displayed_scores(rule, np.exp(T) * 1000)

    @pytest.mark.parametrize("rule", ["copeland", "minimax"])
    def test_whoever_wins_every_duel_is_first_alone(self, rule):
        rng = np.random.default_rng(8)
        n_winners = 0
        for _ in range(60):
            field = election(rng.random((5, 5)))
            winner = field.duels.condorcet_winner
            if winner is not None:
                n_winners += 1
                ranks = count_points(rule, field).ranks
                assert np.flatnonzero(ranks == 1).tolist() == [winner]
        assert n_winners > 10

    @pytest.mark.parametrize("rule", ["mean", "borda", "dowdall", "plurality"])
    def test_a_model_first_for_two_electorates_is_first_for_both_together(self, rule):
        rng = np.random.default_rng(9)
        n_shared = 0
        for _ in range(60):
            item, second = rng.integers(0, 4, (3, 4)).astype(float), rng.integers(0, 4, (4, 4)).astype(float)
            first = []
            for T in (item, second, np.vstack([item, second])):
                expected_points = count_points(rule, election(T)).points
                first.append(set(np.flatnonzero(expected_points == expected_points.max()).tolist()))
            if first[0] & first[1]:
                n_shared += 1
                assert first[0] & first[1] == first[2]
        assert n_shared > 10

    @pytest.mark.parametrize("rule", ["mean", "win-rate", "win-rate-per-task", "borda", "dowdall", "copeland"])
    def test_a_model_never_worse_and_once_better_is_ahead(self, rule):
        rng = np.random.default_rng(10)
        n_pairs = 0
        for _ in range(40):
            field = election(table(rng))
            ranks = count_points(rule, field).ranks
            for i, j in np.argwhere(field.duels.pareto_dominates):
                n_pairs += 1
                assert ranks[i] < ranks[j]
        assert n_pairs > 50

    @pytest.mark.parametrize("rule", ["median", "plurality", "minimax"])
    def test_a_model_never_worse_and_once_better_is_at_least_not_behind(self, rule):
        rng = np.random.default_rng(12)
        n_tied = 0
        for _ in range(40):
            field = election(table(rng))
            ranks = count_points(rule, field).ranks
            for i, j in np.argwhere(field.duels.pareto_dominates):
                assert ranks[i] <= ranks[j]
                n_tied += ranks[i] == ranks[j]
        assert n_tied > 5

    def test_without_gaps_four_rules_can_be_one(self):
        rng = np.random.default_rng(11)
        with_ties, without = election(rng.integers(0, 3, (5, 6))), election(rng.random((5, 6)))
        borda = count_points("borda", with_ties).ranks.tolist()
        assert count_points("win-rate-per-task", with_ties).ranks.tolist() == borda
        assert canonical_rule("win-rate", with_ties) == "win-rate"
        assert canonical_rule("win-rate", without) == "borda"
        assert count_points("win-rate", without).ranks.tolist() == count_points("borda", without).ranks.tolist()
        fields = (election(rng.integers(0, 9, (9, 4))) for _ in range(99))
        field = next(field for field in fields if bradley_terry.has_finite_strengths(field.duels))
        levels = bradley_terry.tie_levels(bradley_terry.fit_strengths(field.duels))
        assert average_ranks(levels).tolist() == count_points("borda", field).ranks.tolist()

    def test_strengths_do_not_exist_where_a_model_wins_everything(self):
        assert not bradley_terry.has_finite_strengths(election([[3, 1, 2], [3, 2, 1]]).duels)
        assert bradley_terry.has_finite_strengths(election([[3, 1, 2], [3, 2, 1], [1, 3, 2]]).duels)
        assert not bradley_terry.has_finite_strengths(
            election([[1, 2, NAN, NAN], [2, 1, 3, 4], [NAN, NAN, 4, 3]]).duels
        )

    def test_a_duel_without_a_common_task_is_drawn(self):
        duels = election([[1, NAN], [NAN, 2]]).duels
        assert duels.condorcet_winner is None
        assert duels.weak_condorcet_winners.tolist() == [0, 1]
        assert displayed_scores("copeland", [[1, NAN], [NAN, 2]]) == [Fraction(1, 2)] * 2
        assert displayed_scores("minimax", [[1, NAN], [NAN, 2]]) == [0, 0]
