"""What a person types, sees and gets: taking in results, and listing them in each form."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracker.cli import suffrage
from tracker.errors import SuffrageError

MODEL = '🦙/модель, "7b"'

IMPATIENT = '''
"""A file during whose reading the person presses Ctrl-C."""
import signal

def mismatch_reason(path, options):
    return None if path.suffix == ".impatient" else "the name does not end in .impatient"

def read(path, options):
    yield "first"
    signal.raise_signal(signal.SIGINT)
'''


def run(*arguments: object) -> Result:
    return CliRunner().invoke(suffrage, [str(argument) for argument in arguments])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["prompt_id", MODEL, "NaN"], ["q1", 1, 0], ["q2", 0, 0], ["q3", 1, ""]])
    return path


class TestForms:
    @pytest.mark.parametrize(
        "command",
        [["benchmarks"], ["models"], ["runs"], ["leaderboard", "b"], ["sql", "SELECT name, 1 AS name FROM model"]],
    )
    def test_json_and_csv_hold_what_the_table_holds(self, sqlite_url: str, results: Path, command: list[str]) -> None:
        assert run("ingest", results, "--benchmark", "b", "--no-mlflow", "--database", sqlite_url).exit_code == 0
        printed = {form: run(*command, "--database", sqlite_url, "--format", form) for form in ("table", "json", "csv")}
        assert [item.exit_code for item in printed.values()] == [0, 0, 0]
        objects = json.loads(printed["json"].stdout)
        rows = list(csv.DictReader(io.StringIO(printed["csv"].stdout)))
        assert len(objects) == len(rows)
        assert [list(row) for row in objects] == [list(row) for row in rows]
        if command != ["benchmarks"]:
            assert MODEL in printed["table"].stdout
            assert any(MODEL in row.values() for row in objects)
            assert any(MODEL in row.values() for row in rows)


class TestNumbers:
    def test_shared_ranks_are_printed_as_they_are(self, sqlite_url: str, tmp_path: Path) -> None:
        (tmp_path / "tied.csv").write_text("prompt_id,A,B,C\nq1,1,1,0\nq2,0,0,0\n")
        run("ingest", tmp_path / "tied.csv", "--benchmark", "b", "--no-mlflow", "--database", sqlite_url)
        lines = run("leaderboard", "b", "--database", sqlite_url).stdout.splitlines()
        assert [line.split()[0] for line in lines[3:]] == ["1.5", "1.5", "3"]

    def test_decimal_numbers_of_the_engine_are_numbers_in_json(self, postgres_url: str) -> None:
        query = run("sql", "SELECT 0.5 AS half, 3.0 AS three", "--format", "json", "--database", postgres_url)
        assert json.loads(query.stdout) == [{"half": 0.5, "three": 3}]


class TestErrors:
    def test_a_file_that_is_not_there_is_one_sentence(self, sqlite_url: str, tmp_path: Path) -> None:
        (tmp_path / "broken_link.csv").symlink_to(tmp_path / "nowhere.csv")
        for name in ("none.csv", "broken_link.csv"):
            refused = run("ingest", tmp_path / name, "--database", sqlite_url)
            assert isinstance(refused.exception, SuffrageError)
            assert str(refused.exception).startswith(f"{tmp_path / name}: does not exist.\nList the files: ls ")

    @pytest.mark.parametrize("bounds", [("1", "0"), ("nan", "1"), ("1", "1")])
    def test_bounds_are_passed_in_their_order(self, sqlite_url: str, results: Path, bounds: tuple[str, str]) -> None:
        refused = run("ingest", results, "--benchmark", "b", "--database", sqlite_url, "--bounds", *bounds)
        assert refused.exit_code == 2
        assert "smaller number first" in refused.stderr

    def test_an_infinite_bound_is_none(self, sqlite_url: str, results: Path) -> None:
        arguments = ("ingest", results, "--benchmark", "b", "--metric", "loss", "--no-mlflow", "--database", sqlite_url)
        assert run(*arguments, "--bounds", "0", "inf").exit_code == 0
        bounds = run("sql", "SELECT lower, upper FROM metric", "--format", "json", "--database", sqlite_url)
        assert json.loads(bounds.stdout) == [{"lower": 0.0, "upper": None}]

    def test_a_store_of_leaderboards_is_sound(self, sqlite_url: str, tmp_path: Path) -> None:
        table = tmp_path / "leaderboard.csv"
        table.write_text("model,task 1,task 2\nA,0.5,0.25\nB,0.75,\n")
        assert run("ingest", table, "--benchmark", "b", "--no-mlflow", "--database", sqlite_url).exit_code == 0
        checked = run("db", "check", "--database", sqlite_url)
        assert checked.exit_code == 0
        assert "Sound" in checked.stderr

    def test_an_interrupt_explains_how_to_go_on_and_leaves_a_sound_store(
        self, sqlite_url: str, results: Path, tmp_path: Path, install: Callable[..., None]
    ) -> None:
        install("impatient", IMPATIENT, group="suffrage.formats")
        (tmp_path / "second.impatient").write_text("anything")
        words = ("--benchmark", "b", "--no-mlflow", "--database", sqlite_url)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore Ctrl-C
        try:
            stopped = run("ingest", results, tmp_path / "second.impatient", *words)
        finally:
            signal.signal(signal.SIGINT, before)
        assert stopped.exit_code == 130
        assert f"Stopped; nothing of {tmp_path / 'second.impatient'} is stored." in stopped.stderr
        assert "Run the same command again" in stopped.stderr
        count = run("sql", "SELECT count(*) AS n FROM score", "--format", "json", "--database", sqlite_url)
        assert json.loads(count.stdout) == [{"n": 5}]
        assert run("db", "check", "--database", sqlite_url).exit_code == 0


class TestModel:
    def wide(self, folder: Path, name: str, model: str) -> None:
        rows = "\n".join(f"{model},q{n},{n % 2}" for n in range(4))
        (folder / name).write_text(f"model,prompt_id,score\n{rows}\n")

    def test_files_of_several_models_do_not_become_one_run_by_a_name_for_all(
        self, tmp_path: Path, sqlite_url: str
    ) -> None:
        folder = tmp_path / "results"
        folder.mkdir()
        self.wide(folder, "a.csv", "org/one")
        self.wide(folder, "b.csv", "org/two")
        query = ("ingest", str(folder), "--benchmark", "b", "--no-mlflow", "--database", sqlite_url)
        result = CliRunner().invoke(suffrage, (*query, "--model", "mine"))
        assert result.exit_code == 1
        assert "calls its model 'org/two'" in result.stderr
        assert "--model mine would make them one" in result.stderr
        assert CliRunner().invoke(suffrage, query).exit_code == 0

    def test_files_of_one_model_may_be_named_together(self, tmp_path: Path, sqlite_url: str) -> None:
        folder = tmp_path / "results"
        folder.mkdir()
        self.wide(folder, "a.csv", "org/one")
        (folder / "b.csv").write_text("prompt_id,score,model\nq9,1,org/one\n")
        query = ("ingest", str(folder), "--benchmark", "b", "--model", "mine", "--no-mlflow", "--database", sqlite_url)
        assert CliRunner().invoke(suffrage, query).exit_code == 0
