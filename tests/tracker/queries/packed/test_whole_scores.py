"""Matrices without missing scores, all 0 or 1, which each engine reads in a way that is faster."""

from __future__ import annotations

import threading
from threading import Event

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tracker.database import connect
from tracker.queries.packed import gathered_scores, ordered_scores
from tracker.queries.packed.gathered_scores import read_whole
from tracker.queries.packed.ordered_scores import read_ordered
from tracker.queries.packed.stored_scores import read_stored
from tracker.queries.sql.arrow import open_reading, snapshot

VALUES = st.one_of(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0, 0.0, 1.0, 0.5, np.nan]))
SHAPES = st.tuples(st.integers(2, 4), st.integers(1, 3))
Q = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])


@pytest.fixture(autouse=True)
def _read_everything_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_scores, "MIN_GATHERED", 1)
    monkeypatch.setattr(ordered_scores, "MIN_ORDERED", 1)


def keys_of(store: sa.Engine, table: str, condition: str = "true") -> NDArray[np.int64]:
    with store.connect() as connection:
        keys = connection.exec_driver_sql(f"SELECT id FROM {table} WHERE {condition} ORDER BY id").scalars().all()
    return np.array(keys, dtype=np.int64)


def state_no_numbers(store: sa.Engine) -> None:
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET n_scores = 0")


def read_whole_of(store: sa.Engine, runs: list[int], prompts: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """What is read in one state of the store, after checking that it is so without one."""
    read = read_ordered if store.dialect.name == "sqlite" else read_whole
    with open_reading(store) as reading:
        one_by_one = read(reading, 1, runs, prompts)
    with snapshot(store, is_paired=True) as reading:
        whole = read(reading, 1, runs, prompts)
    np.testing.assert_equal(one_by_one, whole)
    return whole


def read_stored_of(store: sa.Engine, runs: list[int], prompts: NDArray[np.int64]) -> NDArray[np.float64]:
    with open_reading(store) as reading:
        return read_stored(reading, 1, runs, prompts).Q


class TestWhole:
    @pytest.mark.tampers
    @settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
    @given(data=st.data(), per_query=st.integers(1, 8), n_sampled=st.sampled_from([0, 20_000]))
    def test_read_so_if_and_only_if_every_cell_has_one_score_of_0_or_1(
        self, store: sa.Engine, data: st.DataObject, per_query: int, n_sampled: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gathered_scores, "SAMPLED_SCORES", n_sampled)
        monkeypatch.setattr(gathered_scores, "MAX_SAMPLED_PERCENT", 100.0)
        monkeypatch.setattr(gathered_scores, "SCORES_PER_QUERY", per_query)
        monkeypatch.setattr(ordered_scores, "BATCH_ROWS", per_query)
        stored = data.draw(SHAPES.flatmap(lambda shape: arrays(np.float64, shape, elements=VALUES)))
        name = f"b{len(keys_of(store, 'benchmark'))}"
        runs = data.draw(st.permutations(add_scores(store, stored, benchmark=name)))
        if data.draw(st.booleans(), label="another program left the numbers of scores empty"):
            state_no_numbers(store)
        column = {run: place for place, run in enumerate(sorted(runs))}
        task = f"SELECT task.id FROM task JOIN benchmark b ON b.id = benchmark_id WHERE b.name = '{name}'"
        prompts = keys_of(store, "prompt", f"task_id IN ({task})")
        prompts = prompts[data.draw(st.permutations(range(len(prompts))))]
        stored = stored[np.ix_(prompts - prompts.min(), [column[run] for run in runs])]
        is_one = read_whole_of(store, runs, prompts)
        if np.isin(stored, [0, 1]).all():
            np.testing.assert_array_equal(is_one, stored == 1)
        else:
            assert is_one is None
        np.testing.assert_array_equal(read_stored_of(store, runs, prompts), stored)

    @pytest.mark.parametrize("Q", [Q, 1 - Q])
    def test_consecutive_prompts_of_all_runs_alone(self, store: sa.Engine, Q: NDArray[np.float64]) -> None:
        runs, prompts = add_scores(store, Q), np.arange(1, 4)
        np.testing.assert_array_equal(read_whole_of(store, runs, prompts), Q == 1)
        np.testing.assert_array_equal(read_whole_of(store, runs, prompts[::-1]), Q[::-1] == 1)
        np.testing.assert_array_equal(read_whole_of(store, runs[1:], prompts), Q[:, 1:] == 1)
        assert read_whole_of(store, runs, prompts[:2]) is None
        assert read_whole_of(store, runs, np.array([1, 2, 4])) is None
        assert read_whole_of(store, runs, np.array([2, 3, 4])) is None
        assert read_whole_of(store, [*runs, 99], prompts) is None

    def test_second_trials_are_no_scores_of_their_own(self, store: sa.Engine) -> None:
        runs = add_scores(store, np.where([[1, 1], [1, 1], [1, 0]], Q, np.nan))
        add_scores(store, np.where([[0, 1], [0, 0], [0, 0]], Q, np.nan)[:, 1:], models=["m1"], trial=1)
        assert read_whole_of(store, runs, np.arange(1, 4)) is None

    @pytest.mark.tampers
    def test_scores_of_prompts_of_another_benchmark_are_none_of_these(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q)
        add_scores(store, Q, benchmark="c")
        with store.begin() as connection:
            connection.exec_driver_sql(f"UPDATE score SET prompt_id = 4 WHERE run_id = {runs[1]} AND prompt_id = 2")
        assert read_whole_of(store, runs, np.arange(1, 4)) is None

    def test_other_runs_of_the_benchmark_are_none_of_these(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q)
        further = add_scores(store, 1 - Q, condition="answer_only")
        np.testing.assert_array_equal(read_whole_of(store, runs, np.arange(1, 4)), Q == 1)
        np.testing.assert_array_equal(read_whole_of(store, further, np.arange(1, 4)), Q == 0)
        mixed = [further[1], runs[0]]
        np.testing.assert_array_equal(read_whole_of(store, mixed, np.arange(1, 4)), np.c_[1 - Q[:, 1], Q[:, 0]])

    def test_a_run_that_is_added_meanwhile_is_none_of_these(self, postgres_url: str) -> None:
        store = connect(postgres_url)
        runs = add_scores(store, Q)
        with snapshot(store) as reading:
            add_scores(store, 1 - Q, models=["m2", "m3"])
            np.testing.assert_array_equal(read_whole(reading, 1, runs, np.arange(1, 4)), Q == 1)
            np.testing.assert_array_equal(read_stored(reading, 1, runs, np.arange(1, 4)).Q, Q)
        np.testing.assert_array_equal(read_whole_of(store, runs, np.arange(1, 4)), Q == 1)
        store.dispose()

    def test_runs_whose_keys_are_far_from_each_other(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q)
        add_scores(store, np.tile(Q, 3), benchmark="c")
        last = add_scores(store, 1 - Q[:, :1], models=["m9"])
        assert last[0] - runs[0] + 1 == 3 * (1 + gathered_scores.MAX_UNUSED) - 3
        expected = np.c_[Q, 1 - Q[:, :1]]
        np.testing.assert_array_equal(read_whole_of(store, [*runs, *last], np.arange(1, 4)), expected)
        is_one = read_whole_of(store, [runs[0], *last], np.arange(1, 4))
        assert (is_one is None) == (store.dialect.name == "postgresql")
        np.testing.assert_array_equal(read_stored_of(store, [runs[0], *last], np.arange(1, 4)), expected[:, [0, 2]])


class TestOrdered:
    """SQLite: the run of a score follows from the order."""

    @pytest.mark.tampers
    @pytest.mark.parametrize("n_prompts", [1, 2])
    def test_trials_of_one_run_are_no_scores_of_another(self, sqlite_url: str, n_prompts: int) -> None:
        store, stored = connect(sqlite_url), np.array([[1.0, 0.0, np.nan], [0.0, 1.0, np.nan]])[:n_prompts]
        runs, prompts = add_scores(store, stored), np.arange(1, n_prompts + 1)
        add_scores(store, stored[:, 1:2], models=["m1"], trial=1)
        state_no_numbers(store)
        with open_reading(store) as reading:  # one after the other
            assert read_ordered(reading, 1, runs, prompts) is None
        assert read_whole_of(store, runs, prompts) is None
        np.testing.assert_array_equal(read_stored_of(store, runs, prompts), stored)
        store.dispose()

    @pytest.mark.tampers
    def test_prompts_with_negative_keys_are_no_others(self, sqlite_url: str) -> None:
        store = connect(sqlite_url)
        runs = add_scores(store, Q)
        with store.begin() as connection:
            columns = "task_id, occurrence, content_hash"
            connection.exec_driver_sql(
                f"INSERT INTO prompt (id, {columns}) SELECT -1, task_id, 0, 'x' FROM prompt WHERE id = 1"
            )
            connection.exec_driver_sql("UPDATE score SET prompt_id = -1 WHERE run_id = 2 AND prompt_id = 1")
        assert read_whole_of(store, runs, np.arange(1, 4)) is None
        expected = np.where([[0, 1], [0, 0], [0, 0]], np.nan, Q)
        np.testing.assert_array_equal(read_stored_of(store, runs, np.arange(1, 4)), expected)
        store.dispose()

    @pytest.mark.parametrize("batch_rows", [1, 2, 3, 7, 100])
    @pytest.mark.parametrize("bad", [None, 0, 5, 19])
    def test_batches_of_any_size(
        self, sqlite_url: str, batch_rows: int, bad: int | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ordered_scores, "BATCH_ROWS", batch_rows)
        store, stored = connect(sqlite_url), np.random.default_rng(0).integers(0, 2, size=(4, 5)).astype(float)
        if bad is not None:
            stored[bad % 4, bad // 4] = 0.5
        runs = add_scores(store, stored)
        is_one = read_whole_of(store, runs[::-1], np.array([3, 1, 2, 4]))
        if bad is None:
            np.testing.assert_array_equal(is_one, stored[[2, 0, 1, 3], ::-1] == 1)
        else:
            assert is_one is None
        np.testing.assert_array_equal(read_stored_of(store, runs, np.arange(1, 5)), stored)
        store.dispose()

    def test_an_error_of_the_other_thread_is_raised(self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        store = connect(sqlite_url)
        runs = add_scores(store, Q)

        def fail(*_: object) -> bool:
            if threading.current_thread() is not threading.main_thread():
                raise OSError("the disk is gone")
            return True

        monkeypatch.setattr(ordered_scores, "_read_runs", fail)
        with snapshot(store, is_paired=True) as reading, pytest.raises(OSError, match="the disk is gone"):
            read_ordered(reading, 1, runs, np.arange(1, 4))
        store.dispose()

    @pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
    def test_an_error_ends_the_other_thread(
        self, sqlite_url: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, has_ended = connect(sqlite_url), []
        runs = add_scores(store, Q)

        def fail(
            _reading: object, _metric: int, run_ids: list[int], _keys: object, _cells: object, ends: Event
        ) -> bool:
            if threading.current_thread() is not threading.main_thread():
                has_ended.append(ends.wait(30))
            elif run_ids != runs[:1]:
                raise error
            return True

        monkeypatch.setattr(ordered_scores, "_read_runs", fail)
        with snapshot(store, is_paired=True) as reading, pytest.raises(error):
            read_ordered(reading, 1, runs, np.arange(1, 4))
        assert has_ended == [True]
        store.dispose()
