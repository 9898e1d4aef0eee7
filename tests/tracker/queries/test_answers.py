"""What models answered, as arrays: which extraction and trial counts, and what is no answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_filter, add_scores
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracker import schema
from tracker.database import transaction
from tracker.queries.answers import AnswerMatrix, load_answers
from tracker.queries.performance import load_performance_matrix
from tracker.queries.selection import Selection

N, K = 6, 3
Row = tuple[int, int, str, int, str | None, float | None, str]
"""Run, prompt, extraction, trial, text, probability, status."""


def put(store: sa.Engine, rows: Sequence[Row]) -> None:
    names = ("run_id", "prompt_id", "extraction", "trial", "text", "probability", "status")
    with transaction(store) as session:
        session.execute(sa.insert(schema.Answer), [dict(zip(names, row, strict=True)) for row in rows])


def load(store: sa.Engine, **choices: object) -> AnswerMatrix:
    with transaction(store, write=False) as session:
        return load_answers(session, Selection(benchmark="b", **choices))


def output(result: AnswerMatrix) -> dict[tuple[int, int], tuple[str, float | None]]:
    """Text and probability by prompt and run."""
    return {
        (int(result.prompt_ids[i]), int(result.run_ids[j])): (
            result.texts[result.codes[i, j]],
            None if np.isnan(result.probability[i, j]) else float(result.probability[i, j]),
        )
        for i, j in np.argwhere(result.codes >= 0)
    }


def reference(rows: Sequence[Row], prefers: str = "") -> dict[tuple[int, int], tuple[str, float | None]]:
    """The same, cell by cell: of the preferred extraction, else the first by name, the first trial, if it is given."""
    result = {}
    for row in sorted(rows, key=lambda row: (row[2] != prefers, row[2], row[3])):
        result.setdefault((row[1], row[0]), row)
    return {cell: (row[4], row[5]) for cell, row in result.items() if row[6] == "ok" and row[4] is not None}


@pytest.fixture
def scored(store: sa.Engine) -> sa.Engine:
    """Six prompts in two tasks by three models, on each engine in turn."""
    add_scores(store, np.ones((N, K)), tasks=["y", "x"] * (N // 2))
    return store


@pytest.fixture
def small(sqlite_store: sa.Engine) -> sa.Engine:
    """The same on SQLite only."""
    add_scores(sqlite_store, np.ones((N, K)), tasks=["y", "x"] * (N // 2))
    return sqlite_store


class TestLoaded:
    def test_answers_stand_where_the_scores_stand(self, scored: sa.Engine) -> None:
        put(scored, [(run, prompt, "", 0, f"{run}{prompt}", run / 10, "ok") for run in (1, 2, 3) for prompt in (2, 5)])
        result = load(scored)
        with transaction(scored, write=False) as session:
            scores = load_performance_matrix(session, "b")
        assert result.prompt_ids.tolist() == scores.prompt_ids.tolist() == [2, 4, 6, 1, 3, 5]
        assert (result.models, result.run_ids.tolist()) == (scores.models, scores.run_ids.tolist())
        assert result.texts == ("12", "15", "22", "25", "32", "35")
        assert result.codes.tolist() == [[0, 2, 4], *[[-1] * 3] * 4, [1, 3, 5]]
        assert result.probability[[0, 5]].tolist() == [[0.1, 0.2, 0.3]] * 2
        assert np.isnan(result.probability[1:5]).all()
        assert (result.codes.dtype, result.probability.dtype) == (np.int32, np.float64)
        assert output(result.align(np.array([5, 1]))) == {(5, run): (f"{run}5", run / 10) for run in (1, 2, 3)}

    def test_without_any_answer_every_cell_is_empty(self, small: sa.Engine) -> None:
        result = load(small)
        assert (result.texts, result.codes.shape) == ((), (N, K))
        assert (result.codes == -1).all()
        assert np.isnan(result.probability).all()

    def test_what_failed_or_could_not_be_read_off_is_no_answer(self, scored: sa.Engine) -> None:
        rows: list[Row] = [
            (1, 1, "", 0, "A", 0.9, "ok"),
            (1, 2, "", 0, None, None, "empty"),
            (1, 3, "", 0, "half an ans", 0.4, "error"),
            (1, 4, "", 0, None, None, "ok"),
            (1, 5, "", 0, "", None, "ok"),
            (1, 6, "", 0, "B", 0.0, "ok"),
        ]
        put(scored, rows)
        result = load(scored)
        assert output(result) == reference(rows) == {(1, 1): ("A", 0.9), (5, 1): ("", None), (6, 1): ("B", 0.0)}
        assert result.texts == ("", "A", "B")

    def test_texts_are_in_the_same_order_on_every_engine(self, scored: sa.Engine) -> None:
        texts = ["a", "B", "ä", "(A)", "b", "A"]
        put(scored, [(1, prompt, "", 0, text, None, "ok") for prompt, text in enumerate(texts, start=1)])
        assert load(scored).texts == ("(A)", "A", "B", "a", "b", "ä")

    def test_of_several_extractions_the_plainest_counts_and_of_several_trials_the_first(
        self, scored: sa.Engine
    ) -> None:
        rows: list[Row] = [
            (1, 1, "strict-match", 0, "no", None, "ok"),
            (1, 1, "", 1, "later", None, "ok"),
            (1, 1, "", 0, "yes", 0.5, "ok"),
            (1, 2, "strict-match", 0, "strict", None, "ok"),
            (1, 2, "flexible-extract", 0, "flexible", None, "ok"),
            (1, 3, "", 0, None, None, "empty"),
            (1, 3, "strict-match", 0, "not plain", None, "ok"),
            (2, 1, "", 2, "third", None, "ok"),
            (2, 1, "", 10, "eleventh", None, "ok"),
            (2, 2, "", 0, "failed", None, "error"),
            (2, 2, "", 1, "second", None, "ok"),
        ]
        put(scored, rows)
        expected = {(1, 1): ("yes", 0.5), (2, 1): ("flexible", None), (1, 2): ("third", None)}
        assert output(load(scored)) == reference(rows) == expected

    def test_answers_are_read_off_as_the_scores_were(self, small: sa.Engine) -> None:
        add_scores(small, np.ones((N, K)), tasks=["y", "x"] * (N // 2), metric="exact_match,strict-match")
        rows: list[Row] = [
            (1, 1, "flexible-extract", 0, "5", None, "ok"),
            (1, 1, "strict-match", 0, None, None, "empty"),
            (1, 2, "flexible-extract", 0, "6", None, "ok"),
            (1, 2, "strict-match", 0, "6.", None, "ok"),
            (1, 3, "flexible-extract", 0, "7", None, "ok"),
        ]
        put(small, rows)
        strict = output(load(small, metric="exact_match,strict-match"))
        assert strict == reference(rows, "strict-match") == {(2, 1): ("6.", None), (3, 1): ("7", None)}
        assert output(load(small, metric="accuracy"))[1, 1] == ("5", None)

    def test_only_the_prompts_that_a_filter_keeps_are_there(self, small: sa.Engine) -> None:
        put(small, [(1, prompt, "", 0, f"answer {prompt}", None, "ok") for prompt in range(1, N + 1)])
        key = add_filter(small, [True, False] * (N // 2))
        result = load(small, filter=key)
        assert result.prompt_ids.tolist() == [1, 3, 5]
        assert result.texts == ("answer 1", "answer 3", "answer 5")


CELL = st.tuples(
    st.integers(1, K),
    st.integers(1, N),
    st.sampled_from(["", "strict", "flexible"]),
    st.integers(0, 2),
    st.sampled_from([None, "", "A", "B", "ä"]),
    st.sampled_from([None, 0.0, 0.25, 1.0]),
    st.sampled_from(["ok", "ok", "ok", "error", "empty"]),
)


class TestAgainstReference:
    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(CELL, max_size=60, unique_by=lambda row: row[:4]))
    def test_any_answers_are_those_found_cell_by_cell(self, sqlite_store: sa.Engine, rows: list[Row]) -> None:
        with transaction(sqlite_store) as session:
            session.execute(sa.delete(schema.Answer))
            is_new = session.scalar(sa.select(sa.func.count()).select_from(schema.Run)) == 0
        if is_new:
            add_scores(sqlite_store, np.ones((N, K)), tasks=["y", "x"] * (N // 2))
        if rows:
            put(sqlite_store, rows)
        result, expected = load(sqlite_store), reference(rows)
        assert output(result) == expected
        assert result.texts == tuple(sorted({text for text, _ in expected.values()}))


class TestDigest:
    def test_it_changes_with_an_answer_and_with_how_sure_it_is(self, sqlite_store: sa.Engine) -> None:
        add_scores(sqlite_store, np.ones((N, K)))
        put(sqlite_store, [(1, 1, "", 0, "A", 0.5, "ok")])
        digests = [load(sqlite_store).digest]
        for change in ({"text": "B"}, {"probability": 0.25}, {"probability": None}, {"prompt_id": 2}):
            with transaction(sqlite_store) as session:
                session.execute(sa.update(schema.Answer).values(**change))
            digests.append(load(sqlite_store).digest)
        assert len(set(digests)) == len(digests)
        assert load(sqlite_store).digest == digests[-1]
