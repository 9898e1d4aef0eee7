"""How far added models move the ranking of the leading ones: against every subset, one by one."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores, exact_scores
from analyses.numerics.elections.largest_change import LargestChange, OrdinalSensitivity
from analyses.numerics.elections.ordinal.ordinal_sensitivity import ordinal_sensitivity, select_leading_models
from analyses.numerics.elections.win_rates import WIN_RATE_RULES, WinRateRule

NAN = np.nan
THE_PAPERS = (
    *(f"heim_{kind}" for kind in ("aesthetics_auto", "aesthetics_human", "alignment_auto", "alignment_human")),
    *("heim_nudity", "heim_quality_auto", "heim_quality_human"),
    *("bigcode", "helm_accuracy", "helm_fairness", "helm_robustness"),
)


def leaderboard(shared: Path, name: str) -> tuple[ExactScores, list[str]]:
    """A leaderboard as the file has it, every row a model of its own."""
    table = pd.read_csv(shared / "data" / "leaderboards" / f"ordinal_{name}.csv")
    return exact_scores(table.drop(columns="model").to_numpy(np.float64).T.copy()), list(table["model"])


def small_table(seed: int, *, missing: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores with many ties, some equal models and some gaps, and two to four leading columns anywhere."""
    rng = np.random.default_rng(seed)
    n_tasks, n_models = rng.integers(2, 7), rng.integers(4, 10)
    T = rng.integers(0, rng.integers(3, 12), (n_tasks, n_models)).astype(float)
    T[rng.random(T.shape) < missing] = NAN
    if rng.random() < 0.3:
        T[:, -1] = T[:, 0]
    return T, rng.permutation(n_models)[: rng.integers(2, 5)]


def plain_rates(T: NDArray[np.float64], field: list[int], rule: WinRateRule) -> list[Fraction]:
    """Win rates by the words of their definition."""
    rates = []
    for i in field:
        shares = []
        if rule == "pairwise":
            for j in field:
                shared = [t for t in range(len(T)) if T[t, i] == T[t, i] and T[t, j] == T[t, j]]
                won = sum(int(T[t, i] > T[t, j]) for t in shared)
                shares.append(Fraction(won, len(shared)) if shared and i != j else Fraction(0))
        else:
            for t in range(len(T)):
                rivals = [j for j in field if j != i and T[t, j] == T[t, j]]
                if T[t, i] == T[t, i] and rivals:
                    points = sum(2 if T[t, i] > T[t, j] else int(T[t, i] == T[t, j]) for j in rivals)
                    shares.append(Fraction(points, 2 * len(rivals)))
        rates.append(sum(shares, Fraction(0)) / len(shares) if shares else Fraction(0))
    return rates


def plain_ranks(rates: list[Fraction]) -> list[Fraction]:
    return [1 + Fraction(sum((b > a) * 2 + (b == a) for b in rates) - 1, 2) for a in rates]


def every_subset(T: NDArray[np.float64], leading: list[int], rule: WinRateRule) -> tuple[Fraction, Fraction]:
    """Largest tau and largest MRC over all additions."""
    remaining = [j for j in range(T.shape[1]) if j not in leading]
    k, tau, mrc = len(leading), Fraction(0), Fraction(0)
    before = plain_ranks(plain_rates(T, leading, rule))
    for added in chain.from_iterable(combinations(remaining, size) for size in range(len(remaining) + 1)):
        after = plain_ranks(plain_rates(T, leading + list(added), rule)[:k])
        pairs = [(before[i] - before[j]) * (after[i] - after[j]) < 0 for i in range(k) for j in range(i)]
        tau = max(tau, Fraction(sum(pairs), len(pairs)))
        mrc = max(mrc, max(abs(a - b) for a, b in zip(after, before, strict=True)) / (k - 1))
    return tau, mrc


def bears_out(T: NDArray[np.float64], result: OrdinalSensitivity, change: LargestChange, rule: WinRateRule) -> bool:
    """Whether the witness does what is claimed, by the plain definition."""
    field = [*result.leading.tolist(), *result.addable[change.witness].tolist()]
    return bool(plain_ranks(plain_rates(T, field, rule)[: len(result.leading)]) == change.ranks_after.tolist())


class TestAgainstReference:
    @pytest.mark.parametrize("rule", WIN_RATE_RULES)
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_it_is_the_largest_over_all_subsets(self, rule: WinRateRule, missing: float) -> None:
        n_exact = n_moved = 0
        for seed in range(100):
            T, leading = small_table(seed, missing=missing)
            result = ordinal_sensitivity(exact_scores(T), leading=leading, rule=rule, time_limit=60)
            tau, mrc = every_subset(T, leading.tolist(), rule)
            assert bears_out(T, result, result.tau, rule)
            assert bears_out(T, result, result.mrc, rule)
            if rule == "pairwise" or not missing:
                assert result.is_exact
                assert (result.tau.value, result.mrc.value) == (float(tau), float(mrc)), seed
            else:
                assert result.tau.value <= float(tau) <= result.tau.upper_bound, seed
                assert result.mrc.value <= float(mrc) <= result.mrc.upper_bound, seed
            n_exact += result.is_exact
            n_moved += result.mrc.value > 0
            quick = ordinal_sensitivity(exact_scores(T), leading=leading, rule=rule, time_limit=0)
            assert quick.tau.value <= float(tau) <= quick.tau.upper_bound, seed
            assert quick.mrc.value <= float(mrc) <= quick.mrc.upper_bound, seed
        assert n_exact > 30
        assert n_moved > 40

    def test_the_values_of_the_papers_leaderboards(self, shared: Path) -> None:
        known = json.loads((shared / "reference" / "social_choice.json").read_text())["ordinal"]
        for name in THE_PAPERS:
            scores, names = leaderboard(shared, name)
            leading = select_leading_models(scores, names, top=0.2, rule="pairwise")
            result = ordinal_sensitivity(scores, leading=leading, rule="pairwise", time_limit=30)
            assert result.is_exact, name
            if values := known.get(f"ordinal_{name}.csv"):
                assert (round(result.tau.value, 6), round(result.mrc.value, 6)) == (values["tau"], values["MRC"]), name
            assert result.tau.distance.tau == result.tau.value
            assert result.mrc.distance.mrc == result.mrc.value

    def test_the_local_search_alone_stays_below_and_its_bound_above(self, shared: Path) -> None:
        for name in THE_PAPERS:
            scores, names = leaderboard(shared, name)
            leading = select_leading_models(scores, names, top=0.2, rule="pairwise")
            exact = ordinal_sensitivity(scores, leading=leading, rule="pairwise", time_limit=30)
            quick = ordinal_sensitivity(scores, leading=leading, rule="pairwise", time_limit=0)
            assert quick.tau.value <= exact.tau.value <= quick.tau.upper_bound
            assert quick.mrc.value <= exact.mrc.value <= quick.mrc.upper_bound

    def test_the_authors_package_finds_no_more_reversals(self, shared: Path) -> None:
        # Strict reversals of the additions that benchbench 1.0.1 returns; its own figures are in another definition.
        published = {
            "helm_accuracy": 25,
            "heim_nudity": 3,
            "heim_quality_auto": 1,
            "heim_aesthetics_auto": 4,
            "bigcode": 1,
        }
        for name, n_reversed in published.items():
            scores, names = leaderboard(shared, name)
            leading = select_leading_models(scores, names, top=0.2, rule="pairwise")
            quick = ordinal_sensitivity(scores, leading=leading, rule="pairwise", time_limit=0)
            assert quick.tau.distance.n_reversed >= n_reversed, name

    def test_the_fourth_model_of_the_papers_example_turns_a_tie(self) -> None:
        T = np.array([[4, 3, 1, 2]] * 4 + [[1, 4, 2, 3]] * 3 + [[3, 2, 4, 1]] * 2, dtype=float)
        result = ordinal_sensitivity(exact_scores(T), leading=np.arange(3), rule="pairwise", time_limit=9)
        assert result.before.tolist() == [1.5, 1.5, 3]
        assert result.mrc.ranks_after.tolist() == [2, 1, 3]
        assert result.mrc.witness.tolist() == [True]
        # A tie that is broken is half a rank, and no reversal.
        assert (result.tau.value, result.mrc.value, result.is_exact) == (0.0, 0.25, True)

    @pytest.mark.parametrize("rule", WIN_RATE_RULES)
    def test_models_without_skill_can_be_put_in_the_opposite_order(self, rule: WinRateRule) -> None:
        scores = exact_scores(np.random.default_rng(0).random((100, 1000)).round(6))
        leading = select_leading_models(scores, [f"{n:04}" for n in range(1000)], top=10, rule=rule)
        result = ordinal_sensitivity(scores, leading=leading, rule=rule, time_limit=30)
        first, second = np.triu_indices(10, 1)
        n_strict = np.count_nonzero(result.before[first] != result.before[second])
        assert result.tau.distance.n_reversed == n_strict >= 44
        assert result.mrc.value == 1.0
        assert result.is_exact


class TestWitnesses:
    def test_nobody_is_added_who_can_be_spared(self) -> None:
        scores = exact_scores(np.random.default_rng(5).random((7, 40)))
        result = ordinal_sensitivity(scores, leading=np.arange(8), rule="pairwise", time_limit=30)
        assert result.tau.witness.any()
        for item in np.flatnonzero(result.tau.witness):
            fewer = result.addable[result.tau.witness & (np.arange(len(result.addable)) != item)]
            rates = plain_rates(scores.T, [*range(8), *fewer.tolist()], "pairwise")[:8]
            after = np.array(plain_ranks(rates), dtype=float)
            assert ranking_distance(result.before, after).n_reversed < result.tau.distance.n_reversed


class TestLeadingModels:
    def test_a_share_is_rounded_down_and_a_number_is_used_as_it_is(self) -> None:
        scores = exact_scores(np.arange(29.0)[None, :])
        names = [f"{n:02}" for n in range(29)]
        for top, n_leading in ((0.2, 5), (0.01, 2), (1, 2), (7, 7), (40, 29), (0.9999, 28)):
            leading = select_leading_models(scores, names, top=top, rule="pairwise")
            assert leading.tolist() == list(range(28, 28 - n_leading, -1))
        hundred = exact_scores(np.arange(100.0)[None, :])
        assert len(select_leading_models(hundred, [str(n) for n in range(100)], top=0.29, rule="per_task")) == 29

    def test_equal_models_go_by_name(self) -> None:
        scores = exact_scores(np.array([[1.0, 1.0, 2.0, 1.0]]))
        assert select_leading_models(scores, ["d", "b", "c", "a"], top=3, rule="pairwise").tolist() == [2, 3, 1]

    def test_the_rule_decides_who_leads(self) -> None:
        # The first ties where the second has nothing to lose.
        T = np.array([[1.0, 0.0, 1.0, 1.0], [1.0, 2.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0]])
        names = ["b", "c", "a", "d"]
        assert select_leading_models(exact_scores(T), names, top=2, rule="pairwise").tolist() == [1, 2]
        assert select_leading_models(exact_scores(T), names, top=2, rule="per_task").tolist() == [2, 0]


class TestLaws:
    @given(st.integers(0, 10**6), st.sampled_from(WIN_RATE_RULES))
    def test_the_order_of_models_and_tasks_does_not_matter(self, seed: int, rule: WinRateRule) -> None:
        T, leading = small_table(seed, missing=0.0)
        rng = np.random.default_rng(seed)
        tasks, models = rng.permutation(T.shape[0]), rng.permutation(T.shape[1])
        place = np.argsort(models)
        result = ordinal_sensitivity(exact_scores(T), leading=leading, rule=rule, time_limit=30)
        second = ordinal_sensitivity(
            exact_scores(T[tasks][:, models]), leading=place[leading], rule=rule, time_limit=30
        )
        assert (result.tau.value, result.mrc.value) == (second.tau.value, second.mrc.value)

    @given(st.integers(0, 10**6), st.sampled_from(WIN_RATE_RULES))
    def test_tasks_that_count_twice_change_nothing(self, seed: int, rule: WinRateRule) -> None:
        T, leading = small_table(seed, missing=0.2)
        result = ordinal_sensitivity(exact_scores(T), leading=leading, rule=rule, time_limit=0)
        second = ordinal_sensitivity(exact_scores(np.repeat(T, 2, axis=0)), leading=leading, rule=rule, time_limit=0)
        assert (result.tau.value, result.mrc.value) == (second.tau.value, second.mrc.value)
        assert (result.tau.upper_bound, result.mrc.upper_bound) == (second.tau.upper_bound, second.mrc.upper_bound)

    def test_the_same_search_gives_the_same_witness(self) -> None:
        T = np.random.default_rng(5).random((7, 40))
        first, second = (
            ordinal_sensitivity(exact_scores(T), leading=np.arange(8), rule="pairwise", time_limit=0) for _ in range(2)
        )
        assert (first.tau.witness == second.tau.witness).all()
        assert (first.mrc.witness == second.mrc.witness).all()
        assert first.tau.distance.n_reversed > 0

    def test_a_field_of_many_missing_scores_needs_large_whole_numbers(self) -> None:
        # Numbers of shared tasks up to 80: their common multiple exceeds 64 bits.
        rng = np.random.default_rng(2)
        T = rng.integers(0, 3, (90, 9)).astype(float)
        T[rng.random(T.shape) < np.linspace(0, 0.7, 9)] = NAN
        T[:, 8] = T[:, 0]
        leading = np.array([0, 2, 4, 8])
        result = ordinal_sensitivity(exact_scores(T), leading=leading, rule="pairwise", time_limit=60)
        assert (result.tau.value, result.mrc.value) == tuple(map(float, every_subset(T, leading.tolist(), "pairwise")))
        assert result.is_exact


class TestDegenerateInput:
    @pytest.mark.parametrize("rule", WIN_RATE_RULES)
    @pytest.mark.parametrize(
        "T",
        [
            np.ones((3, 5)),
            np.arange(5.0)[None, :],
            np.full((2, 5), NAN),
            np.vstack([np.arange(5.0), np.full(5, NAN)]),
            np.zeros((0, 5)),
        ],
        ids=["all tied", "one task", "no score", "an empty task", "no task"],
    )
    def test_nothing_to_disagree_about_is_exactly_zero(self, T: NDArray[np.float64], rule: WinRateRule) -> None:
        result = ordinal_sensitivity(exact_scores(T), leading=np.array([4, 1, 0]), rule=rule, time_limit=9)
        assert (result.tau.value, result.mrc.value, result.is_exact) == (0.0, 0.0, True)

    @pytest.mark.parametrize("rule", WIN_RATE_RULES)
    def test_nobody_to_add_is_exactly_zero(self, rule: WinRateRule) -> None:
        T = np.array([[1.0, 2.0, 3.0], [3.0, NAN, 1.0], [NAN, 5.0, NAN]])
        result = ordinal_sensitivity(exact_scores(T), leading=np.array([2, 0, 1]), rule=rule, time_limit=9)
        assert (result.tau.value, result.mrc.value, result.is_exact) == (0.0, 0.0, True)
        assert len(result.tau.witness) == 0

    def test_one_leading_model_has_nobody_to_change_places_with(self) -> None:
        T = np.array([[1.0, 2.0, 3.0]])
        result = ordinal_sensitivity(exact_scores(T), leading=np.array([1]), rule="pairwise", time_limit=9)
        assert (result.tau.value, result.mrc.value, result.is_exact) == (0.0, 0.0, True)

    def test_a_model_without_scores_that_joins_or_leads(self) -> None:
        T = np.array([[1.0, 2.0, NAN, 3.0], [3.0, 2.0, NAN, 2.5]])
        for leading in ([0, 1], [0, 2]):
            for rule in WIN_RATE_RULES:
                result = ordinal_sensitivity(exact_scores(T), leading=np.array(leading), rule=rule, time_limit=9)
                tau, mrc = every_subset(T, leading, rule)
                assert result.tau.value <= float(tau) <= result.tau.upper_bound
                assert result.mrc.value <= float(mrc) <= result.mrc.upper_bound
