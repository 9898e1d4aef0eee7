"""`suffrage embed`: from prompts to stored vectors, stopped and gone on with, twice at a time."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from forked_process import fork

from tracker.cli import suffrage
from tracker.cli.commands.embed import embed
from tracker.database import connect
from tracker.errors import SelectionError, SuffrageError
from tracker.queries.sql import tables

N = 560


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(suffrage, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, (SystemExit, SuffrageError)):
        raise result.exception
    return result


def ingest(url: str, folder: Path, rows: Sequence[Sequence[object]], header: Sequence[str]) -> None:
    path = folder / f"prompts{len(list(folder.iterdir()))}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    assert run("ingest", path, "--benchmark", "b", "--no-mlflow", "--database", url).exit_code == 0


@pytest.fixture
def questions(tmp_path: Path) -> list[list[object]]:
    """Of very different lengths, so that batches are padded."""
    rng = np.random.default_rng(4)
    texts = (" ".join(rng.choice(["so", "why", "is", "it", "red"], size=n)) for n in rng.integers(1, 20, size=N))
    return [[f"q{i}", f"{i} {text}?", json.dumps(["yes", "no"])] for i, text in enumerate(texts)]


def filled(url: str, tmp_path: Path, questions: list[list[object]]) -> str:
    ingest(url, tmp_path, questions, ["prompt_id", "question", "choices"])
    return url


def stored(url: str) -> dict[int, bytes]:
    engine = connect(url)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(tables.embedding.c.prompt_id, tables.embedding.c.vector)).all()
    engine.dispose()
    assert len({row.prompt_id for row in rows}) == len(rows)
    return {row.prompt_id: bytes(row.vector) for row in rows}


class TestMade:
    def test_only_what_is_missing_is_made_and_what_is_cut_off_is_counted(
        self, store_url: str, tmp_path: Path, questions: list[list[object]], tiny_encoder: Path
    ) -> None:
        words = ("embed", "b", "--encoder", tiny_encoder, "--database", filled(store_url, tmp_path, questions[:300]))
        first = run(*words)
        assert first.exit_code == 0, first.output
        assert first.stdout == ""
        messages = first.stderr.splitlines()
        assert re.fullmatch(r"b: 300 new vectors of 16 numbers by tiny@[0-9a-f]{12}:question\+choices", messages[0])
        assert re.fullmatch(r"Warning: \d+ of 300 texts are longer than the 24 tokens that the encoder .*", messages[1])
        assert len(messages) == 2
        before = stored(store_url)
        ingest(store_url, tmp_path, questions[:350], ["prompt_id", "question", "choices"])
        assert "b: 50 new vectors" in run(*words).stderr
        after = stored(store_url)
        assert len(after) == 350
        assert before.items() <= after.items()
        assert "b: 0 new vectors" in run(*words).stderr
        assert stored(store_url) == after

    def test_a_language_model_gives_its_last_token_with_a_warning_and_its_own_name(
        self, sqlite_url: str, tmp_path: Path, questions: list[list[object]], language_model_folders: dict[str, Path]
    ) -> None:
        folder = language_model_folders["llama"]
        words = ("embed", "b", "--database", filled(sqlite_url, tmp_path, questions[:5]), "--encoder")
        summary, warning = run(*words, folder).stderr.splitlines()
        name = rf"{folder.name} \(last token\)@[0-9a-f]{{12}}:question\+choices"
        assert re.fullmatch(rf"b: 5 new vectors of 256 numbers by {name}", summary)
        assert "it is a language model: the vector of a text is the last hidden state at its last token" in warning
        (again,) = run(*words, f"last-token:{folder}").stderr.splitlines()
        assert re.fullmatch(rf"b: 0 new vectors of 256 numbers by {name}, 5 stored before", again)

    def test_templates_have_separate_vectors_and_prompts_without_text_are_counted(
        self, sqlite_url: str, tmp_path: Path, tiny_encoder: Path
    ) -> None:
        rows = [["q1", "who", "because"], ["q2", "why", "so"], ["q3", "how", ""]]
        ingest(sqlite_url, tmp_path, rows, ["prompt_id", "question", "reason"])
        words = ("embed", "b", "--encoder", tiny_encoder, "--database", sqlite_url)
        assert "3 new vectors" in run(*words, "--template", "question").stderr
        messages = run(*words, "--template", "details:reason").stderr
        assert "b: 2 new vectors" in messages
        assert "1 of 3 prompts have no text for details:reason, and no vector" in messages
        templates = run("sql", "SELECT template FROM encoder ORDER BY id", "--format", "json", "--database", sqlite_url)
        assert json.loads(templates.stdout) == [{"template": "question"}, {"template": "details:reason"}]


def run_until_third_insert(*arguments: str) -> None:
    """Run a command in a process that is killed after it has added vectors for the third time."""
    n_inserts = 0

    def count(connection: object, cursor: object, statement: str, *rest: object) -> None:
        nonlocal n_inserts
        n_inserts += statement.startswith("INSERT INTO embedding")
        if n_inserts == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, "after_cursor_execute", count)
    run(*arguments)


class TestStopped:
    def test_killed_and_run_again_it_ends_with_the_bytes_of_an_uninterrupted_run(
        self, sqlite_url: str, tmp_path: Path, questions: list[list[object]], tiny_encoder: Path
    ) -> None:
        uninterrupted = f"sqlite:///{tmp_path / 'uninterrupted.db'}"
        for url in (sqlite_url, uninterrupted):
            filled(url, tmp_path, questions)
        words = ["embed", "b", "--encoder", str(tiny_encoder), "--batch-size", "10", "--device", "cpu", "--database"]
        assert run(*words, uninterrupted).exit_code == 0
        killed = fork(lambda: run_until_third_insert(*words, sqlite_url), tmp_path / "killed.output")
        output = killed.wait()
        assert killed.returncode == -signal.SIGKILL, output
        part = stored(sqlite_url)
        assert 500 < len(part) < N
        assert run("db", "check", "--database", sqlite_url).exit_code == 0
        again = run(*words, sqlite_url)
        assert f"b: {N - len(part)} new vectors" in again.stderr
        assert stored(sqlite_url) == stored(uninterrupted)
        assert part.items() <= stored(sqlite_url).items()

    def test_two_at_the_same_time_store_each_vector_once(
        self, store_url: str, tmp_path: Path, questions: list[list[object]], tiny_encoder: Path
    ) -> None:
        alone = f"sqlite:///{tmp_path / 'alone.db'}"
        for url in (store_url, alone):
            filled(url, tmp_path, questions[:300])

        from transformers import PreTrainedModel

        def make(url: str) -> None:
            engine = connect(url)
            embed(engine, "b", str(tiny_encoder), template="question", device="cpu")
            engine.dispose()

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(make, [store_url, store_url]))
        make(alone)
        assert stored(store_url) == stored(alone)
        assert len(stored(alone)) == 300
        # transformers replaces this method while it loads; two loads at once would leave the replacement.
        assert PreTrainedModel.tie_weights.__name__ == "tie_weights"


class TestFromFile:
    def test_the_command_names_what_made_the_vectors(self, sqlite_url: str, tmp_path: Path) -> None:
        ingest(sqlite_url, tmp_path, [["q1", "who"], ["q2", "why"]], ["prompt_id", "question"])
        np.savez(tmp_path / "v.npz", prompt_id=np.array(["q2"]), vector=np.ones((1, 3)))
        words = ("embed", "b", "--database", sqlite_url, "--from-file", tmp_path / "v.npz")
        ingested = run(*words, "--encoder", "ada-2", "--revision", "2022", "--template", "question")
        assert ingested.exit_code == 0, ingested.output
        assert "v.npz: 1 new vectors of 3 numbers by ada-2@2022:question" in ingested.stderr
        assert "1 of 2 prompts have no vector of this encoder" in ingested.stderr
        unnamed = run(*words)
        assert unnamed.exit_code == 2
        assert "--from-file needs --encoder NAME" in unnamed.stderr


class TestErrors:
    def test_prompts_without_text_are_an_error_before_a_model_is_loaded(self, sqlite_url: str, tmp_path: Path) -> None:
        (tmp_path / "scores.csv").write_text("prompt_id,A,B\nq1,1,0\nq2,0,1\n")
        words = ("--benchmark", "b", "--no-mlflow", "--database", sqlite_url)
        assert run("ingest", tmp_path / "scores.csv", *words).exit_code == 0
        refused = run("embed", "b", "--database", sqlite_url)
        assert isinstance(refused.exception, SelectionError)
        assert "suffrage ingest PROMPTS --benchmark b" in str(refused.exception)

    def test_an_unknown_benchmark_and_an_unknown_template_are_named(self, sqlite_url: str) -> None:
        for words, messages in ((("none",), "No benchmark 'none'"), (("b", "--template", "x"), "No template 'x'")):
            refused = run("embed", *words, "--database", sqlite_url)
            assert isinstance(refused.exception, SuffrageError)
            assert messages in str(refused.exception)
