"""`suffrage export filter`: kept prompts for other programs, and samples for people."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from command_runner import run

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import NotFoundError, OutputError, SelectionError
from tracker.queries.sql import tables

STAMP = "2026-01-02T03-04-05.678901"
TASKS = ("algebra", "physics")
N_DOCUMENTS = 4
KEPT = {"algebra": [0, 3], "physics": [2]}
"""Numbers of the documents that the filter keeps."""
SIMILAR = {("algebra", 1): (False, 2), ("algebra", 3): (True, 2)}
"""What its step `similar` flags: whether it stays, and its group."""


def refused(engine: sa.Engine, *arguments: str) -> str:
    """The usage error of a command."""
    url = engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(suffrage, [*arguments, "--database", url])
    assert result.exit_code == 2
    return " ".join(result.output.split())


def log(folder: Path, model: str, *, tasks: tuple[str, ...] = TASKS, shift: int = 0, n: int = N_DOCUMENTS) -> Path:
    """What lm-evaluation-harness writes of one model; ``shift`` is added to the numbers of the documents."""
    folder.mkdir()
    for task in tasks:
        rows = [
            {
                "doc_id": number + shift,
                "doc": {"question": f"{task} {number}?", "choices": ["yes", "no"]},
                "target": "0",
                "arguments": [[f"Q {number}", " yes"], [f"Q {number}", " no"]],
                "resps": [[[-1.0, False]], [[-2.0, False]]],
                "filtered_resps": [[-1.0, False], [-2.0, False]],
                "doc_hash": f"{task}{number}",
                "acc": 1.0,
            }
            for number in reversed(range(n))  # as several processes may log them
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"samples_{task}_{STAMP}.jsonl").write_text(lines)
    values = {"results": {task: {"alias": task} for task in tasks}, "model_name": model, "configs": {}}
    values["configs"] = {task: {"test_split": "test"} for task in tasks}
    (folder / f"results_{STAMP}.json").write_text(json.dumps(values))
    return folder


def numbered(engine: sa.Engine, benchmark: str) -> dict[tuple[str, int], int]:
    """Key of each prompt by task and number of the document, as its text tells it."""
    prompt, task, owner = tables.prompt.c, tables.task.c, tables.benchmark.c
    query = sa.select(task.name, prompt.text, prompt.id).join(tables.task, task.id == prompt.task_id)
    query = query.join(tables.benchmark, owner.id == task.benchmark_id).where(owner.name == benchmark)
    with transaction(engine, write=False) as session:
        return {(name, int(text.split()[1].rstrip("?"))): key for name, text, key in session.execute(query)}


def recorded(engine: sa.Engine, benchmark: str, kept: Mapping[int, bool], **reasons: Mapping[int, Any]) -> int:
    """Record a filter; its key."""
    with transaction(engine) as session:
        owner = session.scalar(sa.select(tables.benchmark.c.id).where(tables.benchmark.c.name == benchmark))
        message = {
            "analysis": "smart-filtering",
            "benchmark_id": owner,
            "parameters": {},
            "selection": {},
            "status": "complete",
        }
        now = sa.func.current_timestamp()
        built = sa.insert(tables.finding).values(**message, input_digest="", code_version="", recorded=now)
        key = int(session.execute(built.returning(tables.finding.c.id)).scalar_one())
        if kept:
            decided = [{"finding_id": key, "prompt_id": item, "kept": stays} for item, stays in kept.items()]
            session.execute(sa.insert(tables.filter_decision), decided)
        for step, out in reasons.items():
            rows = [
                {"finding_id": key, "prompt_id": item, "step": step, "retained": stays, "cluster": group}
                for item, (stays, group) in out.items()
            ]
            session.execute(sa.insert(tables.filter_reason), rows)
        return key


def fill(engine: sa.Engine, folder: Path) -> int:
    """A benchmark of the harness's with a filter; the filter's key."""
    run(engine, "ingest", str(log(folder, "org/m")), "--benchmark", "b", "--no-mlflow")
    prompts = numbered(engine, "b")
    kept = {key: number in KEPT[task] for (task, number), key in prompts.items()}
    easy = {key: (kept[key], None) for (task, _), key in prompts.items() if task == "physics"}
    return recorded(engine, "b", kept, easy=easy, similar={prompts[item]: values for item, values in SIMILAR.items()})


@pytest.fixture
def harness(store: sa.Engine, tmp_path: Path) -> sa.Engine:
    """A store whose first finding is a filter of what lm-evaluation-harness logged."""
    assert fill(store, tmp_path / "logged") == 1
    return store


@pytest.fixture
def harness_file(sqlite_url: str, tmp_path: Path) -> Iterator[sa.Engine]:
    """The same on SQLite alone."""
    engine = connect(sqlite_url)
    assert fill(engine, tmp_path / "logged") == 1
    yield engine
    engine.dispose()


class TestKeptPrompts:
    def test_csv_goes_to_stdout_and_warnings_to_stderr(self, harness: sa.Engine) -> None:
        result = run(harness, "export", "filter", "1")
        assert result.stdout == (
            "prompt_id,task,text,choices,answer,split,reasons,groups,other_names\n"
            'algebra3,algebra,algebra 3?,"[""yes"", ""no""]",A,test,"[""similar (retained)""]","[""similar 2""]",\n'
            'algebra0,algebra,algebra 0?,"[""yes"", ""no""]",A,test,,,\n'
            'physics2,physics,physics 2?,"[""yes"", ""no""]",A,test,"[""easy (retained)""]",,\n'
        )
        assert "Filter 1 keeps 3 of 8 prompts" in result.stderr

    @pytest.mark.parametrize("kind", ["jsonl", "parquet"])
    def test_the_format_follows_from_the_name_of_the_file(
        self, harness_file: sa.Engine, tmp_path: Path, kind: str
    ) -> None:
        path = tmp_path / f"kept.{kind}"
        assert f"Wrote {path}." in run(harness_file, "export", "filter", "1", "--output", str(path)).stderr
        rows = pq.read_table(path).to_pylist() if kind == "parquet" else map(json.loads, path.read_text().splitlines())
        assert [row["prompt_id"] for row in rows] == ["algebra3", "algebra0", "physics2"]

    def test_every_name_of_a_prompt_is_exported(self, harness_file: sa.Engine, tmp_path: Path) -> None:
        table = tmp_path / "prompts.csv"
        table.write_text('prompt_id,task,question,choices\nq1,algebra,algebra 3?,"[""yes"", ""no""]"\n')
        run(harness_file, "ingest", str(table), "--benchmark", "b", "--no-mlflow")
        row = next(csv.DictReader(io.StringIO(run(harness_file, "export", "filter", "1").stdout)))
        assert (row["prompt_id"], row["other_names"]) == ("q1", '["lm_eval:algebra3"]')

    def test_prompts_that_came_later_are_left_out_and_named(self, harness: sa.Engine, tmp_path: Path) -> None:
        before = run(harness, "export", "filter", "1").stdout
        run(harness, "ingest", str(log(tmp_path / "grown", "org/n", n=7)), "--benchmark", "b", "--no-mlflow")
        result = run(harness, "export", "filter", "1")
        assert result.stdout == before
        (message,) = [line for line in result.stderr.splitlines() if "did not evaluate" in line]
        assert "6 prompts are left out" in message
        assert all(f"algebra{number}" in message for number in (4, 5, 6))
        assert message.count("physics") == 4  # two names, each with its task

    def test_it_can_be_ingested_as_a_separate_benchmark(self, harness_file: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "kept.parquet"
        run(harness_file, "export", "filter", "1", "--output", str(path))
        message = run(harness_file, "ingest", str(path), "--benchmark", "b-smart", "--no-mlflow").stderr
        assert "(prompt-table): 3 new prompts" in message


class TestHarnessFile:
    def test_it_lists_the_kept_documents_of_each_task(self, harness: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "samples.json"
        message = run(harness, "export", "filter", "1", "--output", str(path)).stderr
        assert json.loads(path.read_text()) == KEPT
        assert "Name only these in --tasks" in message
        assert run(harness, "export", "filter", "1", "--format", "lm-eval").stdout == path.read_text()

    def test_a_store_from_before_gets_the_numbers_by_taking_the_files_in_again(
        self, harness: sa.Engine, tmp_path: Path
    ) -> None:
        with transaction(harness) as session:
            session.execute(sa.update(tables.prompt).values(details=sa.null()))
        lm_eval = ("export", "filter", "1", "--format", "lm-eval")
        again = ("ingest", str(tmp_path / "logged"), "--benchmark", "b", "--no-mlflow")
        with pytest.raises(SelectionError, match=r"in 2 tasks: algebra \(2 of 2 kept.*--on-conflict update"):
            run(harness, *lm_eval)
        assert "nothing changed" in run(harness, *again).stderr
        with pytest.raises(SelectionError, match="Document numbers are unknown"):
            run(harness, *lm_eval)
        message = run(harness, *again, "--on-conflict", "update").stderr
        assert "nothing new" in message
        assert "details added to stored prompts: lm_eval_doc_id (8)" in message
        assert json.loads(run(harness, *lm_eval).stdout) == KEPT

    def test_a_run_on_the_kept_documents_is_of_the_kept_prompts_even_where_documents_are_duplicates(
        self, sqlite_url: str, tmp_path: Path
    ) -> None:
        engine = connect(sqlite_url)
        everything, alone = log(tmp_path / "all", "org/m", tasks=("algebra",)), log(tmp_path / "few", "org/n", n=1)
        for folder, numbers in ((everything, [0, 1, 2, 3]), (alone, [3])):
            (folder / f"samples_physics_{STAMP}.jsonl").unlink(missing_ok=True)
            row = json.loads((alone / f"samples_algebra_{STAMP}.jsonl").read_text().splitlines()[0])
            lines = [json.dumps(row | {"doc_id": number}) + "\n" for number in numbers]
            (folder / f"samples_algebra_{STAMP}.jsonl").write_text("".join(lines))
            run(engine, "ingest", str(folder), "--benchmark", "b", "--no-mlflow")
        prompt, score, of = tables.prompt.c, tables.score.c, tables.run.c
        with transaction(engine, write=False) as session:
            query = sa.select(prompt.details).join(tables.score, score.prompt_id == prompt.id)
            query = query.join(tables.run, of.id == score.run_id).join(tables.model, tables.model.c.id == of.model_id)
            actual = session.scalars(query.where(tables.model.c.name == "org/n")).all()
            assert session.scalar(sa.select(sa.func.count()).select_from(tables.prompt)) == 4
        assert {item["lm_eval_doc_id"] for item in actual} == {3}
        engine.dispose()

    def test_of_files_that_number_otherwise_the_first_stands(self, harness_file: sa.Engine, tmp_path: Path) -> None:
        second = log(tmp_path / "shifted", "org/n", tasks=("algebra",), shift=1)
        message = run(harness_file, "ingest", str(second), "--benchmark", "b", "--no-mlflow").stderr
        assert "details that differ from the stored ones, which were kept: lm_eval_doc_id (4)" in message
        assert json.loads(run(harness_file, "export", "filter", "1", "--format", "lm-eval").stdout) == KEPT

    def test_prompts_of_other_files_are_numbered_in_their_order_on_request(
        self, store: sa.Engine, tmp_path: Path
    ) -> None:
        table = tmp_path / "prompts.csv"
        lines = [f"q{n},{TASKS[n % 2]},{TASKS[n % 2]} {n // 2}?" for n in range(8)]
        table.write_text("\n".join(["prompt_id,task,question", *lines, ""]))
        run(store, "ingest", str(table), "--benchmark", "b", "--no-mlflow")
        prompts = numbered(store, "b")
        key = recorded(store, "b", {item: number in KEPT[task] for (task, number), item in prompts.items()})
        lm_eval = ("export", "filter", str(key), "--format", "lm-eval")
        with pytest.raises(SelectionError, match="--number-by-order counts them instead"):
            run(store, *lm_eval)
        result = run(store, *lm_eval, "--number-by-order")
        assert json.loads(result.stdout) == KEPT
        assert "2 tasks (algebra, physics): documents are numbered from 0 in the order" in result.stderr


class TestReview:
    def test_it_is_the_same_on_both_engines(self, sqlite_url: str, postgres_url: str, tmp_path: Path) -> None:
        values = []
        for place, url in enumerate((sqlite_url, postgres_url)):
            engine = connect(url)
            fill(engine, tmp_path / f"logged{place}")
            result = run(engine, "export", "filter", "1", "--review", "2", "--seed", "3")
            values.append(result.stdout)
            assert (
                result.stderr
                == "Warning: The file has a random sample of the flagged prompts: 2 of 4 easy, 2 of 2 similar.\n"
            )
            engine.dispose()
        assert values[0] == values[1]
        rows = list(csv.DictReader(io.StringIO(values[0])))
        assert [row["reason"] for row in rows] == ["easy", "easy", "similar", "similar"]
        assert rows[2] == {
            "reason": "similar",
            "removed": "no",
            "retained": "yes",
            "prompt_id": "algebra3",
            "task": "algebra",
            "text": "algebra 3?",
            "choices": "A. yes\nB. no",
            "answer": "A",
            "group": "2",
            "n_others": "1",
            "others": "[algebra1] algebra 1?\nA. yes\nB. no",
            "verdict": "",
            "comment": "",
        }

    def test_another_seed_draws_others(self, harness_file: sa.Engine) -> None:
        drawn = {run(harness_file, "export", "filter", "1", "--review", "1", "--seed", str(s)).stdout for s in range(9)}
        assert len(drawn) > 1


class TestErrors:
    def test_a_finding_that_is_no_filter_is_met_with_those_that_are(self, harness_file: sa.Engine) -> None:
        second = recorded(harness_file, "b", {})
        with pytest.raises(
            SelectionError, match=rf"Finding {second} \(smart-filtering\) is not a filter\. Filters: 1\."
        ):
            run(harness_file, "export", "filter", str(second))
        for unknown in (0, 77, 2**40):
            with pytest.raises(NotFoundError, match=rf"No finding '{unknown}' with a filter\. Known: 1\."):
                run(harness_file, "export", "filter", str(unknown))

    def test_a_store_without_filters_explains_how_to_make_one(self, store: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match=r"No finding '1' with a filter\. None are stored yet\."):
            run(store, "export", "filter", "1")

    def test_a_filter_that_keeps_nothing_is_not_written(self, harness_file: sa.Engine) -> None:
        # To the harness an empty list means everything.
        key = recorded(harness_file, "b", dict.fromkeys(numbered(harness_file, "b").values(), False))
        with pytest.raises(SelectionError, match=f"Filter {key} keeps no prompt"):
            run(harness_file, "export", "filter", str(key), "--format", "lm-eval")

    def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(
        self, harness_file: sa.Engine, tmp_path: Path
    ) -> None:
        path = tmp_path / "kept.csv"
        path.write_text("mine")
        with pytest.raises(OutputError, match="exists already"):
            run(harness_file, "export", "filter", "1", "--output", str(path))
        assert path.read_text() == "mine"
        run(harness_file, "export", "filter", "1", "--output", str(path), "--force")
        assert path.read_text() == run(harness_file, "export", "filter", "1").stdout

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ("--format parquet", "Parquet is not for the screen: add --output PATH."),
            (
                "--format lm-eval --review 9",
                "--review is not available for lm-eval. Choose --format csv, jsonl or parquet.",
            ),
            ("--output kept.json --review 9", "--review is not available for lm-eval"),
            ("--number-by-order", "--number-by-order belongs to --format lm-eval."),
            ("--review 0", "0 is not in the range"),
            ("--output kept.csv.gz", "A name that ends in .gz does not say what to write: add --format."),
        ],
    )
    def test_options_that_do_not_belong_together_are_refused(
        self, harness_file: sa.Engine, options: str, message: str
    ) -> None:
        assert message in refused(harness_file, "export", "filter", "1", *options.split())
