"""What missing scores count as, policy by policy."""

from __future__ import annotations

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
from tracker.queries.ranking.missing import MissingPolicy, apply_missing_policy
from tracker.queries.selection import Selection
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


class TestPolicies:
    def test_unranked_changes_nothing(self) -> None:
        filled = apply_missing_policy(Q, MissingPolicy(name="unranked"), models=MODELS)
        assert filled.Q is Q
        assert filled.kept.all()
        assert filled.warnings == ()

    def test_fail_names_who_lacks_what_and_the_methods_out(self) -> None:
        with pytest.raises(SelectionError, match=r"of 4 prompts: b 1, c 1.*--models.*--missing complete"):
            apply_missing_policy(Q, MissingPolicy(name="fail"), models=MODELS)

    def test_complete_keeps_the_rows_of_those_shown_only(self) -> None:
        complete = MissingPolicy(name="complete")
        assert apply_missing_policy(Q, complete, models=MODELS).kept.tolist() == [
            True,
            False,
            False,
            True,
        ]
        is_ranked = np.array([True, False, True])
        filled = apply_missing_policy(Q, MissingPolicy(name="complete"), models=MODELS, is_ranked=is_ranked)
        assert filled.kept.tolist() == [True, True, False, True]
        assert "3 of 4 prompts" in filled.warnings[0]

    def test_worst_counts_as_the_bound_that_is_bad_in_this_metric(self) -> None:
        assert apply_missing_policy(Q, MissingPolicy(name="worst", worst=0.0), models=MODELS).Q[1, 1] == 0.0
        assert apply_missing_policy(Q, MissingPolicy(name="worst", worst=7.0), models=MODELS).Q[2, 2] == 7.0
        with pytest.raises(SelectionError, match="--bounds"):
            apply_missing_policy(Q, MissingPolicy(name="worst"), models=MODELS)

    def test_imputed_scores_stay_within_the_bounds_and_a_warning_reports_they_are_guesses(self) -> None:
        steep = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, NAN]])
        filled = apply_missing_policy(steep, MissingPolicy(name="impute", worst=0.0, best=1.0), models=("a", "b"))
        assert filled.Q[2, 1] == 1.0
        assert impute(steep)[2, 1] == pytest.approx(1.5)
        assert "imputed" in filled.warnings[0]

    def test_without_gaps_every_policy_leaves_the_scores_as_they_are(self) -> None:
        whole = np.nan_to_num(Q)
        for policy in ("unranked", "fail", "complete", "worst", "impute"):
            filled = apply_missing_policy(whole, MissingPolicy(name=policy), models=MODELS)
            assert filled.Q is whole
            assert filled.warnings == ()

    def test_where_no_row_is_complete_the_error_reports_whom_to_leave_out(self) -> None:
        gaps = np.array([[1.0, NAN], [NAN, 1.0]])
        with pytest.raises(SelectionError, match="Leave those models out with --models"):
            apply_missing_policy(gaps, MissingPolicy(name="complete"), models=("a", "b"))


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


class TestLeaderboard:
    def board(self, store: sa.Engine, missing: str = "unranked", **choices: object) -> Leaderboard:
        with transaction(store, write=False) as session:
            return load_leaderboard(session, Selection(benchmark="b", **choices), missing)

    @pytest.fixture
    def gappy(self, store: sa.Engine) -> sa.Engine:
        add_scores(store, Q, models=MODELS, tasks=["t", "t", "u", "u"])
        return store

    def test_every_policy_ranks_as_it_reports(self, gappy: sa.Engine) -> None:
        plain = {row.model: row for row in self.board(gappy).rows}
        assert (plain["a"].rank, plain["b"].rank, plain["c"].rank) == (1.0, None, None)
        complete = {row.model: row for row in self.board(gappy, "complete").rows}
        assert {name: row.mean for name, row in complete.items()} == {"a": 1.0, "b": 0.5, "c": 0.5}
        assert complete["b"].coverage == 0.75
        assert complete["b"].n == 2
        assert complete["b"].rank == complete["c"].rank == 2.5
        with pytest.raises(SelectionError, match="missing"):
            self.board(gappy, "fail")
        guessed = {row.model: row for row in self.board(gappy, "impute").rows}
        assert guessed["b"].mean == pytest.approx(np.clip(least_squares(Q), 0, 1)[1, 1] / 4 + 0.5)

    def test_models_named_need_only_be_complete_among_themselves(self, gappy: sa.Engine) -> None:
        board = self.board(gappy, "complete", models=("a", "b"))
        assert board.n_units == 3
        assert [row.model for row in board.rows] == ["a", "b"]

    def test_scores_of_tasks_have_the_same_policies(self, store: sa.Engine) -> None:
        add_task_scores(store, Q, models=MODELS, tasks=["s", "t", "u", "v"])
        assert [row.rank for row in self.board(store, "complete").rows] == [1.0, 2.5, 2.5]
        with pytest.raises(SelectionError, match="of 4 tasks"):
            self.board(store, "fail")

    def test_an_unknown_field_of_clusters_is_answered_with_those_there_are(self, gappy: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match="task, split, none"):
            self.board(gappy, cluster="passage")

    def test_without_clusters_the_interval_is_the_plain_one(self, gappy: sa.Engine) -> None:
        row = self.board(gappy, cluster="none").rows[0]
        assert row.stderr_clustered is None
        assert row.stderr is not None
        assert row.low == pytest.approx(row.mean - 3.182446305284263 * row.stderr)
