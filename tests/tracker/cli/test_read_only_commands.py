"""Commands that only read need a store, and never create one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tracker.cli import main, suffrage

CREATE = {
    "demo",
    "db copy",
    "db restore",
    "db upgrade",
    "ingest",
    "prompts import",
    "simulate constant",
    "simulate random",
}
"""Commands that create a store where there is none."""
REPORT = {"db current": 0, "doctor": 2}
"""Commands that report that there is no store, and their exit codes."""
WITHOUT_STORE = {
    "analyses", "completion", "config", "db verify", "formats", "formats check", "formats list", "gate", "init", "ui",
}  # fmt: skip
"""Commands that use no store, or take stores as arguments."""


def list_commands(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that can be called, with its words after ``suffrage``."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from list_commands(child, f"{path} {name}".strip())


COMMANDS = dict(list_commands(suffrage))
READING = sorted(set(COMMANDS) - CREATE - set(REPORT) - WITHOUT_STORE)


def make_arguments(path: str, command: click.Command) -> list[str]:
    """A complete command line, on a store that does not exist."""
    arguments = path.split()
    for parameter in command.params:
        value = "1" if isinstance(parameter.type, click.types.IntParamType) else "x"
        if isinstance(parameter.type, click.Choice):
            value = str(parameter.type.choices[0])
        if parameter.name == "output":
            value = "x.csv" if path.startswith("export") else "x.html"
        if isinstance(parameter.type, click.types.FloatParamType):
            value = "0.5"
        if isinstance(parameter, click.Argument) and path != "serve":  # its benchmarks need --export
            arguments += ["x", "y", "z"] if path == "compare" else [value]
        elif parameter.required or (parameter.name == "output" and path == "export archive"):
            arguments += [parameter.opts[-1], value]
    if any(parameter.name == "no_mlflow" for parameter in command.params):
        arguments.append("--no-mlflow")
    return [*arguments, "--database", "none.db"]


def run_in(folder: Path, arguments: list[str]) -> int | str | None:
    """Exit code of a command, which must leave the folder as it is."""
    before = sorted(os.listdir(folder))
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert sorted(os.listdir(folder)) == before
    return stopped.value.code


def test_every_command_is_listed_once() -> None:
    assert set(COMMANDS) >= CREATE | set(REPORT) | WITHOUT_STORE
    assert len(READING) > 40
    for path in READING:
        assert any("--database" in parameter.opts for parameter in COMMANDS[path].params), path


@pytest.mark.parametrize("path", READING)
def test_a_command_that_reads_fails_without_a_store_and_creates_none(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_in(tmp_path, make_arguments(path, COMMANDS[path])) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Error: No store at none.db. Create one with `suffrage ingest ")
    assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize("path", REPORT)
def test_a_command_that_reports_on_the_store_creates_none(path: str, tmp_path: Path) -> None:
    assert run_in(tmp_path, make_arguments(path, COMMANDS[path])) == REPORT[path]


class TestIngest:
    @pytest.fixture
    def results(self, tmp_path: Path) -> Path:
        path = tmp_path / "scores.csv"
        path.write_text("prompt_id,a,b\nq1,1,0\nq2,1,1\n")
        return path

    def test_a_dry_run_creates_no_store(
        self, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        options = ["--benchmark", "quiz", "--metric", "accuracy", "--database", "none.db"]
        assert run_in(tmp_path, ["ingest", str(results), *options, "--dry-run"]) == 0
        assert "2 new prompts" in capsys.readouterr().err

    def test_a_path_that_does_not_exist_creates_no_store(self, tmp_path: Path) -> None:
        assert run_in(tmp_path, ["ingest", "nowhere.csv", "--benchmark", "b", "--database", "none.db"]) == 1
