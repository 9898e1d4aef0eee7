"""Splits: those that a selection names, and the rule for a selection that names none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores, add_task_scores
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from source_tree import ROOT

from tracker.database import connect, transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.answers import load_answers
from tracker.queries.findings.staleness import list_stale_findings
from tracker.queries.notices import list_notices
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.prompts import load_prompts
from tracker.queries.ranking.history import RunHistory
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.splits.choice import rank_splits
from tracker.queries.task_matrix import load_task_matrix
from tracker.recording.pipeline import run_analysis

NAN = float("nan")
SPLITS = ["test"] * 4 + ["validation"] * 2 + [None]
TASKS = ["x", "x", "y", "y", "x", "y", "x"]
Q = np.array(
    [[1, 0, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [NAN, NAN, 1], [NAN, NAN, 0], [NAN, NAN, NAN]], dtype=np.float64
)  # three models on the test prompts; the last one also on the validation prompts


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    engine = connect(f"sqlite:///{tmp_path_factory.mktemp('splits') / 'store.db'}")
    add_scores(engine, Q, tasks=TASKS, splits=SPLITS)
    yield engine
    engine.dispose()


def load(store: sa.Engine, **choices: object) -> tuple[PerformanceMatrix, tuple[str, ...]]:
    """The matrix of a selection, and the notices about it."""
    with transaction(store, write=False) as session:
        return load_performance_matrix(session, Selection(benchmark="b", **choices)), list_notices(session)


class TestDefault:
    def test_scores_of_one_model_in_another_split_take_no_rank_away(self, scored: sa.Engine) -> None:
        with transaction(scored, write=False) as session:
            board = load_leaderboard(session, Selection(benchmark="b"))
        assert {row.model: (row.rank, row.n) for row in board.rows} == {"m0": (1, 4), "m1": (3, 4), "m2": (2, 4)}

    def test_a_notice_names_the_split_the_others_and_the_option(self, scored: sa.Engine) -> None:
        matrix, notices = load(scored)
        assert matrix.n_prompts == 4
        assert notices == (
            "Split of b: test, with scores of 3 of 3 models. Not used: validation (2 prompts, 1 model). "
            "Select others with --split validation or --split all.",
        )
        assert notices[0] in (ROOT / "docs/how-to/datasets.md").read_text()

    def test_every_input_uses_the_same_prompts(self, scored: sa.Engine) -> None:
        with transaction(scored, write=False) as session:
            selection = Selection(benchmark="b")
            counts = load_task_matrix(session, selection).n_prompts
            answers = load_answers(session, selection)
            history = RunHistory.load(session, selection)
        assert counts.tolist() == [[2, 2, 2], [2, 2, 2]]
        assert len(answers.prompt_ids) == history.scores.n_prompts == 4

    def test_models_measured_only_elsewhere_are_named(self, sqlite_store: sa.Engine) -> None:
        scores = np.column_stack([Q, [NAN, NAN, NAN, NAN, 1, 1, NAN]])
        add_scores(sqlite_store, scores, splits=SPLITS)
        assert "Without scores there: m3." in load(sqlite_store)[1][0]
        matrix, notices = load(sqlite_store, models=("m3",))
        assert (matrix.models, matrix.n_prompts, notices) == (("m3",), 2, ())

    def test_an_earlier_run_in_the_split_is_used(self, sqlite_store: sa.Engine) -> None:
        """The latest run of the first model is of another split."""
        test = np.where(np.arange(7)[:, None] < 4, np.nan_to_num(Q), NAN)
        runs = add_scores(sqlite_store, test, splits=SPLITS)
        elsewhere = np.where(np.arange(7)[:, None] >= 4, np.ones((7, 1)), NAN)
        add_scores(sqlite_store, elsewhere, models=["m0"], label="validation")
        matrix, _ = load(sqlite_store)
        assert (matrix.run_ids.tolist(), matrix.n_prompts) == (runs, 4)

    @pytest.mark.parametrize("split", [(), ("test",), ("all",)])
    def test_a_later_run_of_another_split_makes_a_finding_stale_only_where_it_is_used(
        self, sqlite_store: sa.Engine, split: tuple[str, ...]
    ) -> None:
        splits = ["test", "test", "validation", "validation", "validation", None]
        is_test = np.arange(6)[:, None] < 2
        scores = np.array([[1, 0, 1], [0, 1, 1]] + [[0, 1, 0]] * 4, dtype=np.float64)
        add_scores(sqlite_store, np.where(is_test, scores, NAN), splits=splits)
        finding = run_analysis(sqlite_store, "rank-intervals", Selection(benchmark="b", split=split)).finding_id
        (later,) = add_scores(sqlite_store, np.where(is_test, NAN, scores)[:, :1], models=["m0"], label="validation")
        matrix, _ = load(sqlite_store, split=split)
        with transaction(sqlite_store, write=False) as session:
            is_stale = finding in list_stale_findings(session)
        assert is_stale == (later in matrix.run_ids.tolist()) == (split == ("all",))

    def test_splits_that_all_models_cover_are_used_together(self, sqlite_store: sa.Engine) -> None:
        add_scores(sqlite_store, np.nan_to_num(Q), splits=SPLITS)
        matrix, notices = load(sqlite_store)
        assert (matrix.n_prompts, notices) == (7, ())


class TestExplicit:
    @pytest.mark.parametrize(
        ("split", "n_prompts"), [(("test",), 4), (("validation",), 2), (("test", "validation"), 6), (("all",), 6)]
    )
    def test_prompts_of_the_splits_are_used_without_a_notice(
        self, scored: sa.Engine, split: tuple[str, ...], n_prompts: int
    ) -> None:
        matrix, notices = load(scored, split=split)
        assert (matrix.n_prompts, notices) == (n_prompts, ())

    def test_only_models_with_scores_there_are_columns(self, scored: sa.Engine) -> None:
        assert load(scored, split=("validation",))[0].models == ("m2",)
        with transaction(scored, write=False) as session:
            assert load_task_matrix(session, Selection(benchmark="b", split=("validation",))).models == ("m2",)

    def test_prompts_without_a_split_are_unknown(self, scored: sa.Engine) -> None:
        with transaction(scored, write=False) as session:
            assert len(load_prompts(session, Selection(benchmark="b", split=("unknown",))).prompt_ids) == 1
            assert len(load_prompts(session, Selection(benchmark="b", split=("unknown", "test"))).prompt_ids) == 5
        with pytest.raises(SelectionError, match="in split unknown"):
            load(scored, split=("unknown",))

    def test_runs_by_key_keep_their_columns(self, scored: sa.Engine) -> None:
        matrix, _ = load(scored, split=("validation",), runs=(1, 3))
        assert np.isnan(matrix.Q[:, 0]).all()

    def test_an_unknown_name_lists_the_splits(self, scored: sa.Engine) -> None:
        with pytest.raises(NotFoundError) as error:
            load(scored, split=("dev",))
        assert list(error.value.known) == ["test", "unknown", "validation", "all"]

    def test_scores_of_whole_tasks_have_no_split(self, sqlite_store: sa.Engine) -> None:
        add_task_scores(sqlite_store, np.ones((2, 2)), tasks=["x", "y"], models=["a", "b"])
        with transaction(sqlite_store, write=False) as session, pytest.raises(SelectionError, match="Leave --filter"):
            load_leaderboard(session, Selection(benchmark="b", split=("test",)))


class TestRule:
    @pytest.mark.parametrize(
        ("counts", "names", "chosen"),
        [
            ([[100, 30]] + [[100, 0]] * 19, ["test", "validation"], [0]),
            ([[100, 5]] + [[100, 30]] * 19, ["test", "validation"], [0]),  # less than half of a split: not covered
            ([[100, 30]] * 5, ["test", "validation"], [0, 1]),
            ([[9, 0]] * 2 + [[0, 99]] * 2, ["test", "validation"], [0]),  # a tie: test
            ([[9, 0]] * 2 + [[0, 99]] * 2, ["dev", "validation"], [1]),  # a tie without test: more scores
            ([[9, 9, 0]] * 3 + [[0, 0, 9]] * 2, ["a", "b", "c"], [0, 1]),
        ],
    )
    def test_examples(self, counts: list[list[int]], names: list[str], chosen: list[int]) -> None:
        assert rank_splits(np.array(counts), names) == chosen

    @given(hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.integers(0, 9)))
    def test_no_split_is_covered_by_more_models_and_the_same_models_cover_every_chosen_one(
        self, counts: np.ndarray
    ) -> None:
        counts[0] = np.maximum(counts[0], 1)
        names = [f"s{i}" for i in range(counts.shape[1])]
        covers = (counts > 0) & (2 * counts >= counts.max(axis=0))
        chosen = rank_splits(counts, names)
        assert (covers[:, chosen].sum(axis=0) == covers.sum(axis=0).max()).all()
        assert (covers[:, chosen] == covers[:, chosen[:1]]).all()
