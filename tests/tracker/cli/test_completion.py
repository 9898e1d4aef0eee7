"""Completion by the shell: commands, options, and names in the store."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import tracker
from tracker.cli import suffrage
from tracker.cli.commands.completion import PROGRAM, VARIABLE
from tracker.cli.values.store_names import list_names

SCORES = "prompt_id,gpt-1,gpt-2,my model\np1,1,0,1\np2,1,1,0\n"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a benchmark and three models."""
    (tmp_path / "scores.csv").write_text(SCORES)
    url = f"sqlite:///{tmp_path}/names.db"
    with tracker.open(url) as store:
        store.ingest(tmp_path / "scores.csv", benchmark="quiz", metric="accuracy")
    monkeypatch.setenv("SUFFRAGE_DATABASE_URL", url)
    return url


def completed(*arguments: str) -> list[str]:
    """What the shell offers for the last word."""
    completion = ShellComplete(suffrage, {}, PROGRAM, VARIABLE)
    return [item.value for item in completion.get_completions([*arguments[:-1]], arguments[-1])]


@pytest.mark.usefixtures("url")
class TestNames:
    def test_of_benchmarks_and_models(self) -> None:
        assert completed("leaderboard", "") == ["quiz"]
        assert completed("leaderboard", "x") == []
        assert completed("leaderboard", "quiz", "--models", "gpt") == ["gpt-1", "gpt-2"]
        assert completed("history", "") == ["quiz", "gpt-1", "gpt-2"]
        assert completed("compare", "quiz", "gpt-1", "g") == ["gpt-1", "gpt-2"]
        assert completed("analyze", "rank-intervals", "q") == ["quiz"]
        assert completed("runs", "--model", "gpt-1") == ["gpt-1"]

    def test_a_list_continues_after_a_comma_without_repetition(self) -> None:
        assert completed("leaderboard", "quiz", "--models", "gpt-1,") == ["gpt-1,gpt-2"]

    def test_a_name_that_the_shell_would_split_is_left_out(self, url: str) -> None:
        assert "my model" in list_names(url, ("model",))
        assert "my model" not in completed("history", "")

    def test_are_those_of_the_store_that_the_command_line_names(self, tmp_path: Path) -> None:
        assert completed("leaderboard", "--database", f"sqlite:///{tmp_path}/none.db", "") == []
        assert not (tmp_path / "none.db").exists()

    def test_a_model_to_evaluate_is_not_completed(self) -> None:
        assert completed("evaluate", "quiz", "--model", "gpt") == []


class TestWithoutAStore:
    @pytest.mark.parametrize(
        "database",
        [
            "sqlite:///none.db",
            "nonsense",
            "sqlite:///junk.db",
            "postgresql://x@127.0.0.1:9/x",
            "sqlite:///empty.db",
            "sqlite:///damaged.db",
        ],
    )
    def test_nothing_is_offered_and_nothing_fails(self, database: str, tmp_path: Path) -> None:
        Path("junk.db").write_text("no database " * 200)
        Path("empty.db").touch()
        with contextlib.closing(sqlite3.connect("damaged.db")) as connection:
            connection.execute("CREATE TABLE benchmark (name TEXT)")
        Path("damaged.db").write_bytes(Path("damaged.db").read_bytes().replace(b"benchmark", b"\xed(nchmark"))
        assert completed("leaderboard", "--database", database, "") == []
        assert completed("lea") == ["leaderboard"]

    def test_a_wrong_settings_file_disturbs_nothing(self) -> None:
        Path("suffrage.toml").write_text("sed = 1\n")
        assert completed("leaderboard", "") == []
        assert "--metric" in completed("leaderboard", "--m")


class TestScripts:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_name_the_program_and_its_variable(self, shell: str) -> None:
        result = CliRunner().invoke(suffrage, ["completion", shell])
        assert result.exit_code == 0
        assert f"{VARIABLE}={shell}_complete" in result.stdout
        assert PROGRAM in result.stdout

    def test_bash_loads_its_script(self) -> None:
        bash = shutil.which("bash")
        assert bash is not None
        script = CliRunner().invoke(suffrage, ["completion", "bash"]).stdout
        check = f"{script}\ncomplete -p suffrage"
        result = subprocess.run([bash, "--norc", "-c", check], capture_output=True, text=True, check=True)
        assert "_suffrage_completion suffrage" in result.stdout
