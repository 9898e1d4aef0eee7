"""Scores that PostgreSQL gathers by their value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tracker.database import connect
from tracker.queries.packed import gathered_scores
from tracker.queries.packed.gathered_scores import read_rarer, split_keys
from tracker.queries.packed.stored_scores import read_stored
from tracker.queries.sql.arrow import open_reading

VALUES = st.one_of(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0, 0.0, 1.0, 0.5, np.nan]))
SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 3))
Q = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])


@pytest.fixture
def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[sa.Engine]:
    monkeypatch.setattr(gathered_scores, "MIN_GATHERED", 1)
    engine = connect(postgres_url)
    yield engine
    engine.dispose()


def keys_of(store: sa.Engine, table: str, condition: str = "true") -> NDArray[np.int64]:
    with store.connect() as connection:
        keys = connection.exec_driver_sql(f"SELECT id FROM {table} WHERE {condition} ORDER BY id").scalars().all()
    return np.array(keys, dtype=np.int64)


def rarer_cells(
    store: sa.Engine, runs: list[int], prompts: NDArray[np.int64]
) -> tuple[int, set[tuple[int, int]]] | None:
    with open_reading(store) as reading:
        rarer = read_rarer(reading, 1, runs, prompts)
        if rarer is None:
            return None
        parts = [part for keys in rarer[1] for part in split_keys(keys)]
    return rarer[0], {
        (run, prompt) for pair in parts for run, prompt in zip(*map(np.ndarray.tolist, pair), strict=True)
    }


def read_stored_of(store: sa.Engine, runs: list[int], prompts: NDArray[np.int64]) -> NDArray[np.float64]:
    with open_reading(store) as reading:
        return read_stored(reading, 1, runs, prompts).Q


class TestRarer:
    @settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
    @given(data=st.data(), per_query=st.integers(1, 8))
    def test_gathered_if_and_only_if_every_cell_has_one_score_of_0_or_1(
        self, store: sa.Engine, data: st.DataObject, per_query: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gathered_scores, "SCORES_PER_QUERY", per_query)
        stored = data.draw(SHAPES.flatmap(lambda shape: arrays(np.float64, shape, elements=VALUES)))
        name = f"b{len(keys_of(store, 'benchmark'))}"
        runs = data.draw(st.permutations(add_scores(store, stored, benchmark=name)))
        column = {run: place for place, run in enumerate(sorted(runs))}
        task = f"SELECT task.id FROM task JOIN benchmark b ON b.id = benchmark_id WHERE b.name = '{name}'"
        prompts = keys_of(store, "prompt", f"task_id IN ({task})")
        gathered = rarer_cells(store, runs, prompts)
        is_whole = bool(np.isin(stored, [0, 1]).all())
        assert (gathered is not None) == is_whole
        if gathered is not None:
            value, cells = gathered
            expected = np.argwhere(stored[:, [column[run] for run in runs]] == value).tolist()
            assert cells == {(runs[j], prompts[i]) for i, j in expected}
        np.testing.assert_array_equal(read_stored_of(store, runs, prompts), stored[:, [column[run] for run in runs]])

    @pytest.mark.parametrize("Q", [Q, 1 - Q])
    def test_consecutive_prompts_of_all_runs_alone(self, store: sa.Engine, Q: NDArray[np.float64]) -> None:
        runs, prompts = add_scores(store, Q), np.arange(1, 4)
        assert rarer_cells(store, runs, prompts) is not None
        assert rarer_cells(store, runs, prompts[::-1]) is not None
        assert rarer_cells(store, runs[1:], prompts) is not None
        assert rarer_cells(store, runs, prompts[:2]) is None
        assert rarer_cells(store, runs, np.array([1, 2, 4])) is None
        assert rarer_cells(store, runs, np.array([2, 3, 4])) is None
        assert rarer_cells(store, [*runs, 99], prompts) is None

    def test_second_trials_are_no_scores_of_their_own(self, store: sa.Engine) -> None:
        runs = add_scores(store, np.where([[1, 1], [1, 1], [1, 0]], Q, np.nan))
        add_scores(store, np.where([[0, 1], [0, 0], [0, 0]], Q, np.nan)[:, 1:], models=["m1"], trial=1)
        assert rarer_cells(store, runs, np.arange(1, 4)) is None

    @pytest.mark.tampers
    def test_scores_of_prompts_of_another_benchmark_are_none_of_these(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q)
        add_scores(store, Q, benchmark="c")
        with store.begin() as connection:
            connection.exec_driver_sql(f"UPDATE score SET prompt_id = 4 WHERE run_id = {runs[1]} AND prompt_id = 2")
        assert rarer_cells(store, runs, np.arange(1, 4)) is None
