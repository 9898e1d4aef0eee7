"""`import tracker`: light, one screen, and as documented."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracker
from tracker.api import result as answer
from tracker.api import store, store_analyses
from tracker.api import store_queries as stored_things
from tracker.api.store import Store
from tracker.errors import BadInputError, NotFoundError, OutputError, SelectionError, SqlError
from tracker.report import number_format

PAGE = Path(__file__).parents[2] / "docs/reference/python.md"
HEAVY = ("numpy", "sqlalchemy", "pyarrow", "mlflow", "matplotlib", "scipy", "numba", "alembic", "click", "jinja2")
SCORES = "prompt_id,model a,model b\np1,1,0\np2,1,1\np3,0,0\n"


@pytest.fixture
def quiz(sqlite_url: str) -> Iterator[Store]:
    """A store with three prompts and two models."""
    Path("scores.csv").write_text(SCORES)
    with tracker.open(sqlite_url) as opened:
        opened.ingest("scores.csv", benchmark="quiz", metric="accuracy")
        yield opened


class TestImport:
    def test_nothing_is_imported_before_it_is_used(self) -> None:
        run_command = f"import sys, tracker; print([one for one in {HEAVY} if one in sys.modules])"
        text = subprocess.run([sys.executable, "-c", run_command], capture_output=True, text=True, check=True)
        assert text.stdout.strip() == "[]"

    def test_opening_a_store_imports_neither_mlflow_nor_pictures(self, sqlite_url: str) -> None:
        unneeded = ("mlflow", "matplotlib", "scipy", "numba", "click", "jinja2")
        use = f"import sys, tracker; tracker.open({sqlite_url!r}).benchmarks()"
        run_command = f"{use}; print([one for one in {unneeded} if one in sys.modules])"
        text = subprocess.run([sys.executable, "-c", run_command], capture_output=True, text=True, check=True)
        assert text.stdout.strip() == "[]"

    def test_what_is_offered_is_there_and_what_is_not_is_an_ordinary_error(self) -> None:
        assert set(tracker.__all__) <= set(dir(tracker))
        for name in tracker.__all__:
            assert getattr(tracker, name) is not None
        with pytest.raises(AttributeError, match="has no attribute 'opem'"):
            tracker.opem  # noqa: B018


class TestDocumented:
    @pytest.mark.parametrize("module", [store, store_analyses, stored_things, number_format])
    def test_every_example_of_a_docstring_does_what_it_shows(self, module: object) -> None:
        Path("scores.csv").write_text(SCORES)
        with tracker.open("sqlite:///quiz.db") as created:
            created.ingest("scores.csv", benchmark="quiz", metric="accuracy")
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        result = [item for item in doctest.DocTestFinder().find(module) if item.examples]
        assert len(result) >= 2
        for item in result:
            item.globs["Path"] = Path
            runner.run(item)
        assert runner.summarize(verbose=False).failed == 0

    def test_every_public_method_has_a_docstring_and_is_on_the_page(self) -> None:
        page = PAGE.read_text()
        for kind in (Store, answer.AnalysisResult):
            for name, member in inspect.getmembers(kind):
                if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                    assert inspect.getdoc(member), name
                    assert f"{name}" in page, name


class TestLaws:
    def test_arrays_are_those_of_the_queries_and_choices_are_those_of_the_command_line(self, quiz: Store) -> None:
        scores = quiz.performance_matrix("quiz")
        np.testing.assert_array_equal(scores.Q, [[1, 0], [1, 1], [0, 0]])
        item = quiz.performance_matrix("quiz", models="model b", condition="full")
        assert item.models == ("model b",)
        np.testing.assert_array_equal(quiz.performance_matrix("quiz", models=["model b"]).Q, item.Q)
        by_run = quiz.performance_matrix("quiz", runs=int(item.run_ids[0]))
        np.testing.assert_array_equal(by_run.Q, item.Q)

    def test_an_answer_is_recorded_and_is_the_one_that_is_stored(self, quiz: Store) -> None:
        printed = quiz.analyze("rank-intervals", "quiz", models=["model a", "model b"], n_resamples=20, seed=3)
        stored = quiz.finding(printed.id)
        assert stored.summary == printed.summary
        assert {number.name: number.value for number in stored.numbers} == {
            name: None if np.isnan(value) else value for name, value in printed.metrics.items()
        }
        assert {number.name: number.reason for number in stored.numbers if number.reason} == dict(printed.undefined)
        assert stored.parameters["n_resamples"] == 20
        assert stored.seed == 3
        assert quiz.table(printed.id, "models").to_arrow().equals(printed.tables["models"])
        assert quiz.figure(printed.id, printed.figures[0]).startswith(b"\x89PNG")
        assert printed.figure(printed.figures[0]).axes
        assert str(printed) == f"rank-intervals, finding {printed.id}: {printed.summary.headline}"
        assert printed.mlflow_run_id is None
        assert printed.publishing_problem is None
        assert not Path("mlflow.db").exists()

    def test_it_is_published_only_on_request(self, quiz: Store, tracking_uri: str) -> None:
        printed = quiz.analyze("rank-intervals", "quiz", n_resamples=20, publish_to=tracking_uri)
        assert printed.mlflow_run_id

    def test_sql_gives_columns_also_where_there_are_no_rows(self, quiz: Store) -> None:
        assert quiz.sql("select name, id from model where id < 0").column_names == ["name", "id"]
        assert quiz.sql("select count(*) as n from score").to_pylist() == [{"n": 6}]

    def test_a_dry_run_changes_nothing(self, quiz: Store) -> None:
        Path("more.csv").write_text("prompt_id,model c\np1,1\n")
        (printed,) = quiz.ingest(Path("more.csv"), benchmark="quiz", metric="accuracy", dry_run=True)
        assert "would be" in printed.summary()
        assert [model.name for model in quiz.models()] == ["model a", "model b"]

    def test_a_closed_store_opens_again_when_it_is_used(self, quiz: Store) -> None:
        quiz.close()
        assert [benchmark.name for benchmark in quiz.benchmarks()] == ["quiz"]


class TestErrors:
    def test_every_mistake_is_a_sentence(self, quiz: Store) -> None:
        mistakes = [
            (NotFoundError, lambda: quiz.leaderboard("quix")),
            (NotFoundError, lambda: quiz.analyze("prompt-corelation", "quiz")),
            (SelectionError, lambda: quiz.performance_matrix("quiz", model="model a")),
            (SelectionError, lambda: quiz.analyze("rank-intervals", "quiz", n_resample=3)),
            (SelectionError, lambda: quiz.analyze("tradeoff", metric="accuracy")),
            (SelectionError, lambda: quiz.ingest("scores.csv", benchmrk="quiz")),
            (BadInputError, lambda: quiz.ingest("nowhere.csv")),
            (SelectionError, lambda: quiz.prompts_from("quiz", "rows.jsonl", split="test")),
            (SelectionError, lambda: quiz.evaluate("quiz", "model", shot=3)),
            (SqlError, lambda: quiz.sql("delete from score")),
            (OutputError, lambda: quiz.report("quiz", "scores.csv")),
            (NotFoundError, lambda: quiz.analyze("rank-intervals", "quiz", n_resamples=20).figure("ranc")),
            (NotFoundError, lambda: quiz.finding(99)),
        ]
        for kind, mistake in mistakes:
            with pytest.raises(kind) as caught:
                mistake()
            assert isinstance(caught.value, tracker.SuffrageError)
            assert len(str(caught.value)) > 20

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ({"on_conflict": "replace"}, "on_conflict is 'replace'; choose from: rerun, skip, update, error"),
            ({"orient": "model"}, "orient is 'model'; choose from: None, prompts, models, tasks"),
            ({"values": "answers"}, "values is 'answers'"),
            ({"condition": "Full"}, "condition is 'Full'; choose from: None, full, answer_only"),
            ({"probability_kind": "letter"}, "probability_kind is 'letter'"),
            ({"errored": "0"}, "errored is '0'"),
            ({"empty": "skip"}, "empty is 'skip'"),
            ({"splits": "test"}, "splits is 'test'; pass a list of names"),
        ],
    )
    def test_a_mistyped_word_is_refused_and_nothing_is_stored(
        self, quiz: Store, text: dict[str, Any], words: str
    ) -> None:
        before = quiz.sql("select count(*) as n from source").to_pylist()
        with pytest.raises(SelectionError, match=words):
            quiz.ingest("scores.csv", benchmark="other", **text)
        assert quiz.sql("select count(*) as n from source").to_pylist() == before

    @pytest.mark.parametrize("missing", ["drop", "Worst", ""])
    def test_an_unknown_policy_for_missing_scores_is_an_error(self, quiz: Store, missing: str, tmp_path: Path) -> None:
        with pytest.raises(SelectionError, match="Known: bounds, common, worst, impute, fail"):
            quiz.leaderboard("quiz", missing=missing)  # type: ignore[arg-type]
        with pytest.raises(SelectionError, match="No missing-score policy"):
            quiz.report("quiz", tmp_path / "r.html", missing=missing)  # type: ignore[arg-type]

    def test_an_unknown_choice_is_an_error_that_names_the_known_ones(self, quiz: Store) -> None:
        with pytest.raises(SelectionError, match=r"no option 'model'. Did you mean 'models'"):
            quiz.leaderboard("quiz", model="x")

    @pytest.mark.parametrize(
        ("choices", "text"),
        [
            ({"models": []}, "models is empty"),
            ({"runs": ["1"]}, "runs holds '1'; it takes numbers"),
            ({"tasks": [3]}, "tasks holds 3; it takes names"),
        ],
    )
    def test_choosing_nothing_is_not_choosing_all(self, quiz: Store, choices: dict[str, Any], text: str) -> None:
        with pytest.raises(SelectionError, match=text):
            quiz.leaderboard("quiz", **choices)
