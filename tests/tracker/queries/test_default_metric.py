"""A benchmark with several metrics has a default, which every query that names none uses and reports."""

from __future__ import annotations

import numpy as np
import sqlalchemy as sa
from filled_stores import add_scores, add_task_scores

from tracker.database import transaction
from tracker.queries.benchmark_scores import load_benchmark_scores
from tracker.queries.catalogue.metrics import list_benchmark_metrics
from tracker.queries.notices import get_default_metric, list_notices
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.history import list_histories
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.queries.task_matrix import load_task_matrix
from tracker.recording.metric_changes import set_default_metric

Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def check_default(store: sa.Engine, name: str) -> None:
    """Every query uses this metric, says so, and names the others."""
    with transaction(store, write=False) as session:
        board = load_leaderboard(session, Selection(benchmark="b"))
        assert board.metric == name
        (notice,) = list_notices(session)
        assert f"Metric of b: {name}, its default. Choose another with --metric NAME: " in notice
        assert notice in board.warnings
        assert get_default_metric(session, find_benchmark(session, "b").id) == name
        assert load_performance_matrix(session, "b").metric == name
        assert load_task_matrix(session, "b").metric == name
        assert load_benchmark_scores(session, "b").metric == name
        assert list_notices(session)[-1].count("--against b:NAME") == 1
        assert [row.metric for row in list_benchmark_metrics(session) if row.default and row.benchmark == "b"] == [name]
        assert list_histories(session, "m0")[0].metric == name


def test_the_first_metric_that_was_stored_is_the_default(store: sa.Engine) -> None:
    add_scores(store, Q, metric="other", benchmark="c")  # stored earlier, but in another benchmark
    add_scores(store, Q, metric="gold_probability")
    add_scores(store, Q, metric="loss")
    add_scores(store, Q, metric="accuracy", label="#2")
    add_scores(store, Q, metric="other", label="#3")
    check_default(store, "loss")


def test_the_chosen_metric_is_the_default(store: sa.Engine) -> None:
    add_scores(store, Q, metric="loss")
    add_scores(store, Q, metric="accuracy")
    with transaction(store) as session:
        set_default_metric(session, find_benchmark(session, "b"), "accuracy")
    check_default(store, "accuracy")


def test_a_metric_of_excluded_or_other_runs_only_is_not_the_default(store: sa.Engine) -> None:
    add_scores(store, Q, metric="hidden", status="hidden")
    add_scores(store, Q, metric="second", status="hidden", label="#2")
    add_scores(store, Q, metric="unseen", condition="answer_only")
    add_task_scores(store, np.ones((2, 1)), tasks=["law", "physics"], models=["m0"], metric="published")
    add_scores(store, Q, metric="first", label="#3")
    add_scores(store, Q, metric="second", label="#4")
    with transaction(store) as session:
        set_default_metric(session, find_benchmark(session, "b"), "hidden")
    with transaction(store, write=False) as session:
        assert load_leaderboard(session, Selection(benchmark="b")).metric == "first"
        assert [row.metric for row in list_benchmark_metrics(session) if row.default] == ["first"]


def test_nothing_is_reported_if_there_is_one_metric_or_one_is_named(store: sa.Engine) -> None:
    add_scores(store, Q)
    add_scores(store, Q, metric="gold_probability")
    with transaction(store, write=False) as session:
        assert load_performance_matrix(session, "b").metric == "accuracy"
        assert load_performance_matrix(session, "b", metric="gold_probability").metric == "gold_probability"
        assert list_notices(session) == ()


def test_a_query_of_prompts_ignores_a_default_with_scores_of_whole_tasks_only(store: sa.Engine) -> None:
    add_scores(store, Q, tasks=["law", "law", "physics"])
    add_task_scores(store, np.ones((2, 1)), tasks=["law", "physics"], models=["m0"], metric="published")
    with transaction(store) as session:
        set_default_metric(session, find_benchmark(session, "b"), "published")
    with transaction(store, write=False) as session:
        assert load_performance_matrix(session, "b").metric == "accuracy"
        assert load_leaderboard(session, Selection(benchmark="b")).metric == "published"
