"""`suffrage export`: tables that come back, archives, folders."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from command_runner import run, written

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import NotFoundError, OutputError, SelectionError
from tracker.queries.sql import tables

PROMPTS = """prompt_id,task,question,choices,answer,split,level,model_card
q1,algebra,"=1+1?
really","[""3"", ""2""]",B,test,3,x
q2,algebra,What is 2+2?,,4,,4,
q1,physics,"Why, ""oh"" why?",,,,,
"""
SCORES = """model,prompt_id,task,metric,score,trial,predicted,confidence,condition,variant,run,few_shot
org/a,q1,algebra,accuracy,1,0,B,0.25,full,,first,5
org/a,q1,algebra,accuracy,0,1,A,,full,,first,5
org/a,q2,algebra,accuracy,0.30000000000000004,0,,,full,,first,5
org/a,q1,algebra,loss,-1e-7,0,B,0.25,full,,first,5
org/a,q1,physics,accuracy,1,0,NA,,full,,first,5
org/a,q1,algebra,accuracy,0,0,A,,full,,second,
org/b,q1,algebra,accuracy,1,0,NA,,answer_only,,,
org/b,q1,algebra,accuracy,0,0,NA,,full,loud,,
org/b,q2,algebra,accuracy,1,0,NA,,full,,,
org/b,q1,physics,,,0,B,,full,,,
"""


@pytest.fixture
def filled(store: sa.Engine, tmp_path: Path) -> sa.Engine:
    """A store with reruns, trials, answers, conditions and variants."""
    return fill(store, tmp_path)


@pytest.fixture
def filled_file(sqlite_url: str, tmp_path: Path) -> Iterator[sa.Engine]:
    engine = connect(sqlite_url)
    yield fill(engine, tmp_path)
    engine.dispose()


def fill(engine: sa.Engine, folder: Path) -> sa.Engine:
    for name, text in (("prompts.csv", PROMPTS), ("scores.csv", SCORES)):
        path = folder / "taken" / name
        path.parent.mkdir(exist_ok=True)
        run(engine, "ingest", written(path, text), "--benchmark", "b", "--no-mlflow")
    return engine


@pytest.fixture
def another(tmp_path: Path) -> Iterator[sa.Engine]:
    """Another, empty store."""
    engine = connect(f"sqlite:///{tmp_path / 'other.db'}")
    yield engine
    engine.dispose()


def values(engine: sa.Engine) -> dict[str, list[tuple[Any, ...]]]:
    """What flat tables bring back, in plain SQL."""
    query = {
        "scores": "SELECT m.name, t.name, a.key, k.name, s.trial, s.value, r.condition, r.variant, r.label, r.few_shot "
        "FROM score s JOIN run r ON r.id = s.run_id JOIN model m ON m.id = r.model_id JOIN prompt p ON "
        "p.id = s.prompt_id JOIN task t ON t.id = p.task_id JOIN prompt_alias a ON a.prompt_id = p.id JOIN metric k "
        "ON k.id = s.metric_id",
        "answers": "SELECT m.name, t.name, a.key, s.trial, s.text, s.probability, s.status, r.label FROM answer s JOIN "
        "run r ON r.id = s.run_id JOIN model m ON m.id = r.model_id JOIN prompt p ON p.id = s.prompt_id JOIN task t "
        "ON t.id = p.task_id JOIN prompt_alias a ON a.prompt_id = p.id",
        "prompts": "SELECT t.name, a.key, p.text, p.choices, p.answer, p.split, p.content_hash FROM prompt p "
        "JOIN task t ON t.id = p.task_id JOIN prompt_alias a ON a.prompt_id = p.id",
    }
    with transaction(engine, write=False) as session:
        rows = {name: session.execute(sa.text(sql)).all() for name, sql in query.items()}
    plain = {
        name: [tuple(json.loads(v) if isinstance(v, str) and v[:1] == "[" else v for v in row) for row in listing]
        for name, listing in rows.items()
    }
    return {name: sorted(listing, key=repr) for name, listing in plain.items()}


def usage(engine: sa.Engine, *arguments: str) -> str:
    result = CliRunner().invoke(suffrage, [*arguments, "--database", engine.url.render_as_string(hide_password=False)])
    assert result.exit_code == 2
    return " ".join(result.output.split())


class TestComesBack:
    @pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
    def test_scores_answers_and_prompts(self, filled: sa.Engine, another: sa.Engine, tmp_path: Path, kind: str) -> None:
        for part in (["prompts", "b"], ["scores", "b", "--all-runs"]):
            path = str(tmp_path / f"{part[0]}.{kind}")
            run(filled, "export", *part, "-o", path)
            run(another, "ingest", path, "--no-mlflow")
        assert values(another) == values(filled)

    def test_prompts_of_harnesses_stay_distinct(self, another: sa.Engine, sqlite_url: str, tmp_path: Path) -> None:
        source_store = connect(sqlite_url)
        with transaction(source_store) as session:
            for table, rows in {
                tables.benchmark: [{"id": 1, "name": "b", "revision": ""}],
                tables.task: [{"id": 1, "benchmark_id": 1, "name": "t"}],
                tables.prompt: [{"id": n, "task_id": 1, "occurrence": 0, "text": None} for n in (1, 2, 3, 4)],
                tables.prompt_alias: [
                    {"task_id": 1, "namespace": space, "key": key, "prompt_id": n}
                    for n, space, key in ((1, "", "q"), (2, "lm_eval", "q"), (3, "", "3"), (3, "helm", "q"))
                ],
            }.items():
                session.execute(sa.insert(table), rows)
        rows = list(csv.DictReader(io.StringIO(run(source_store, "export", "prompts", "b").stdout)))
        assert [row["prompt_id"] for row in rows] == ["q", "lm_eval:q", "3", "4"]
        source_store.dispose()

    @pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
    def test_weights(self, filled_file: sa.Engine, tmp_path: Path, kind: str) -> None:
        lines = "prompt_id,task,weight\nq1,algebra,0.1\nq2,algebra,3\nq1,physics,1e-9\n"
        run(filled_file, "weights", "b", written(tmp_path / "mine.csv", lines), "--no-mlflow")
        path = tmp_path / f"again.{kind}"
        run(filled_file, "export", "weights", "1", "-o", str(path))
        run(filled_file, "weights", "b", str(path), "--no-mlflow")
        value = tables.prompt_value.c
        with transaction(filled_file, write=False) as session:
            by_finding = [
                session.execute(sa.select(value.prompt_id, value.value).where(value.finding_id == key)).all()
                for key in (1, 2)
            ]
        assert len(by_finding[0]) == 3
        assert by_finding[0] == by_finding[1]

    def test_a_store(self, filled: sa.Engine, another: sa.Engine, tmp_path: Path) -> None:
        path = str(tmp_path / "all.db")
        message = run(filled, "export", "archive", "-o", path).stderr
        assert f"Wrote {path}: 1 benchmark, 3 prompts, 5 runs, 9 scores, 5 answers." in message
        run(another, "ingest", path, "--no-mlflow")
        assert values(another) == values(filled)
        with pytest.raises(OutputError, match="exists already"):
            run(filled, "export", "archive", "-o", path)

    def test_every_eval_ever(self, filled_file: sa.Engine, another: sa.Engine, tmp_path: Path) -> None:
        folder = tmp_path / "eee"
        query = ("export", "scores", "b", "--all-runs", "--format", "every-eval-ever", "-o", str(folder))
        assert "Wrote" in run(filled_file, *query).stderr
        run(another, "ingest", str(folder), "--no-mlflow")
        assert values(another)["scores"] == values(filled_file)["scores"]
        with pytest.raises(OutputError, match="already has files"):
            run(filled_file, *query)
        (folder / "mine.txt").write_text("kept")
        run(filled_file, *query, "--force")
        assert (folder / "mine.txt").read_text() == "kept"
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


class TestChoice:
    def test_the_most_complete_run_of_each_model_unless_all_are_selected(self, filled: sa.Engine) -> None:
        def rows(*options: str) -> list[dict[str, str]]:
            return list(csv.DictReader(io.StringIO(run(filled, "export", "scores", "b", *options).stdout)))

        chosen = rows("--metric", "accuracy")
        assert {(row["model"], row["run"]) for row in chosen} == {("org/a", "first"), ("org/b", "")}
        assert len(chosen) == 5
        assert {row["metric"] for row in rows()} == {"accuracy", "loss", ""}
        assert len(rows("--all-runs")) == 10
        assert [row["variant"] for row in rows("--variant", "loud")] == ["loud"]
        assert [row["condition"] for row in rows("--condition", "answer_only")] == ["answer_only"]
        assert {row["task"] for row in rows("--all-runs", "--tasks", "physics")} == {"physics"}
        assert {row["model"] for row in rows("--all-runs", "--models", "org/b")} == {"org/b"}
        assert "predicted" not in rows("--no-answers")[0]

    def test_runs_that_are_left_out_are_counted(self, filled_file: sa.Engine) -> None:
        message = run(filled_file, "export", "scores", "b").stderr
        assert "3 other runs with such scores are left out; --all-runs exports every complete run." in message

    def test_scores_of_tasks_where_there_are_no_others(self, another: sa.Engine, tmp_path: Path) -> None:
        lines = "model,task,metric,score,stderr,n\nm,ARC,acc,0.5,0.01,10\nm,MMLU,acc,0.25,,\n"
        run(another, "ingest", written(tmp_path / "t.csv", lines), "--benchmark", "l", "--no-mlflow")
        path = tmp_path / "out.csv"
        run(another, "export", "scores", "l", "-o", str(path))
        rows = list(csv.DictReader(path.open()))
        assert [(row["task"], row["score"], row["stderr"], row["n_prompts"]) for row in rows] == [
            ("ARC", "0.5", "0.01", "10"),
            ("MMLU", "0.25", "", ""),
        ]
        assert "nothing new" in run(another, "ingest", str(path), "--no-mlflow").stderr

    def test_runs_and_findings(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        rows = list(csv.DictReader(io.StringIO(run(filled_file, "export", "runs", "b").stdout)))
        assert [(row["model"], row["run"], row["n_scores"]) for row in rows][:2] == [
            ("org/a", "first", "5"),
            ("org/a", "second", "1"),
        ]
        assert json.loads(rows[0]["sources"])[0].endswith("scores.csv")
        lines = "prompt_id,task,weight\nq1,algebra,0.1\nq2,algebra,3\n"
        run(filled_file, "weights", "b", written(tmp_path / "mine.csv", lines), "--no-mlflow")
        for selector in ("1", "b"):
            stored = [
                json.loads(line)
                for line in run(filled_file, "export", "findings", selector, "--format", "jsonl").stdout.split("\n")[
                    :-1
                ]
            ]
            assert {row["analysis"] for row in stored} == {"custom-weights"}
            assert all((row["value"] is None) == (row["reason"] is not None) for row in stored if row["metric"])

    def test_further_fields_of_prompts_have_columns_that_nothing_mistakes(
        self, filled_file: sa.Engine, tmp_path: Path
    ) -> None:
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.prompt).values(details={"model": "x", "n": 3, "deep": [1], "text": 2.5}))
        path = tmp_path / "p.parquet"
        message = run(filled_file, "export", "prompts", "b", "-o", str(path)).stderr
        table = pq.read_table(path)
        assert table.schema.names[7:] == ["detail_model", "n", "deep", "detail_text"]
        assert table.slice(0, 1).to_pylist()[0]["deep"] == "[1]"
        assert [str(table.schema.field(name).type) for name in ("n", "detail_text")] == ["int64", "double"]
        assert "The field 'model' is in the column 'detail_model'." in message

    def test_spreadsheets_get_no_formula(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        plain = run(filled_file, "export", "prompts", "b").stdout
        assert '"=1+1?\nreally"' in plain
        safe = run(filled_file, "export", "prompts", "b", "--for-spreadsheets").stdout
        assert safe.startswith("\ufeff")
        assert '"\'=1+1?\nreally"' in safe
        minus = run(filled_file, "export", "scores", "b", "--all-runs", "--metric", "loss", "--for-spreadsheets").stdout
        assert ",-1e-7,0," in minus.replace("-1e-07", "-1e-7")  # numbers are no texts


class TestErrors:
    def test_a_file_is_replaced_only_by_force(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        path = written(tmp_path / "out.csv", "mine")
        for part in (["scores", "b"], ["prompts", "b"], ["runs"], ["findings"], ["weights", "1"]):
            with pytest.raises(OutputError, match="exists already"):
                run(filled_file, "export", *part, "-o", path)
        assert Path(path).read_text() == "mine"
        run(filled_file, "export", "runs", "-o", path, "--force")
        assert Path(path).read_text().startswith("run_id,")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["scores", "b", "-o", "x.xlsx"], "does not say what to write: add --format"),
            (["scores", "b", "--format", "parquet"], "Parquet is not for the screen"),
            (["scores", "b", "--format", "jsonl", "--for-spreadsheets"], "belongs to --format csv"),
            (["scores", "b", "--all-runs", "--runs", "1"], "--all-runs exports every complete run"),
            (["scores", "b", "--format", "every-eval-ever"], "add --output FOLDER"),
            (
                ["scores", "b", "--format", "every-eval-ever", "--for-spreadsheets", "-o", "x"],
                "Ever always includes",
            ),
        ],
    )
    def test_contradicting_options_are_an_error(
        self, filled_file: sa.Engine, arguments: list[str], message: str
    ) -> None:
        assert message in usage(filled_file, "export", *arguments)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["scores", "c"], "No benchmark 'c'"),
            (["scores", "b", "--metric", "x"], "No metric 'x'"),
            (["scores", "b", "--models", "x"], "No model 'x'"),
            (["scores", "b", "--models", "x", "--all-runs"], "No model 'x'"),
            (["scores", "b", "--tasks", "x"], "No task 'x'"),
            (["scores", "b", "--runs", "77"], "No run '77'"),
            (["scores", "b", "--of", "tasks"], "has no scores of whole tasks"),
            (["prompts", "c"], "No benchmark 'c'"),
            (["runs", "c"], "No benchmark 'c'"),
            (["findings", "c"], "No benchmark 'c'"),
            (["findings", "7"], "No finding '7'"),
            (["findings"], "There are no findings yet"),
            (["weights", "7"], "No finding '7' with weights"),
            (["weights", "x"], "No weights 'x'"),
            (["archive", "c", "-o", "c.zip"], "No benchmark 'c'"),
        ],
    )
    def test_an_unknown_name_is_an_error(self, filled_file: sa.Engine, arguments: list[str], message: str) -> None:
        with pytest.raises((NotFoundError, SelectionError)) as caught:
            run(filled_file, "export", *arguments)
        assert message in str(caught.value)
        assert not Path("c.zip").exists()
