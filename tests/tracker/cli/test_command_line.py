"""The command line: light to start, documented whole, one sentence for what a user can mend."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tracker.cli import COMMANDS, main, suffrage
from tracker.errors import SuffrageError

ROOT = Path(__file__).parents[3]
HEAVY = {"numpy", "pandas", "pyarrow", "sqlalchemy", "sqlmodel", "alembic", "mlflow", "numba", "matplotlib", "rich"}
NAMES = sorted(path.stem.replace("_", "-") for path in COMMANDS.glob("[a-z]*.py"))
FIXED = {
    "db": ("backup", "check", "copy", "current", "downgrade", "restore", "upgrade", "verify"),
    "export": ("archive", "filter", "findings", "prompts", "runs", "scores", "weights"),
    "formats": ("check", "list"),
    "metrics": ("default", "delete", "list", "rename"),
    "models": ("import", "list", "merge", "related", "unmerge"),
    "prompts": ("check", "import", "list"),
    "responses": ("erase",),
    "runs": ("delete", "hide", "list", "show", "supersede", "unhide"),
    "tasks": ("alias", "list", "unalias"),
}
"""Commands of each group whose commands no other package brings."""


def load_command(name: str) -> click.Command:
    """A command of the command line."""
    command = suffrage.get_command(click.Context(suffrage), name)
    assert command is not None
    return command


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(suffrage, arguments)
    if isinstance(result.exception, SuffrageError):
        result.exit_code = 1
    elif result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def imported_by(*arguments: str) -> set[str]:
    """Top-level packages that a command imports, in a fresh interpreter."""
    code = (
        "import sys, json, contextlib\nfrom tracker.cli import suffrage\n"
        "from tracker.errors import SuffrageError\n"
        f"with contextlib.suppress(SystemExit, SuffrageError):\n    suffrage.main({list(arguments)!r})\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


class TestStartUp:
    def test_the_overview_imports_nothing_heavy(self) -> None:
        assert imported_by("--help") & HEAVY == set()

    def test_the_list_of_analyses_imports_nothing_heavy(self) -> None:
        assert imported_by("analyze", "--help") & {"numba", "mlflow", "matplotlib", "pandas", "scipy"} == set()

    def test_the_leaderboard_imports_neither_mlflow_nor_pandas(self, sqlite_url: str) -> None:
        heavy = {"mlflow", "pandas", "matplotlib", "numba", "statsmodels", "alembic"}
        assert imported_by("leaderboard", "none", "--database", sqlite_url) & heavy == set()


class TestDocumentation:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_command_explains_itself(self, name: str) -> None:
        printed = run(name, "--help")
        assert printed.exit_code == 0
        assert "Usage: suffrage" in printed.output or "Usage: " in printed.output
        assert len(printed.output.splitlines()) > 4

    def test_these_are_all_commands_and_groups(self) -> None:
        groups = {name: command for name in NAMES if isinstance(command := load_command(name), click.Group)}
        assert set(groups) == {*FIXED, "analyze", "simulate"}
        assert {name: group.list_commands(click.Context(group)) for name, group in groups.items() if name in FIXED} == {
            name: sorted(commands) for name, commands in FIXED.items()
        }

    @pytest.mark.parametrize("name", ["formats", "metrics", "models", "runs"])
    def test_a_bare_group_lists(self, name: str, sqlite_url: str) -> None:
        database = ["--database", sqlite_url] if name != "formats" else []
        assert run(name, *database).output == run(name, "list", *database).output

    def test_every_option_has_help(self) -> None:
        def silent(command: click.Command, path: str) -> list[str]:
            stored = [
                f"{path} {p.name}"
                for p in command.params
                if isinstance(p, click.Option) and not p.help and not p.hidden
            ]
            if isinstance(command, click.Group):
                context = click.Context(command)
                for name in command.list_commands(context):
                    child = command.get_command(context, name)
                    assert child is not None
                    stored += silent(child, f"{path} {name}")
            return stored

        assert silent(suffrage, "suffrage") == []


class TestErrors:
    def test_what_a_user_can_mend_has_no_traceback(self, sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(["leaderboard", "nowhere", "--database", sqlite_url])
        assert stopped.value.code == 1
        message = capsys.readouterr().err
        assert message.startswith("Error: No benchmark 'nowhere'")
        assert "Traceback" not in message

    def test_a_full_disk_behind_stdout_is_one_sentence(self, sqlite_url: str) -> None:
        command = f"{sys.executable} -m tracker.cli db current --database {sqlite_url} > /dev/full"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: the output could not be written: No space left")
        assert len(done.stderr.splitlines()) == 1

    @pytest.mark.parametrize(
        ("closed", "code", "stderr"),
        [
            (">&-", 1, "Error: the output could not be written: Bad file descriptor. Send it somewhere else.\n"),
            ("2>&-", 0, ""),
            ("<&- >&- 2>&-", 1, ""),
        ],
    )
    def test_a_result_without_stdout_is_an_error_and_stderr_may_be_closed(
        self, sqlite_url: str, closed: str, code: int, stderr: str
    ) -> None:
        command = f"{sys.executable} -m tracker.cli benchmarks --format json --database {sqlite_url} {closed}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, stderr)
        assert Path(sqlite_url.removeprefix("sqlite:///")).read_bytes().startswith(b"SQLite format 3")

    @pytest.mark.parametrize(
        "url", ["mysql://u:secret@h/d", "postgresql://u:secret@127.0.0.1:1/d", "postgres://u:secret@127.0.0.1:1/d"]
    )
    def test_passwords_are_never_printed(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(["benchmarks", "--database", url])
        assert stopped.value.code == 1
        out = capsys.readouterr()
        assert "secret" not in out.out + out.err
        assert "Error: " in out.err


class TestSettings:
    def test_the_flag_goes_before_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from tracker.connections.store_url import database_url

        assert database_url() == "sqlite:///suffrage.db"
        monkeypatch.setenv("DATABASE_URL", "sqlite:///general.db")
        assert database_url() == "sqlite:///general.db"
        monkeypatch.setenv("SUFFRAGE_DATABASE_URL", "postgres://host/name")
        assert database_url() == "postgresql+psycopg://host/name"
        assert database_url("sqlite:///flag.db") == "sqlite:///flag.db"

    def test_looking_at_nothing_makes_no_file(self, tmp_path: Path) -> None:
        assert run("db", "current", "--database", f"sqlite:///{tmp_path}/none.db").exit_code == 0
        assert list(tmp_path.iterdir()) == []


class TestData:
    def test_csv_is_read_back_as_it_was_whatever_breaks_the_lines_of_a_text(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/new.db"
        run("db", "upgrade", "--database", url)
        breaks = "'one' || char(13) || 'two', 'one' || char(10) || 'two', 'one' || char(13) || char(10) || 'two'"
        message = run("sql", f"SELECT {breaks}", "--format", "csv", "--database", url).stdout_bytes.decode()
        assert message.endswith('two"\n')
        _, row = csv.reader(io.StringIO(message, newline=""))
        assert row == ["one\rtwo", "one\ntwo", "one\r\ntwo"]


class TestStore:
    def test_upgrade_makes_a_store_that_check_finds_sound(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/new.db"
        assert "Upgraded from nothing" in run("db", "upgrade", "--database", url).stderr
        assert "Already at version" in run("db", "upgrade", "--database", url).stderr
        checked = run("db", "check", "--database", url)
        assert checked.exit_code == 0
        assert "Sound" in checked.stderr
