from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.elections.diversity.distance_counts import ReferenceRanking, count_distances
from analyses.numerics.elections.diversity.ranking_distance import average_ranks, ranking_distance
from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.subsets.subset_sampling import SubsetSample
from analyses.numerics.elections.subsets.task_subsets import (
    choose_greedily,
    measure_subsets,
    rank_by_all_tasks,
    subset_distances,
    validate_on_holdout,
)
from analyses.numerics.elections.voting import task_votes as votes_module
from analyses.numerics.elections.voting.task_votes import PairwiseVotes, combine_digits, task_votes
from analyses.numerics.elections.win_rates import win_rates

NAN = float("nan")
KINDS = ("few levels", "duplicates", "decimals", "far apart", "gaps")


def plain_totals(scores, rule, tasks):
    """What models get from some tasks, as said in words."""
    n_models = scores.n_models
    if rule == "mean":
        return [sum(Fraction(int(scores.numerators[t, j]), scores.denominator) for t in tasks) for j in range(n_models)]
    totals = []
    for i in range(n_models):
        total = Fraction(0)
        for j in range(n_models):
            common = [t for t in tasks if scores.present[t, i] and scores.present[t, j]]
            if common:
                wins = sum(scores.numerators[t, i] > scores.numerators[t, j] for t in common)
                total += Fraction(int(wins), len(common))
        totals.append(total)
    return totals


def plain_distance(scores, rule, tasks):
    before, after = (average_ranks(plain_totals(scores, rule, some)) for some in (range(scores.n_tasks), tasks))
    return ranking_distance(before, after)


def table(kind, rng):
    n, m = int(rng.integers(2, 6)), int(rng.integers(2, 11))
    if kind == "few levels":
        return rng.integers(0, 3, (n, m)).astype(float)
    if kind == "duplicates":
        some = rng.integers(0, 20, (n, m)).astype(float)
        return some[rng.integers(0, n, n)][:, rng.integers(0, m, m)]
    if kind == "decimals":
        return rng.random((n, m)).round(3)
    if kind == "far apart":
        return rng.choice([0.1, 0.2, 0.3], (n, m)) * 10.0 ** rng.integers(-40, 40, (n, 1))
    some = rng.integers(0, 4, (n, m)).astype(float)
    return np.where(rng.random((n, m)) < 0.3, NAN, some)


def every_size(scores, rule):
    votes = task_votes(scores, rule)
    standard = rank_by_all_tasks(votes)
    for size in range(1, scores.n_tasks + 1):
        sets = SubsetSample.enumerate_or_draw(scores.n_tasks, size, largest_enumeration=1000, n_samples=1, seed=0)
        yield size, measure_subsets(votes, standard, sets)


class TestAgainstReference:
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_set_of_random_small_tables_has_the_distance_of_a_plain_count(self, kind):
        rng = np.random.default_rng(KINDS.index(kind))
        for _ in range(12):
            scores = exact_scores(table(kind, rng))
            for rule in ("mean", "win-rate") if kind != "gaps" else ("win-rate",):
                for size, result in every_size(scores, rule):
                    everything = list(itertools.combinations(range(scores.n_tasks), size))
                    plain = [plain_distance(scores, rule, tasks) for tasks in everything]
                    d = result.distances
                    assert d.n_reversed.tolist() == [item.n_reversed for item in plain]
                    for measure in ("tau", "tau_paper", "tau_b", "mrc"):
                        expected = [getattr(item, measure) for item in plain]
                        assert getattr(d, measure) == pytest.approx(expected, abs=1e-14, nan_ok=True)
                    keys = [(item.tau_paper, item.mrc, tasks) for item, tasks in zip(plain, everything, strict=True)]
                    assert tuple(result.nearest) == min(keys)[2]
                    assert result.n_nearest == sum(key[:2] == min(keys)[:2] for key in keys)
                    assert tuple(result.nearest_mrc) == min((key[1], key[0], key[2]) for key in keys)[2]

    def test_the_full_ranking_is_that_of_means_and_win_rates(self):
        rng = np.random.default_rng(9)
        for kind in KINDS:
            scores = exact_scores(table(kind, rng))
            standard = rank_by_all_tasks(task_votes(scores, "win-rate"))
            assert standard.ranks.tolist() == average_ranks(win_rates(scores)).tolist()

    def test_the_greedy_order_is_that_of_the_plain_search(self):
        rng = np.random.default_rng(3)
        for kind in KINDS:
            scores = exact_scores(table(kind, rng))
            rule = "mean" if scores.is_complete else "win-rate"
            votes = task_votes(scores, rule)
            result = choose_greedily(votes, rank_by_all_tasks(votes), n_steps=scores.n_tasks)
            chosen, left = [], list(range(scores.n_tasks))
            for step in range(scores.n_tasks):
                plain = [plain_distance(scores, rule, [*chosen, task]) for task in left]
                best = min((item.tau_paper, item.mrc, task) for item, task in zip(plain, left, strict=True))
                chosen.append(best[2])
                left.remove(best[2])
                assert result.distances.tau_paper[step] == pytest.approx(best[0])
                assert result.distances.mrc[step] == pytest.approx(best[1])
            assert result.order.tolist() == chosen

    def test_distances_of_many_models_are_those_of_all_pairs(self):
        rng = np.random.default_rng(5)
        for m in (7, 8, 9, 17, 100):
            before = rng.integers(0, m, m)
            totals = rng.integers(0, m // 2, (20, 1, m))
            result = count_distances(ReferenceRanking.from_totals(before.tolist()), totals)
            plain = [ranking_distance(average_ranks(before), average_ranks(total[0])) for total in totals]
            for measure in ("n_reversed", "tau_paper", "tau_b", "mrc"):
                expected = [getattr(item, measure) for item in plain]
                assert getattr(result, measure) == pytest.approx(expected, abs=1e-14)


class TestExactness:
    def test_ties_that_floats_would_break_are_ties(self):
        """0.1 + 0.2 is 0.3, and a trillionth beside a trillion decides."""
        scores = exact_scores(np.array([[0.1, 0.3, 0.3], [0.2, 0.0, 0.0], [1e12, 1e12, 1e12], [0, 0, 1e-12]]))
        votes = task_votes(scores, "mean")
        totals = votes.totals(np.array([[0, 1, 2]]))[0]
        assert len(set(combine_digits(totals))) == 1
        assert rank_by_all_tasks(votes).ranks.tolist() == [2.5, 2.5, 1.0]

    def test_totals_of_any_size_are_whole_numbers_without_loss(self):
        rng = np.random.default_rng(2)
        scores = exact_scores(10.0 ** rng.integers(-60, 60, (9, 5)) * rng.integers(1, 9, (9, 5)))
        votes = task_votes(scores, "mean")
        assert votes.digits.shape[0] > 5
        for size in (1, 4, 9):
            for tasks in itertools.islice(itertools.combinations(range(9), size), 20):
                digits = votes.totals(np.array([tasks]))[0]
                assert (digits[1:] < 2**votes_module.DIGIT_BITS).all()
                result = combine_digits(digits)
                expected = plain_totals(scores, "mean", tasks)
                for i, j in itertools.combinations(range(5), 2):
                    scale = Fraction(result[i] - result[j]) * (expected[0] - expected[1])
                    assert scale == (expected[i] - expected[j]) * (result[0] - result[1])


class TestLaws:
    def test_duels_without_gaps_order_models_as_wins_do(self):
        rng = np.random.default_rng(8)
        levels = rng.integers(0, 5, (70, 9))
        duels = PairwiseVotes.from_levels(levels, np.ones((70, 9), dtype=bool))
        wins = votes_module.WinVotes.from_levels(levels)
        for size in (1, 3, 69, 70):
            sets = np.sort([rng.permutation(70)[:size] for _ in range(5)], axis=1)
            for item, second in zip(duels.totals(sets), wins.totals(sets), strict=True):
                assert average_ranks(combine_digits(item)).tolist() == average_ranks(combine_digits(second)).tolist()

    @pytest.mark.parametrize("kind", KINDS)
    def test_votes_among_some_models_are_votes_of_a_table_of_these(self, kind):
        rng = np.random.default_rng(4)
        scores = exact_scores(table(kind, rng))
        for rule in ("mean", "win-rate") if scores.is_complete else ("win-rate",):
            models = rng.permutation(scores.n_models)[: max(2, scores.n_models // 2)]
            some, again = task_votes(scores, rule).select_models(models), task_votes(scores.columns(models), rule)
            assert (some.n_tasks, some.n_models) == (again.n_tasks, again.n_models) == (scores.n_tasks, len(models))
            assert rank_by_all_tasks(some).ranks.tolist() == rank_by_all_tasks(again).ranks.tolist()

    @settings(max_examples=40)
    @given(st.integers(1, 9), st.data())
    def test_sets_are_numbered_in_lexicographic_order(self, n, data):
        size = data.draw(st.integers(1, n))
        sets = SubsetSample.enumerate_or_draw(n, size, largest_enumeration=1000, n_samples=1, seed=0)
        start = data.draw(st.integers(0, sets.n_examined - 1))
        stop = data.draw(st.integers(start + 1, sets.n_examined))
        everything = list(itertools.combinations(range(n), size))
        assert sets.n_subsets == sets.n_examined == len(everything) == comb(n, size)
        assert sets.subsets(start, stop).tolist() == [list(item) for item in everything[start:stop]]

    def test_drawn_sets_are_uniform_and_the_first_do_not_depend_on_how_many(self):
        many = SubsetSample.enumerate_or_draw(6, 3, largest_enumeration=0, n_samples=20_000, seed=1)
        rows = many.subsets(0, 20_000)
        assert not many.is_exhaustive
        assert many.subsets(500, 520).tolist() == rows[500:520].tolist()
        assert (
            SubsetSample.enumerate_or_draw(6, 3, largest_enumeration=0, n_samples=7, seed=1).subsets(0, 7).tolist()
            == rows[:7].tolist()
        )
        counts = np.unique(rows, axis=0, return_counts=True)[1]
        assert len(counts) == 20
        assert np.abs(counts - 1000).max() < 5 * np.sqrt(950)
        assert (
            SubsetSample.enumerate_or_draw(6, 3, largest_enumeration=0, n_samples=50, seed=2).subsets(0, 50)
            != rows[:50]
        ).any()

    def test_of_a_sample_the_first_of_the_nearest_sets_is_named_once(self):
        scores = exact_scores(np.arange(8.0) * np.ones((5, 1)))
        votes = task_votes(scores, "mean")
        sets = SubsetSample.enumerate_or_draw(5, 2, largest_enumeration=0, n_samples=400, seed=0)
        result = measure_subsets(votes, rank_by_all_tasks(votes), sets)
        assert (result.nearest.tolist(), result.n_nearest) == ([0, 1], 10)

    def test_any_number_of_workers_finds_the_same(self):
        scores = exact_scores(np.random.default_rng(1).random((16, 30)).round(2))
        votes = task_votes(scores, "mean")
        standard = rank_by_all_tasks(votes)
        sets = SubsetSample.enumerate_or_draw(16, 6, largest_enumeration=0, n_samples=20_000, seed=3)
        alone, alone_held = (
            measure_subsets(votes, standard, sets),
            validate_on_holdout(votes, n_steps=3, n_splits=6, seed=3),
        )
        with joblib.parallel_config(n_jobs=3, backend="threading"):
            shared, shared_held = (
                measure_subsets(votes, standard, sets),
                validate_on_holdout(votes, n_steps=3, n_splits=6, seed=3),
            )
        assert shared.distances.n_changed.tolist() == alone.distances.n_changed.tolist()
        assert shared.nearest.tolist() == alone.nearest.tolist()
        assert shared_held.test.tolist() == alone_held.test.tolist()

    def test_all_tasks_are_at_no_distance(self):
        for kind in KINDS:
            scores = exact_scores(table(kind, np.random.default_rng(6)))
            votes = task_votes(scores, "mean" if scores.is_complete else "win-rate")
            result = choose_greedily(votes, rank_by_all_tasks(votes), n_steps=scores.n_tasks)
            assert sorted(result.order.tolist()) == list(range(scores.n_tasks))
            last = [getattr(result.distances, name)[-1] for name in ("tau", "tau_paper", "tau_b", "mrc")]
            assert last == pytest.approx([0, 0, 0, 0], abs=1e-15)


class TestHoldout:
    def test_tasks_chosen_on_one_half_are_tested_on_the_second(self):
        """Tasks 0 to 3 rank half of the models as all do; with models exchangeable, both halves see the same."""
        scores = exact_scores(np.random.default_rng(0).random((8, 40)).round(3))
        votes = task_votes(scores, "mean")
        result = validate_on_holdout(votes, n_steps=4, n_splits=30, seed=0)
        assert result.selection.shape == result.test.shape == result.random.shape == (30, 4)
        assert (result.selection.mean(axis=0) < result.test.mean(axis=0)).all()
        random = [
            subset_distances(
                votes, rank_by_all_tasks(votes), np.array(list(itertools.combinations(range(8), size)))
            ).tau_paper
            for size in (1, 2, 3, 4)
        ]
        # Noise has no task that stands for the others: on new models a choice is worth what any is.
        assert result.test.mean(axis=0) == pytest.approx([item.mean() for item in random], abs=0.05)
        assert result.random.mean(axis=0) == pytest.approx([item.mean() for item in random], abs=0.03)

    def test_where_one_task_is_the_whole_benchmark_selection_costs_nothing(self):
        scores = exact_scores(np.vstack([np.arange(12.0) * 1000, np.random.default_rng(0).random((4, 12)).round(2)]))
        result = validate_on_holdout(task_votes(scores, "mean"), n_steps=2, n_splits=5, seed=1)
        assert (result.selection == 0).all()
        assert (result.test == 0).all()
        assert (result.random.mean(axis=0) > 0.2).all()


class TestDegenerate:
    def test_a_task_that_ties_all_is_no_near_set(self):
        """It reverses nothing, but leaves every pair undecided."""
        scores = exact_scores(np.array([[5.0] * 6, [1, 2, 3, 5, 4, 6], [1, 2, 3, 4, 5.5, 7]]))
        (_, result), *_ = every_size(scores, "mean")
        assert result.distances.tau.tolist()[0] == 0
        assert result.distances.tau_paper.tolist()[0] == 1
        assert np.isnan(result.distances.tau_b[0])
        assert result.nearest.tolist() == [2]

    def test_models_that_are_all_tied_stay_so_or_are_untied(self):
        scores = exact_scores(np.array([[1.0, 2, 3], [3, 2, 1]]))
        (_, result), (_, everything) = every_size(scores, "mean")
        assert result.distances.tau.tolist() == [0, 0]
        assert result.distances.tau_paper.tolist() == [1, 1]
        assert np.isnan(result.distances.tau_b).all()
        assert everything.distances.tau_b.tolist() == [0]

    def test_a_model_without_a_score_in_the_set_comes_last(self):
        scores = exact_scores(np.array([[3.0, 2, 1, NAN], [1, 1, 1, 9]]))
        totals = task_votes(scores, "win-rate").totals(np.array([[0]]))[0]
        assert average_ranks(combine_digits(totals)).tolist() == [1, 2, 3.5, 3.5]
