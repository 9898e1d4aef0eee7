"""A limited or incomplete run never replaces a complete one, wherever a run of each model is chosen."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores, add_task_scores
from hypothesis import given
from hypothesis import strategies as st

from tracker.database import transaction
from tracker.exporting.exported_runs import select_exported_runs
from tracker.queries.findings.staleness import _LaterRuns
from tracker.queries.notices import list_notices
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.history import RunHistory
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.resolution import find_benchmark
from tracker.queries.run_choice import Coverage, choose_runs, measure_coverage
from tracker.queries.selection import Selection
from tracker.queries.task_matrix import load_task_matrix

Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
LIMITED = np.array([[0.0], [0.0], [np.nan], [np.nan]])
TASKS = ["law", "law", "physics", "physics"]
COVERAGE = st.builds(lambda n: Coverage(share=float(n), n_prompts=n), st.integers(0, 4))


class TestLaws:
    """The rule itself."""

    @given(st.lists(COVERAGE, min_size=1, max_size=6))
    def test_no_run_covers_more_and_no_later_one_as_much(self, coverages: list[Coverage]) -> None:
        by_run = dict(enumerate(coverages, start=1))
        chosen = choose_runs({"m": list(by_run)}, by_run)["m"]
        assert all(by_run[run] < by_run[chosen] or (by_run[run] == by_run[chosen] and run <= chosen) for run in by_run)


@pytest.mark.parametrize("limited", [LIMITED, np.array([[0.0], [0.0], [0.0], [np.nan]])])
def test_every_query_uses_the_complete_run(store: sa.Engine, limited: np.ndarray) -> None:
    complete = add_scores(store, Q, tasks=TASKS)
    later = add_scores(store, limited, tasks=TASKS, label="#2")[0]
    selection = Selection(benchmark="b")
    with transaction(store, write=False) as session:
        board = load_leaderboard(session, selection)
        assert sorted(row.run_id for row in board.rows) == complete
        assert all(row.rank is not None for row in board.rows)
        assert load_performance_matrix(session, selection).run_ids.tolist() == complete
        assert load_task_matrix(session, selection).run_ids.tolist() == complete
        assert [
            run.id for run in select_exported_runs(session, find_benchmark(session, "b"), selection).runs
        ] == complete
        assert session.scalars(sa.text("SELECT run_id FROM leaderboard ORDER BY run_id")).all() == complete
        assert _LaterRuns(session, complete).of(complete[0], "accuracy") is None
        (notice,) = list_notices(session)
        n = int(np.isfinite(limited).sum())
        assert f"m0: run {complete[0]} with 4 prompts, not run {later} with {n} prompts" in notice
        assert notice in board.warnings
        assert f"suffrage runs hide {complete[0]}" in notice


def test_a_run_that_is_named_is_used(store: sa.Engine) -> None:
    first = add_scores(store, Q)
    later = add_scores(store, LIMITED, label="#2")[0]
    with transaction(store, write=False) as session:
        runs = load_performance_matrix(session, Selection(benchmark="b", runs=(later, first[1]))).run_ids.tolist()
        assert runs == [later, first[1]]
        assert list_notices(session) == ()


def test_a_later_run_with_as_many_prompts_replaces_the_earlier_one_in_silence(store: sa.Engine) -> None:
    first = add_scores(store, Q)
    later = add_scores(store, 1 - Q[:, :1], label="#2")[0]
    with transaction(store, write=False) as session:
        assert load_performance_matrix(session, "b").run_ids.tolist() == [later, first[1]]
        assert _LaterRuns(session, first).of(first[0], "accuracy") == later
        assert list_notices(session) == ()


def test_the_history_of_a_model_has_all_runs(store: sa.Engine) -> None:
    add_scores(store, Q)
    add_scores(store, LIMITED, label="#2")
    with transaction(store, write=False) as session:
        history = RunHistory.load(session, Selection(benchmark="b", models=("m0",)))
        assert len(history.runs) == 2
        assert list_notices(session) == ()


def test_a_task_with_a_published_score_is_covered_whole(store: sa.Engine) -> None:
    (published,) = add_task_scores(store, np.array([[0.5], [0.6]]), tasks=["law", "physics"], models=["m0"])
    (some,) = add_scores(store, LIMITED, tasks=TASKS, label="#2")
    (more,) = add_scores(store, Q[:, :1], tasks=TASKS, label="#3")
    with transaction(store, write=False) as session:
        coverage = measure_coverage(session, 1, [published, some, more], by_task=True)
        assert {run: (part.share, part.n_prompts) for run, part in coverage.items()} == {
            published: (2.0, 0),
            some: (1.0, 2),
            more: (2.0, 4),
        }
        assert load_task_matrix(session, "b").run_ids.tolist() == [more]
