"""Commands on a store without data, and what creates a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import SuffrageError

WIDE = "prompt_id,a,b\np,1,0\nq,1,1\n"


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(suffrage, arguments)
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


class TestEmptyStore:
    @pytest.mark.parametrize(
        ("command", "missing"),
        [
            ("benchmarks", "No benchmarks yet. Import results: `suffrage ingest "),
            ("models", "No models yet. Import results: `suffrage ingest "),
            ("runs", "No runs yet. Import results: `suffrage ingest "),
            ("findings", "No findings yet. Record one: `suffrage analyze "),
        ],
    )
    def test_a_listing_names_what_is_missing_and_the_command_that_adds_it(
        self, sqlite_url: str, command: str, missing: str
    ) -> None:
        connect(sqlite_url).dispose()
        result = call(command, "--database", sqlite_url)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith(missing)

    @pytest.mark.parametrize(
        ("command", "missing"),
        [
            ("leaderboard x", "No benchmark 'x'. None are stored yet. Import results: suffrage ingest "),
            ("history x", "No model 'x' or benchmark. None are stored yet. Import results: suffrage ingest "),
            ("compare x a b", "No model 'a'. None are stored yet. Import results: suffrage ingest "),
            ("prompts list x", "No benchmark 'x'. None are stored yet. Import results: suffrage ingest "),
            (
                "findings --name drift",
                "No analysis 'drift' with a finding. None are stored yet. Record one: suffrage anal",
            ),
            ("show 1", "No finding '1'. None are stored yet. Record one: suffrage analyze "),
            ("report x", "No benchmark 'x'. None are stored yet. Import results: suffrage ingest "),
        ],
    )
    def test_an_error_names_what_is_missing_and_the_command_that_adds_it(
        self, sqlite_url: str, command: str, missing: str
    ) -> None:
        connect(sqlite_url).dispose()
        with pytest.raises(SuffrageError) as caught:
            call(*command.split(), "--database", sqlite_url)
        assert str(caught.value).startswith(missing)

    def test_no_findings_of_a_benchmark_name_the_analysis_to_run(self, sqlite_url: str, tmp_path: Path) -> None:
        (tmp_path / "wide.csv").write_text(WIDE)
        call("ingest", str(tmp_path / "wide.csv"), "--benchmark", "b", "--database", sqlite_url, "--no-mlflow")
        listing = call("findings", "--benchmark", "b", "--database", sqlite_url)
        assert listing.stderr == "No findings on b yet. Record one: `suffrage analyze rank-intervals b`\n"


class TestIngest:
    @pytest.mark.parametrize("text", ["no results\n", "model,prompt_id,score\nm,p,x\n", ""])
    def test_a_file_without_results_leaves_no_store(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "file.csv").write_text(text)
        path = str(tmp_path / "new.db")
        result = call("ingest", str(tmp_path / "file.csv"), "--benchmark", "b", "--database", path, "--no-mlflow")
        assert result.exit_code == 1
        assert [file.name for file in tmp_path.iterdir()] == ["file.csv"]

    def test_a_file_without_the_name_of_a_benchmark_leaves_no_store(self, tmp_path: Path) -> None:
        (tmp_path / "wide.csv").write_text(WIDE)
        result = call("ingest", str(tmp_path / "wide.csv"), "--database", str(tmp_path / "new.db"), "--no-mlflow")
        assert "the benchmark is unknown.\nName it with --benchmark NAME." in result.stderr
        assert [file.name for file in tmp_path.iterdir()] == ["wide.csv"]

    def test_it_ends_with_the_next_step(self, tmp_path: Path) -> None:
        file = tmp_path / "wide.csv"
        file.write_text(WIDE)
        common = ("ingest", str(file), "--database", str(tmp_path / "new.db"), "--no-mlflow")
        dry = call(*common, "--benchmark", "my bench", "--dry-run")
        assert dry.stderr.endswith("Nothing is stored. Next: the same command without --dry-run\n")
        assert not (tmp_path / "new.db").exists()
        assert call(*common, "--benchmark", "my bench").stderr.endswith("Next: suffrage leaderboard 'my bench'\n")
        second = call(*common, "--benchmark", "my bench", "--metric", "f1", "--new-metric").stderr
        assert second.endswith("Next: suffrage leaderboard 'my bench'\n")
        file.write_text("prompt_id,question,answer\np,Why?,b\n")
        assert call(*common, "--benchmark", "other").stderr.endswith("Next: suffrage benchmarks\n")
