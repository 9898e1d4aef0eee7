"""What missing scores count as, policy by policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores, add_task_scores
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tracker.database import transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.ranking.leaderboard import Leaderboard, load_leaderboard
from tracker.queries.ranking.missing import MissingPolicy, TreatedScores, apply_missing_policy
from tracker.queries.ranking.policy_choice import choose_policy
from tracker.queries.ranking.task_means import ScoresByTask, TaskMeans, average_treated
from tracker.queries.selection import POLICIES, Policy, Selection
from tracker.statistics.missing_scores import impute

NAN = float("nan")
Q = np.array([[1.0, 0.0, 1.0], [1.0, NAN, 0.0], [0.0, 1.0, NAN], [1.0, 1.0, 0.0]])
MODELS = ("a", "b", "c")


def least_squares(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row plus column effects by a regression on dummies, the slow and obvious way."""
    n, k = Q.shape
    cells = [(i, j) for i in range(n) for j in range(k) if not np.isnan(Q[i, j])]
    design = np.zeros((len(cells), n + k))
    for at, (i, j) in enumerate(cells):
        design[at, i] = design[at, n + j] = 1.0
    effects = np.linalg.lstsq(design, np.array([Q[cell] for cell in cells]), rcond=None)[0]
    return np.asarray(effects[:n, None] + effects[n:])


def apply(table: NDArray[np.float64], name: Policy, min_coverage: float = 0.0, **rest: Any) -> TreatedScores:
    is_ranked = rest.pop("is_ranked", None)
    models = rest.pop("models", MODELS)
    policy = MissingPolicy(name=name, min_coverage=min_coverage, **({"worst": 0.0, "best": 1.0} | rest))
    return apply_missing_policy(table, policy, models=models, is_ranked=is_ranked)


class TestPolicies:
    def test_bounds_leave_the_gaps_and_name_their_range(self) -> None:
        treated = apply(Q, "bounds")
        assert treated.Q is Q
        assert treated.rows.all()
        assert treated.warnings == ("Missing scores can have any value from 0 to 1: b 1, c 1.",)

    def test_fail_names_who_lacks_what_and_the_methods_out(self) -> None:
        with pytest.raises(SelectionError, match=r"of 4 prompts: b 1, c 1.*--models.*--missing bounds"):
            apply(Q, "fail")

    def test_common_keeps_the_rows_of_those_ranked_only(self) -> None:
        assert apply(Q, "common").rows.tolist() == [True, False, False, True]
        treated = apply(Q, "common", is_ranked=np.array([True, False, True]))
        assert treated.rows.tolist() == [True, True, False, True]
        assert treated.columns.tolist() == [True, False, True]
        assert "3 of 4 prompts" in treated.warnings[0]

    def test_worst_counts_as_the_bound_that_is_bad_in_this_metric(self) -> None:
        assert apply(Q, "worst").Q[1, 1] == 0.0
        assert apply(Q, "worst", worst=7.0).Q[2, 2] == 7.0

    @pytest.mark.parametrize("name", ["bounds", "worst"])
    def test_a_metric_without_bounds_has_no_worst_score(self, name: Policy) -> None:
        with pytest.raises(SelectionError, match=r"--bounds LOW HIGH.*--missing common"):
            apply(Q, name, worst=None)

    def test_imputed_scores_stay_within_the_bounds_and_a_warning_reports_they_are_guesses(self) -> None:
        steep = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, NAN]])
        treated = apply(steep, "impute", models=("a", "b"))
        assert treated.Q[2, 1] == 1.0
        assert impute(steep)[2, 1] == pytest.approx(1.5)
        assert "imputed" in treated.warnings[0]

    def test_without_gaps_every_policy_leaves_the_scores_as_they_are(self) -> None:
        whole = np.nan_to_num(Q)
        for policy in POLICIES:
            treated = apply(whole, policy, worst=None)
            assert treated.Q is whole
            assert treated.warnings == ()

    def test_where_no_row_is_complete_the_error_reports_whom_to_leave_out(self) -> None:
        gaps = np.array([[1.0, NAN], [NAN, 1.0]])
        with pytest.raises(SelectionError, match="Leave those models out with --models"):
            apply(gaps, "common", models=("a", "b"))


class TestCoverage:
    @pytest.mark.parametrize("name", ["bounds", "common", "worst", "impute"])
    def test_a_model_below_it_takes_no_part_and_is_named(self, name: Policy) -> None:
        treated = apply(Q, name, min_coverage=0.8)
        assert treated.columns.tolist() == [True, False, False]
        assert treated.Q.tolist() == Q[:, :1].tolist()
        assert [(model.model, model.reason) for model in treated.excluded] == [
            ("b", "1 of 4 prompts are missing"),
            ("c", "1 of 4 prompts are missing"),
        ]
        assert treated.warnings == (
            "Listed apart, with scores for less than 0.8 (--min-coverage) of the 4 prompts: b (75.0%), c (75.0%).",
        )

    def test_a_model_that_reaches_it_exactly_takes_part(self) -> None:
        assert apply(Q, "bounds", min_coverage=0.75).columns.all()

    def test_a_model_without_a_score_never_takes_part(self) -> None:
        blind = np.column_stack([Q, np.full(4, NAN)])
        assert apply(blind, "bounds", models=(*MODELS, "d")).columns.tolist() == [True, True, True, False]


class TestTaskMeans:
    """Means over tasks, where models lack parts of them."""

    @staticmethod
    def means(gaps: list[tuple[int, int]], policy: Policy, min_coverage: float) -> TaskMeans:
        table = np.array([[1.0, 0.0, 1.0]] * 10 + [[0.0, 1.0, 1.0]] * 10)
        table[::2, 2] = 0.0
        for cell in gaps:
            table[cell] = NAN
        scores = ScoresByTask(Q=table, names=np.array(["s"] * 10 + ["t"] * 10), tasks=["s", "t"], models=MODELS)
        rule = MissingPolicy(name=policy, min_coverage=min_coverage, worst=0.0, best=1.0)
        return average_treated(scores, rule, np.ones(3, dtype=np.bool_))

    def test_a_small_part_of_a_task_counts_as_missing_and_decides_nothing(self) -> None:
        result = self.means([(row, 0) for row in range(10, 16)], "common", 0.7)
        assert np.isnan(result.T[1, 0])
        assert result.T[1].tolist()[1:] == [1.0, 0.5]
        assert result.n_prompts.tolist() == [[10, 10, 10], [0, 10, 10]]
        assert result.coverage[1, 0] == 0.4
        assert any("Counted as missing" in text and "a in t (40.0%)" in text for text in result.warnings)

    def test_a_large_part_is_marked_and_compared_on_the_prompts_that_all_have(self) -> None:
        result = self.means([(0, 2)], "common", 0.7)
        assert result.T[0].tolist() == pytest.approx([1, 0, 5 / 9])
        assert result.n_prompts[0].tolist() == [9, 9, 9]
        assert result.coverage[0].tolist() == [1, 1, 0.9]
        assert any("lack a score: c in s (90.0%)" in text for text in result.warnings)

    def test_worst_counts_missing_prompts_as_wrong(self) -> None:
        assert self.means([(1, 2)], "worst", 0.7).T[0].tolist() == pytest.approx([1, 0, 0.4])

    def test_nobody_with_enough_scores_is_refused_with_a_coverage_that_would_do(self) -> None:
        gaps = [(row, column) for column in range(3) for row in range(3 * column, 3 * column + 3)]
        with pytest.raises(SelectionError, match=r"most complete is a, with 17.*such as 0.85"):
            self.means(gaps, "common", 0.9)


class TestImputation:
    @given(
        Q=hnp.arrays(np.float64, st.tuples(st.integers(2, 7), st.integers(2, 5)), elements=st.floats(-1, 1, width=16)),
        gaps=st.integers(0, 2**32 - 1),
    )
    def test_is_the_least_squares_fit_of_row_and_column_effects(self, Q: NDArray[np.float64], gaps: int) -> None:
        holes = np.random.default_rng(gaps).random(Q.shape) < 0.25
        holes[:, 0] = holes[0] = False  # connected: every effect is told apart
        content = np.where(holes, NAN, Q)
        assert impute(content) == pytest.approx(least_squares(content), abs=1e-9)

    def test_a_table_of_pure_effects_is_restored(self) -> None:
        whole = np.arange(6.0)[:, None] + np.array([0.0, 10.0, -3.0])
        content = whole.copy()
        content[1, 2] = content[4, 0] = NAN
        assert impute(content) == pytest.approx(whole)

    def test_nothing_is_guessed_of_a_row_or_column_without_a_score(self) -> None:
        content = np.array([[1.0, NAN, 0.0], [NAN, NAN, NAN], [0.0, NAN, 1.0]])
        result = impute(content)
        assert np.isnan(result[1]).all()
        assert np.isnan(result[:, 1]).all()
        assert not np.isnan(result[np.ix_([0, 2], [0, 2])]).any()


def declare_bounds(store: sa.Engine, low: float | None = 0.0, high: float | None = 1.0) -> None:
    with transaction(store) as session:
        session.execute(sa.text("UPDATE metric SET lower = :low, upper = :high"), {"low": low, "high": high})


class TestLeaderboard:
    def board(self, store: sa.Engine, missing: Policy | None = None, **choices: Any) -> Leaderboard:
        with transaction(store, write=False) as session:
            return load_leaderboard(session, Selection(**({"benchmark": "b", "missing": missing} | choices)))

    @pytest.fixture
    def gappy(self, store: sa.Engine) -> sa.Engine:
        add_scores(store, Q, models=MODELS, tasks=["t", "t", "u", "u"])
        declare_bounds(store)
        return store

    def test_every_policy_ranks_as_it_reports(self, gappy: sa.Engine) -> None:
        excluded = {row.model: row for row in self.board(gappy).rows}
        assert (excluded["a"].rank, excluded["b"].rank, excluded["c"].rank) == (1.0, None, None)
        common = {row.model: row for row in self.board(gappy, "common", min_coverage=0.5).rows}
        assert {name: row.mean for name, row in common.items()} == {"a": 1.0, "b": 0.5, "c": 0.5}
        assert common["b"].coverage == 0.75
        assert common["b"].n == 2
        assert common["b"].rank == common["c"].rank == 2.5
        with pytest.raises(SelectionError, match="missing"):
            self.board(gappy, "fail")
        guessed = {row.model: row for row in self.board(gappy, "impute", min_coverage=0.5).rows}
        assert guessed["b"].mean == pytest.approx(np.clip(least_squares(Q), 0, 1)[1, 1] / 4 + 0.5)

    def test_bounds_unite_the_intervals_of_both_extremes(self, gappy: sa.Engine) -> None:
        bounds, worst = (self.board(gappy, name, min_coverage=0.5) for name in ("bounds", "worst"))
        open_row, low_row = (next(row for row in board.rows if row.model == "b") for board in (bounds, worst))
        assert (open_row.rank, open_row.n, open_row.mean) == (2, 3, pytest.approx(2 / 3))
        assert (open_row.worst_mean, open_row.best_mean) == (0.5, 0.75)
        assert (low_row.mean, low_row.low) == (0.5, open_row.low)
        assert bounds.missing == "bounds"
        assert bounds.leaders == ("a",)

    def test_models_named_need_only_share_prompts_among_themselves(self, gappy: sa.Engine) -> None:
        board = self.board(gappy, "common", models=("a", "b"), min_coverage=0.5)
        assert board.n_units == 3
        assert [row.model for row in board.rows] == ["a", "b"]

    def test_scores_of_tasks_have_the_same_policies(self, store: sa.Engine) -> None:
        add_task_scores(store, Q, models=MODELS, tasks=["s", "t", "u", "v"])
        assert [row.rank for row in self.board(store, "common", min_coverage=0.5).rows] == [1.0, 2.5, 2.5]
        with pytest.raises(SelectionError, match="of 4 tasks"):
            self.board(store, "fail")

    def test_an_unknown_field_of_clusters_is_answered_with_those_there_are(self, gappy: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match="task, split, none"):
            self.board(gappy, cluster="passage")

    def test_without_clusters_the_interval_is_the_plain_one(self, gappy: sa.Engine) -> None:
        row = self.board(gappy, cluster="none").rows[0]
        assert row.stderr_clustered is None
        assert row.stderr is not None
        assert 0 <= row.low < row.mean <= row.high <= 1


class TestChoice:
    @staticmethod
    def choose(store: sa.Engine, **choices: Any) -> Selection:
        options = {name: choices.pop(name) for name in ("default", "supported") if name in choices}
        with transaction(store, write=False) as session:
            selection = Selection(benchmark="b", **choices)
            return choose_policy(session, selection, **({"default": "bounds", "subject": "voting-rules"} | options))

    def test_the_default_is_explicit_before_data_are_loaded(self, sqlite_store: sa.Engine) -> None:
        add_scores(sqlite_store, Q, models=MODELS)
        declare_bounds(sqlite_store)
        assert self.choose(sqlite_store).missing == "bounds"
        assert self.choose(sqlite_store, default="common").as_json()["missing"] == "common"
        assert self.choose(sqlite_store, missing="fail").missing == "fail"

    def test_a_preferred_policy_is_replaced_where_it_cannot_be_used(self, sqlite_store: sa.Engine) -> None:
        add_scores(sqlite_store, Q, models=MODELS)
        assert self.choose(sqlite_store, preferred="worst").missing == "common"
        assert self.choose(sqlite_store, preferred="impute").missing == "impute"
        declare_bounds(sqlite_store)
        chosen = self.choose(sqlite_store, preferred="worst")
        assert (chosen.missing, chosen.preferred) == ("worst", None)
        assert self.choose(sqlite_store, preferred="worst", missing="fail").missing == "fail"
        assert self.choose(sqlite_store, preferred="worst", supported=("bounds", "common")).missing == "bounds"

    def test_without_bounds_of_the_metric_the_default_is_common(self, sqlite_store: sa.Engine) -> None:
        add_scores(sqlite_store, Q, models=MODELS)
        assert self.choose(sqlite_store).missing == "common"
        with pytest.raises(SelectionError, match="has no bounds"):
            self.choose(sqlite_store, missing="bounds")

    def test_a_table_without_bounds_of_the_metric_names_what_would_use_all_prompts(self) -> None:
        table, advice = np.array([[1.0, NAN], [0.0, 1.0]]), "declare the bounds of score: ingest a file again with"
        rule = MissingPolicy(name="common", min_coverage=0.5, metric="score")
        unbounded, bounded = (
            apply_missing_policy(table, policy, models=["a", "b"]).warnings[0]
            for policy in (rule, replace(rule, worst=0.0, best=1.0))
        )
        assert advice in unbounded
        assert advice not in bounded

    def test_an_unsupported_policy_is_an_error_that_names_those_that_are(self, sqlite_store: sa.Engine) -> None:
        add_scores(sqlite_store, Q, models=MODELS)
        with pytest.raises(SelectionError, match=r"voting-rules does not support --missing bounds.*: common, worst\."):
            self.choose(sqlite_store, missing="bounds", default="common", supported=("common", "worst"))

    @pytest.mark.parametrize("value", [-0.1, 1.1, NAN])
    def test_a_coverage_out_of_range_is_an_error(self, sqlite_store: sa.Engine, value: float) -> None:
        add_scores(sqlite_store, Q, models=MODELS)
        with pytest.raises(SelectionError, match="from 0 to 1"):
            self.choose(sqlite_store, min_coverage=value)
