"""`suffrage prompts` as a user gives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from command_runner import run

from tracker.cli import suffrage
from tracker.database import connect


@pytest.fixture
def engine(sqlite_url: str) -> Any:
    built = connect(sqlite_url)
    yield built
    built.dispose()


@pytest.fixture
def source(tmp_path: Path) -> str:
    rows = [{"q": f"Colour {n}?", "o": ["red", "green"], "a": n % 2, "kind": "k"} for n in range(10)]
    path = tmp_path / "colours.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


MAP = ("--map", "text=q", "--map", "choices=o", "--map", "answer=a", "--map", "task=kind")


class TestCommand:
    def test_it_reports_what_was_imported_and_how_fields_were_read(self, engine: Any, source: str) -> None:
        first = run(engine, "prompts", "import", "colours", source, *MAP, "--test-fraction", "0.2", "--seed", "1")
        assert first.stdout == ""
        assert "colours: 10 prompts (" in first.stderr
        assert "test 3" in first.stderr
        assert "10 new prompts" in first.stderr
        assert "Warning: answers read as --answer-is index, the only notation that fits all of them" in first.stderr
        again = run(engine, "prompts", "import", "colours", source, *MAP, "--test-fraction", "0.2", "--seed", "1")
        assert "ingested before, nothing changed" in again.stderr
        counted = run(engine, "sql", "select split, count(*) as n from prompt group by split order by split").stdout
        assert counted.split()[-4:] == ["test", "3", "train", "7"]

    def test_they_are_listed_with_task_split_and_first_words(self, engine: Any, source: str) -> None:
        run(engine, "prompts", "import", "colours", source, *MAP, "--test-fraction", "0.2", "--seed", "1")
        rows = json.loads(run(engine, "prompts", "list", "colours", "--format", "json").stdout)
        assert len(rows) == 10
        assert {(row["task"], row["split"], row["text"][:7]) for row in rows} == {
            ("k", "test", "Colour "),
            ("k", "train", "Colour "),
        }
        header, _, first, *_ = run(engine, "prompts", "list", "colours").stdout.splitlines()
        assert header.split() == ["name", "task", "split", "text"]
        assert first.endswith("Colour 0?")

    def test_a_dry_run_stores_nothing(self, engine: Any, source: str) -> None:
        assert "would be 10 new prompts" in run(engine, "prompts", "import", "c", source, *MAP, "--dry-run").stderr
        assert run(engine, "sql", "select count(*) as n from prompt", "--format", "csv").stdout.split() == ["n", "0"]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--map", "text"], "'text' is not of the form PART=FIELD"),
            (["--map", "text=q", "--map", "text=a"], "text is given twice"),
            (["--task-name", "R1"], "'R1' is not of the form OLD=NEW"),
        ],
    )
    def test_options_that_are_not_of_their_form_are_refused(
        self, source: str, arguments: list[str], words: str
    ) -> None:
        result = CliRunner().invoke(suffrage, ["prompts", "import", "c", source, *arguments])
        assert result.exit_code == 2
        assert words in result.stderr

    def test_an_unknown_task_cannot_be_renamed(self, engine: Any, source: str) -> None:
        message = run(
            engine, "prompts", "import", "c", source, *MAP, "--task-name", "k=x", "--task-name", "kk=y"
        ).stderr
        assert "no effect for 'kk'" in message
        assert "'k'" not in message

    def test_a_benchmark_has_a_name(self, engine: Any, source: str) -> None:
        result = CliRunner().invoke(suffrage, ["prompts", "import", "", source, *MAP, "--database", str(engine.url)])
        assert result.exit_code == 1
        assert "The name of the benchmark is empty" in str(result.exception or "") + result.output
