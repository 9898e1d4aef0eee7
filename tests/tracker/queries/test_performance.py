"""Matrices: what is stored comes out, in a fixed order, on both engines."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import WHEN, add_scores, add_task_scores
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sqlalchemy.orm import Session

from tracker import schema
from tracker.database import connect, transaction
from tracker.errors import AmbiguousError, DatabaseError, NotFoundError, SelectionError
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.selection import Selection
from tracker.queries.sql.arrow import read_arrow
from tracker.queries.task_matrix import TaskMatrix, load_task_matrix

NAN = float("nan")
Q = np.array([[1.0, 0.0, 1.0], [0.0, NAN, 1.0], [1.0, 1.0, NAN], [0.5, 0.25, 0.0]])
TASKS = ["z", "a", "z", "a"]
BY_TASK = [1, 3, 0, 2]  # rows of Q in the order of the matrix


def matrix(store: sa.Engine, *arguments: object, **choices: object) -> PerformanceMatrix:
    with transaction(store, write=False) as session:
        return load_performance_matrix(session, *(arguments or ("b",)), **choices)


def tasks_of(store: sa.Engine, **choices: object) -> TaskMatrix:
    with transaction(store, write=False) as session:
        return load_task_matrix(session, "b", **choices)


class TestArrow:
    def test_a_query_gives_its_columns(self, store: sa.Engine) -> None:
        add_scores(store, Q, tasks=TASKS)
        table = read_arrow(store, "SELECT name, id FROM task WHERE name <> ? AND id < ? ORDER BY id", ("a", 100))
        assert table.to_pydict() == {"name": ["z"], "id": [1]}

    @pytest.mark.parametrize("give", [lambda e, c, s: e, lambda e, c, s: c, lambda e, c, s: s])
    def test_engine_connection_and_session_will_do(self, store: sa.Engine, give: object) -> None:
        with store.connect() as connection, Session(store) as session:
            assert read_arrow(give(store, connection, session), "SELECT 1 AS one").to_pydict() == {"one": [1]}

    def test_a_wrong_query_reports_what_the_engine_reports(self, store: sa.Engine) -> None:
        with pytest.raises(DatabaseError, match="nix"):
            read_arrow(store, "SELECT nix FROM task")

    def test_nothing_can_be_written(self, store: sa.Engine) -> None:
        with pytest.raises(DatabaseError, match=r"readonly|read-only"):
            read_arrow(store, "DELETE FROM database")
        assert read_arrow(store, "SELECT id FROM database").num_rows == 1

    def test_no_password_is_shown(self, postgres_url: str) -> None:
        url = sa.make_url(postgres_url).set(drivername="postgresql+psycopg", password="s3cret", port=1)
        with pytest.raises(DatabaseError) as error:
            read_arrow(sa.create_engine(url), "SELECT 1")
        assert "s3cret" not in str(error.value)


class TestMatrix:
    def test_what_was_stored_comes_out_by_task_and_model(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q, tasks=TASKS, models=["c", "B", "a"])
        result = matrix(store)
        assert result.models == ("B", "a", "c")
        assert result.run_ids.tolist() == [runs[1], runs[2], runs[0]]
        assert result.tasks.tolist() == ["a", "a", "z", "z"]
        np.testing.assert_array_equal(result.Q, Q[BY_TASK][:, [1, 2, 0]])
        assert result.Q.flags.c_contiguous
        assert result.Q.dtype == np.float64
        assert (result.benchmark, result.metric, result.condition) == ("b", "accuracy", "full")

    def test_inputs_of_analyses_load_themselves(self, store: sa.Engine) -> None:
        add_scores(store, Q)
        with transaction(store, write=False) as session:
            assert PerformanceMatrix.load(session, Selection(benchmark="b")).digest == matrix(store).digest
            assert TaskMatrix.load(session, Selection(benchmark="b")).digest == load_task_matrix(session, "b").digest

    def test_trials_are_averaged(self, store: sa.Engine) -> None:
        add_scores(store, Q)
        add_scores(store, np.where(np.isnan(Q), NAN, 1.0), trial=1)
        np.testing.assert_array_equal(matrix(store).Q, (Q + 1) / 2)

    def test_the_latest_complete_run_with_the_metric_is_used(self, store: sa.Engine) -> None:
        add_scores(store, Q)
        later = add_scores(store, Q[:, :1] * 0, label="#2")
        add_scores(store, Q[:, :1] * 0 + 1, label="#3", status="partial")
        add_scores(store, Q[:, :1] * 0 + 1, label="#4", metric="f1")
        result = matrix(store, metric="accuracy")
        assert result.run_ids[0] == later[0]
        np.testing.assert_array_equal(result.Q[:, 0], np.zeros(4))

    def test_the_past_can_be_requested(self, store: sa.Engine) -> None:
        first = add_scores(store, Q)
        add_scores(store, Q * 0, label="#2", ingested=WHEN + timedelta(days=2))
        for moment in (WHEN + timedelta(days=1), (WHEN + timedelta(days=1)).replace(tzinfo=None), WHEN):
            assert matrix(store, as_of=moment).run_ids.tolist() == first
        with pytest.raises(SelectionError, match="later date"):
            matrix(store, as_of=WHEN - timedelta(seconds=1))

    def test_passed_runs_are_used_whatever_their_condition(self, store: sa.Engine) -> None:
        first = add_scores(store, Q)
        blind = add_scores(store, Q * 0, condition="answer_only")
        result = matrix(store, runs=(first[1], blind[0], blind[1]))
        assert result.models == ("m0", f"m1 (run {first[1]})", f"m1 (run {blind[1]})")
        assert result.condition == "answer_only+full"

    def test_conditions_and_variants_are_kept_separate(self, store: sa.Engine) -> None:
        add_scores(store, Q)
        add_scores(store, Q * 0, condition="answer_only")
        add_scores(store, Q * 0 + 1, variant="shuffled")
        assert np.nansum(matrix(store, condition="answer_only").Q) == 0
        assert np.nanmin(matrix(store, variant="shuffled").Q) == 1
        assert np.nansum(matrix(store).Q) == np.nansum(Q)

    def test_models_and_tasks_can_be_chosen(self, store: sa.Engine) -> None:
        add_scores(store, Q, tasks=TASKS)
        with transaction(store) as session:
            session.add(schema.ModelAlias(name="first", model_id=1))
        result = matrix(store, models=("m2", "first"), tasks=("z",))
        assert result.models == ("m0", "m2")
        np.testing.assert_array_equal(result.Q, Q[[0, 2]][:, [0, 2]])

    def test_prompts_that_no_chosen_run_was_requested_are_no_rows(self, store: sa.Engine) -> None:
        add_scores(store, Q)
        add_scores(store, np.full((5, 1), NAN), models=["m0"])
        assert matrix(store).n_prompts == 4
        assert matrix(store, models=("m1",)).n_prompts == 3

    def test_revisions_of_a_benchmark_are_named(self, store: sa.Engine) -> None:
        add_scores(store, Q, revision="v1")
        assert matrix(store).benchmark == "b@v1"
        add_scores(store, Q * 0, revision="v2")
        assert np.nansum(matrix(store, "b@v2").Q) == 0
        with pytest.raises(AmbiguousError, match="b@v1, b@v2"):
            matrix(store)

    def test_equal_data_have_equal_digests_and_others_have_not(self, store: sa.Engine) -> None:
        add_scores(store, Q)
        assert matrix(store).digest == matrix(store).digest
        assert matrix(store).digest != matrix(store, models=("m0", "m1")).digest

    def test_both_engines_give_the_same(self, sqlite_url: str, postgres_url: str) -> None:
        rng = np.random.default_rng(0)
        scores = np.where(rng.random((40, 6)) < 0.1, NAN, rng.random((40, 6)))
        tasks = [f"{'äZa '[i % 4]}{i % 7}" for i in range(40)]
        result = []
        for url in (sqlite_url, postgres_url):
            engine = connect(url)
            for trial in range(3):
                add_scores(engine, scores + trial, tasks=tasks, models=["b", "A", "_", "É", "a", "0"], trial=trial)
            result.append((matrix(engine).digest, tasks_of(engine).digest))
            engine.dispose()
        assert result[0] == result[1]


class TestLaws:
    @settings(max_examples=25)
    @given(data=st.data())
    def test_any_matrix_survives_the_store(self, sqlite_template: Path, data: st.DataObject) -> None:
        shape = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 5)))
        values = st.one_of(st.just(NAN), st.floats(-1e300, 1e300, allow_subnormal=False))
        scores = data.draw(hnp.arrays(np.float64, shape, elements=values))
        scores[0] = 0.0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "store.db"
            path.write_bytes(sqlite_template.read_bytes())
            engine = connect(f"sqlite:///{path}")
            add_scores(engine, scores)
            result = matrix(engine).Q
            engine.dispose()
        np.testing.assert_array_equal(result, scores[~np.isnan(scores).all(axis=1)])


class TestTaskMatrix:
    def test_prompts_are_averaged_by_task(self, store: sa.Engine) -> None:
        add_scores(store, Q, tasks=TASKS)
        result = tasks_of(store)
        assert result.tasks == ("a", "z")
        np.testing.assert_array_equal(result.T, [[0.25, 0.25, 0.5], [1.0, 0.5, 1.0]])
        np.testing.assert_array_equal(result.n_prompts, [[2, 1, 2], [2, 2, 1]])

    def test_the_same_scores_on_other_prompts_have_the_same_mean(self, store: sa.Engine) -> None:
        scores = np.array([0.1, 0.2, 0.3, 0.7, 0.15, 0.1, 0.3, 0.2, 0.7, 0.05])
        shuffled = [scores, scores[::-1], np.roll(scores, 3), np.sort(scores)]
        assert len({float(np.nansum(item)) for item in shuffled} | {float(sum(entry)) for entry in shuffled}) > 1
        add_scores(store, np.stack(shuffled, axis=1))
        assert len(set(tasks_of(store).T.ravel().tolist())) == 1

    def test_published_scores_go_before_means(self, store: sa.Engine) -> None:
        add_scores(store, Q, tasks=TASKS)
        add_task_scores(store, np.array([[0.9, NAN], [NAN, 0.8]]), tasks=["a", "new"], models=["m0", "other"])
        result = tasks_of(store)
        assert result.tasks == ("a", "new", "z")
        assert result.models == ("m0", "m1", "m2", "other")
        np.testing.assert_array_equal(result.T, [[0.9, 0.25, 0.5, NAN], [NAN, NAN, NAN, 0.8], [1.0, 0.5, 1.0, NAN]])
        assert result.n_prompts[0, 0] == 100
        assert result.stderr[0, 0] == 0.01
        assert not result.is_complete
        assert result.complete().n_tasks == 0

    def test_tasks_can_be_chosen(self, store: sa.Engine) -> None:
        add_task_scores(store, np.array([[0.9, 0.1], [0.3, 0.8]]), tasks=["a", "b"], models=["x", "y"])
        result = tasks_of(store, tasks=("b",))
        np.testing.assert_array_equal(result.T, [[0.3, 0.8]])


class TestErrors:
    @pytest.fixture
    def store(self, sqlite_store: sa.Engine) -> sa.Engine:
        """Words do not depend on the engine."""
        return sqlite_store

    def test_an_empty_store_reports_how_to_begin(self, store: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match="suffrage ingest"):
            matrix(store)

    def test_a_wrong_name_is_met_with_the_right_ones(self, store: sa.Engine) -> None:
        add_scores(store, Q, tasks=TASKS)
        for choices, words in (
            ({"metric": "acuracy"}, "Did you mean 'accuracy'"),
            ({"models": ("m9",)}, "Known: m0, m1, m2"),
            ({"tasks": ("zz",)}, "No task 'zz'"),
            ({"runs": (99,)}, "No run '99' of b. Known: 1, 2, 3"),
        ):
            with pytest.raises(NotFoundError, match=words):
                matrix(store, **choices)

    def test_a_wrong_benchmark_is_met_with_the_right_one(self, store: sa.Engine) -> None:
        add_scores(store, Q, benchmark="mmlu_pro")
        with pytest.raises(NotFoundError, match="Did you mean 'mmlu_pro'"):
            matrix(store, "mmlu-pro")

    @pytest.mark.parametrize("status", ["partial", "hidden", "superseded"])
    def test_a_run_that_is_not_complete_is_used_only_by_its_key(self, store: sa.Engine, status: str) -> None:
        add_scores(store, Q * 0)
        aside = add_scores(store, Q, label="#2", status=status)
        assert not np.nan_to_num(matrix(store).Q).any()
        assert np.array_equal(matrix(store, runs=(aside[0],)).Q[:, 0], Q[:, 0], equal_nan=True)

    def test_a_condition_without_runs_is_met_with_those_that_have(self, store: sa.Engine) -> None:
        add_scores(store, Q)
        with pytest.raises(SelectionError, match=r"b has no run that is answer_only. Stored: full"):
            matrix(store, condition="answer_only")

    def test_a_leaderboard_has_no_prompts(self, store: sa.Engine) -> None:
        add_task_scores(store, np.array([[0.9]]), tasks=["a"], models=["x"])
        with pytest.raises(SelectionError, match="whole tasks only"):
            matrix(store)

    def test_a_benchmark_without_a_complete_run_reports_so(self, store: sa.Engine) -> None:
        add_scores(store, Q[:, :1], status="hidden")
        with pytest.raises(SelectionError, match=r"b has no complete runs: .* suffrage runs list --all --benchmark b"):
            matrix(store)

    def test_a_run_without_the_metric_is_refused(self, store: sa.Engine) -> None:
        first = add_scores(store, Q)
        second = add_scores(store, Q, label="#2", metric="f1")
        with pytest.raises(SelectionError, match=f"Run {second[0]} has no scores under accuracy"):
            matrix(store, runs=(first[0], second[0]), metric="accuracy")

    def test_a_benchmark_without_scores_reports_so(self, store: sa.Engine) -> None:
        with transaction(store) as session:
            session.add(schema.Benchmark(name="b"))
        with pytest.raises(SelectionError, match="has no scores yet"):
            matrix(store)
