"""Probabilities of the gold answers, with the question and without: which are found, and which are never mixed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_filter, add_scores

from tracker.database import transaction
from tracker.queries.filtering.reference_probabilities import KINDS, AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.selection import Selection
from tracker.queries.sql import tables

NAN = float("nan")
N, K = 6, 3
P = np.linspace(0.05, 0.95, N * K).reshape(N, K).round(4)
TASKS = ["x", "y"] * (N // 2)
BY_TASK = [0, 2, 4, 1, 3, 5]
LETTERS, LIKELIHOODS = KINDS["letters"], KINDS["likelihoods"]


def gold(store: sa.Engine, **choices: object) -> ReferenceProbabilities:
    with transaction(store, write=False) as session:
        return ReferenceProbabilities.load(session, Selection(benchmark="b", **({"metric": "accuracy"} | choices)))


def blind(store: sa.Engine, **choices: object) -> AnswerOnlyRuns:
    with transaction(store, write=False) as session:
        return AnswerOnlyRuns.load(session, Selection(benchmark="b", **({"metric": "accuracy"} | choices)))


@pytest.fixture
def scored(store: sa.Engine) -> sa.Engine:
    """Six prompts in two tasks by three models, on each engine in turn."""
    add_scores(store, np.ones((N, K)), tasks=TASKS)
    return store


@pytest.fixture
def small(sqlite_store: sa.Engine) -> sa.Engine:
    """The same on SQLite only."""
    add_scores(sqlite_store, np.ones((N, K)), tasks=TASKS)
    return sqlite_store


Adding = Callable[..., list[int]]


@pytest.fixture
def add() -> Adding:
    def put(store: sa.Engine, values: np.ndarray, metric: str, **how: object) -> list[int]:
        return add_scores(store, values, tasks=TASKS, metric=metric, **how)

    return put


class TestGoldProbabilities:
    def test_each_kind_is_a_matrix_of_its_own(self, scored: sa.Engine, add: Adding) -> None:
        runs = add(scored, P, LETTERS)
        add(scored, P[:, :1] / 2, LIKELIHOODS)
        result = gold(scored)
        assert list(result.kinds) == ["letters", "likelihoods"]
        letters, likelihoods = result.kinds["letters"], result.kinds["likelihoods"]
        assert (letters.metric, likelihoods.metric) == (LETTERS, LIKELIHOODS)
        assert np.array_equal(letters.Q, P[BY_TASK])
        assert np.array_equal(likelihoods.Q, P[BY_TASK, :1] / 2)
        assert (letters.models, likelihoods.models) == (("m0", "m1", "m2"), ("m0",))
        assert result.run_ids.tolist() == runs

    @pytest.mark.parametrize("kind", KINDS)
    def test_where_one_kind_is_stored_there_is_one(self, small: sa.Engine, add: Adding, kind: str) -> None:
        add(small, P, KINDS[kind])
        assert list(gold(small).kinds) == [kind]

    def test_where_none_is_stored_there_is_none(self, small: sa.Engine) -> None:
        result = gold(small)
        assert (result.kinds, result.run_ids.tolist()) == ({}, [])
        assert result.run_ids.dtype == np.int64

    def test_trials_are_averaged(self, small: sa.Engine, add: Adding) -> None:
        add(small, P, LETTERS)
        add(small, P / 2, LETTERS, trial=1)
        np.testing.assert_allclose(gold(small).kinds["letters"].Q, P[BY_TASK] * 0.75, rtol=1e-12)

    def test_they_are_of_the_runs_behind_the_scores(self, small: sa.Engine, add: Adding) -> None:
        add(small, P, LETTERS)
        add(small, np.ones((N, 1)), "accuracy", label="later")  # of m0: a later run, without probabilities
        assert gold(small).kinds["letters"].models == ("m1", "m2")
        add(small, P[:, :1] / 4, LETTERS, label="later")
        result = gold(small).kinds["letters"]
        assert result.Q[:, 0] == pytest.approx(P[BY_TASK, 0] / 4)

    def test_columns_are_labelled_as_those_of_the_scores(self, small: sa.Engine, add: Adding) -> None:
        add(small, P[:, :1], LETTERS)
        [later] = add(small, np.ones((N, 1)), "accuracy", label="later")
        result = gold(small, runs=(1, 2, later)).kinds["letters"]
        assert (result.models, result.run_ids.tolist()) == (("m0 (run 1)",), [1])

    def test_a_chosen_model_without_any_does_not_stand_in_the_method_of_others(
        self, small: sa.Engine, add: Adding
    ) -> None:
        add(small, P[:, :2], LETTERS)
        assert gold(small, models=("m1", "m2")).kinds["letters"].models == ("m1",)
        assert gold(small, models=("m2",)).kinds == {}

    def test_probabilities_of_other_tasks_or_of_dropped_prompts_are_none(self, small: sa.Engine, add: Adding) -> None:
        only_x = P.copy()
        only_x[1::2] = NAN
        add(small, only_x, LETTERS)
        assert gold(small, tasks=("y",)).kinds == {}
        assert gold(small, tasks=("x",)).kinds["letters"].n_prompts == 3
        assert gold(small, filter=add_filter(small, [False, True] * 3)).kinds == {}
        assert gold(small, filter=add_filter(small, [True, False] * 2)).kinds["letters"].n_prompts == 2

    def test_the_digest_reports_kinds_separate(self, small: sa.Engine, add: Adding) -> None:
        nothing = gold(small).digest
        add(small, P, LETTERS)
        letters = gold(small).digest
        add(small, P, LIKELIHOODS)
        both = gold(small).digest
        assert len({nothing, letters, both}) == 3
        assert gold(small).digest == both


class TestAnswerOnlyRuns:
    def test_scores_and_probabilities_come_of_the_latest_run_of_each_model(
        self, scored: sa.Engine, add: Adding
    ) -> None:
        add(scored, np.zeros((N, 2)), "accuracy", condition="answer_only")
        runs = add(scored, np.ones((N, 2)) / 4, "accuracy", condition="answer_only", label="later")
        add(scored, P[:, :2], LETTERS, condition="answer_only", label="later")
        add(scored, P / 2, LETTERS)
        result = blind(scored)
        assert result.problem == ""
        assert (result.scores.models, result.scores.condition) == (("m0", "m1"), "answer_only")
        assert (result.scores.Q == 0.25).all()
        assert np.array_equal(result.probabilities.kinds["letters"].Q, P[BY_TASK, :2])
        assert result.run_ids.tolist() == runs == result.probabilities.run_ids.tolist()

    def test_where_no_such_run_is_stored_it_reports_so(self, small: sa.Engine, add: Adding) -> None:
        add(small, P, LETTERS)
        result = blind(small)
        assert (result.scores, result.probabilities.kinds, result.run_ids.tolist()) == (None, {}, [])
        assert result.problem == "b has no answer-only runs (answer_only)."
        assert result.digest == blind(small).digest

    def test_runs_under_another_metric_are_not_used_but_reported(self, small: sa.Engine, add: Adding) -> None:
        add(small, np.zeros((N, 2)), "exact_match", condition="answer_only")
        result = blind(small)
        assert result.scores is None
        assert result.problem == (
            "The answer-only runs (answer_only) of b have scores under exact_match, not under accuracy."
        )

    def test_of_chosen_models_those_that_have_one_are_there(self, small: sa.Engine, add: Adding) -> None:
        add(small, np.zeros((N, 2)), "accuracy", condition="answer_only")
        assert blind(small, models=("m1", "m2")).scores.models == ("m1",)
        assert blind(small, runs=(2, 3)).scores.models == ("m1",)
        result = blind(small, models=("m2",))
        assert result.scores is None
        assert result.problem == ("None of the selected models has an answer-only run (answer_only) under accuracy.")

    def test_a_model_that_never_saw_the_questions_is_left_out(self, small: sa.Engine, add: Adding) -> None:
        add(small, np.zeros((N, 1)), "accuracy", condition="answer_only", models=["blind only"])
        assert blind(small).scores is None

    def test_other_tasks_variants_and_dates_do_not_count(self, small: sa.Engine, add: Adding) -> None:
        from datetime import UTC, datetime

        zeros = np.zeros((N, K))
        zeros[::2] = NAN  # none of task x
        add(small, zeros, "accuracy", condition="answer_only")
        assert blind(small, tasks=("x",)).scores is None
        assert blind(small, tasks=("x",)).problem == (
            "The answer-only runs (answer_only) have no scores for the selected prompts."
        )
        assert blind(small, tasks=("y",)).scores.n_prompts == 3
        assert blind(small, filter=add_filter(small, [True, False] * 3)).scores is None
        with transaction(small) as session:
            when = datetime(2027, 1, 1, tzinfo=UTC)
            blindly = tables.run.c.condition == "answer_only"
            session.execute(sa.update(tables.run).where(blindly).values(ingested=when))
        assert blind(small, as_of=datetime(2026, 6, 1, tzinfo=UTC)).scores is None

    def test_the_digest_changes_with_scores_and_probabilities(self, small: sa.Engine, add: Adding) -> None:
        digests = [blind(small).digest]
        add(small, np.zeros((N, 2)), "accuracy", condition="answer_only")
        digests.append(blind(small).digest)
        add(small, P[:, :2], LETTERS, condition="answer_only")
        digests.append(blind(small).digest)
        assert len(set(digests)) == 3
