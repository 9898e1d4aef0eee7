"""Arrays that a server keeps are those of the store, and no selection reads them again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tracker.database import transaction
from tracker.queries import scores
from tracker.queries.clusters import Clusters
from tracker.queries.packed.compact_scores import NO_SCORE, CompactScores, make_compact
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.sql.kept_reads import MAX_CELLS, keep_reads

NAN = float("nan")
Q = np.array([[1.0, 0.0, 1.0], [0.0, NAN, 1.0], [1.0, 1.0, NAN], [1.0, 0.0, 0.0]])
TASKS, SPLITS = ["z", "a", "z", "a"], ["test", "test", "dev", None]
SELECTIONS = [
    Selection(benchmark="b"),
    Selection(benchmark="b", models=("m2", "m0")),
    Selection(benchmark="b", tasks=("a",)),
    Selection(benchmark="b", split=("test",)),
    Selection(benchmark="b", split=("unknown", "dev")),
    Selection(benchmark="b", min_coverage=0.5),
    Selection(benchmark="b", missing="worst", task_effects="none"),
]
VALUES = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 0.5, NAN]), st.floats())


class Kept(dict[Hashable, Any]):
    """Values that are never dropped."""

    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:  # type: ignore[override]
        if key not in self:
            self[key] = compute()
        return self[key]


def load_all(engine: sa.Engine) -> list[Any]:
    """Everything that a page loads for each selection, as plain values."""
    loaded = []
    for selection in SELECTIONS:
        with transaction(engine, write=False) as session:
            matrix = load_performance_matrix(session, replace(selection, missing=None))
            loaded += [matrix.digest, matrix.n_trials, Clusters.load(session, selection).digest]
            loaded.append(replace(load_leaderboard(session, selection, n_resamples=0), scores=None))
    return loaded


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("factor", [1.0, 0.1])
def test_kept_values_are_those_of_the_store(store: sa.Engine, trials: int, factor: float) -> None:
    for trial in range(trials):
        add_scores(store, factor * np.roll(Q, trial, axis=0), tasks=TASKS, splits=SPLITS, trial=trial)
    add_scores(store, Q[:, :1], models=["elsewhere"], benchmark="c")
    with transaction(store) as session:
        session.execute(sa.update(tables.metric).values(lower=0.0, upper=1.0))
    kept = Kept()
    keeping = keep_reads(store, kept)
    expected = load_all(store)
    assert load_all(keeping) == expected
    assert {type(value) for [value] in find_scores(kept)} == {CompactScores}
    assert load_all(keeping) == expected


def find_scores(kept: Kept) -> list[Any]:
    return [value for key, value in kept.items() if isinstance(key, tuple) and key[0] == "compact_scores"]


def test_no_selection_reads_scores_again(store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    add_scores(store, Q, tasks=TASKS)
    keeping = keep_reads(store, Kept())
    load_all_of = [Selection(benchmark="b"), *(Selection(benchmark="b", min_coverage=n / 10) for n in range(1, 10))]
    with transaction(store, write=False) as session:
        expected = [load_leaderboard(session, selection, n_resamples=0).rows for selection in load_all_of]
    with transaction(keeping, write=False) as session:
        load_leaderboard(session, load_all_of[0], n_resamples=0)
        for name in ("read_stored", "read_arrow"):
            monkeypatch.setattr(scores, name, lambda *_: pytest.fail("scores or prompts were read again"))
        assert [load_leaderboard(session, selection, n_resamples=0).rows for selection in load_all_of] == expected
    assert any(expected)


def test_large_benchmarks_are_not_kept(store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    add_scores(store, Q, tasks=TASKS)
    monkeypatch.setattr(scores, "MAX_CELLS", Q.size - 1)
    kept = Kept()
    with transaction(keep_reads(store, kept), write=False) as session:
        loaded = load_performance_matrix(session, "b")
    with transaction(store, write=False) as session:
        expected = load_performance_matrix(session, "b")
    assert loaded.digest == expected.digest
    assert find_scores(kept) == [(None,)]


class TestLaws:
    @given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=5), elements=VALUES))
    def test_every_score_is_exact(self, Q: NDArray[np.float64]) -> None:
        Q = np.where(np.isnan(Q), np.nan, Q)
        compact = self.make(Q)
        scores_of_part, n_trials = compact.take(list(range(Q.shape[1])), np.arange(len(Q)))
        assert scores_of_part.tobytes() == Q.tobytes()
        assert n_trials == 1

    @given(hnp.arrays(np.int64, (4, 3), elements=st.integers(-300, 300)), st.permutations(range(4)))
    def test_rows_and_columns_may_have_any_order(self, whole: NDArray[np.int64], rows: list[int]) -> None:
        Q = whole.astype(np.float64)
        scores_of_part, _ = self.make(Q).take([2, 0], np.array(rows))
        assert np.array_equal(scores_of_part, Q[np.ix_(rows, [2, 0])])

    def make(self, Q: NDArray[np.float64]) -> CompactScores:
        rows, columns = (np.arange(size) for size in Q.shape)
        return CompactScores(run_ids=columns, prompt_ids=rows, values=make_compact(Q), counts=None)

    def test_types_are_as_small_as_they_can_be(self) -> None:
        assert make_compact(np.array([[1.0, NAN, -127.0, 127.0]])).dtype == np.int8
        assert make_compact(np.array([[float(NO_SCORE)]])).dtype == np.float32
        assert make_compact(np.array([[0.5, NAN, -0.0]])).dtype == np.float32
        assert make_compact(np.array([[0.1]])).dtype == np.float64
        assert MAX_CELLS >= 12_032 * 29
