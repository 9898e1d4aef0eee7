"""An export format is one module: its signature declares the command, its docstring is the help."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import PluginError
from tracker.exporting.declaration import TABLE_FORMATS, load_export
from tracker.exporting.registry import GROUP, discover_exports, list_formats

TASK_COUNTS = '''
"""Write how many prompts each task has.

A second paragraph.
"""
from typing import Annotated

import pyarrow as pa
from sqlalchemy.orm import Session

from tracker.exporting.declaration import export
from tracker.exporting.table_files import StreamedTable


@export
def export_task_counts(
    session: Session, benchmark: str, *, factor: Annotated[int, "multiplies the counts"] = 1
) -> StreamedTable:
    return StreamedTable.from_table(pa.table({"task": [benchmark], "n": [3 * factor]}), ["A warning."])
'''

LATEX = '''
"""Task counts as LaTeX."""
from collections.abc import Mapping
from typing import Annotated, Any

from sqlalchemy.orm import Session

from tracker.errors import OptionsError
from tracker.exporting.declaration import export
from tracker.exporting.outputs import TextFile


def check_factor(options: Mapping[str, Any]) -> None:
    if options["factor"] < 0:
        raise OptionsError("LaTeX counts upwards.")


@export(format_of="task-counts", suffix=".tex", check=check_factor)
def export_latex(
    session: Session, benchmark: str, *, factor: int, bold: Annotated[bool, "in bold face"] = False
) -> TextFile:
    return TextFile(content=f"{'bold ' if bold else ''}{benchmark} & {3 * factor}\\n".encode())
'''


@pytest.fixture
def database(sqlite_url: str) -> str:
    """The address of an empty store."""
    connect(sqlite_url).dispose()
    return sqlite_url


def invoke(database: str, *arguments: str) -> Result:
    return CliRunner().invoke(suffrage, ["export", *arguments, "--database", database])


class TestRegistry:
    def test_ours_are_found_without_an_entry_point(self) -> None:
        assert set(discover_exports()) == {"archive", "filter", "findings", "prompts", "runs", "scores", "weights"}
        assert [plugin.name for plugin in list_formats("scores")] == ["every-eval-ever"]
        assert [plugin.name for plugin in list_formats("filter")] == ["lm-eval"]

    @pytest.mark.parametrize("name", sorted(discover_exports()))
    def test_every_export_declares_its_command(self, name: str) -> None:
        export = load_export(name)
        assert export.main.help.startswith("Export ")
        assert all(option.help for option in export.main.options)
        assert set(export.formats) >= set(TABLE_FORMATS if name != "archive" else ())


class TestPlugin:
    def test_one_file_is_a_command(self, install, database: str, tmp_path: Path) -> None:
        install("outside", {"task_counts": TASK_COUNTS}, group=GROUP)
        overview = " ".join(CliRunner().invoke(suffrage, ["export", "--help"]).stdout.split())
        assert "task-counts Write how many prompts each task has." in overview
        result = invoke(database, "task-counts", "b", "--factor", "2")
        assert (result.stdout, result.stderr) == ("task,n\nb,6\n", "Warning: A warning.\n")
        path = tmp_path / "counts.jsonl"
        assert invoke(database, "task-counts", "b", "-o", str(path)).stderr.endswith(f"Wrote {path}: 1 row.\n")
        assert path.read_text() == '{"task": "b", "n": 3}\n'

    def test_one_file_is_a_further_format_of_a_command(self, install, database: str, tmp_path: Path) -> None:
        install("outside", {"task_counts": TASK_COUNTS, "latex": LATEX}, group=GROUP)
        assert "latex" not in discover_exports()
        assert invoke(database, "task-counts", "b", "--format", "latex", "--bold").stdout == "bold b & 3\n"
        path = tmp_path / "counts.tex"
        invoke(database, "task-counts", "b", "-o", str(path))
        assert path.read_text() == "b & 3\n"
        for options, message in (
            (["--bold"], "--bold belongs to --format latex."),
            (["--format", "latex", "--factor", "-1"], "LaTeX counts upwards."),
        ):
            result = invoke(database, "task-counts", "b", *options)
            assert result.exit_code == 2
            assert message in result.output


class TestErrors:
    @pytest.mark.parametrize(
        ("signature", "words"),
        [
            ("session: Session) -> None", r"it returns NoneType; it can return one of StreamedTable"),
            ("benchmark: str) -> StreamedTable", r"its first parameter must be the session"),
            ("session: Session, x) -> StreamedTable", r"x has no annotation"),
            ("session: Session, *, force: bool) -> StreamedTable", r"force is an option that every"),
        ],
    )
    def test_a_broken_one_explains_itself_and_costs_only_itself(self, install, signature: str, words: str) -> None:
        source = TASK_COUNTS.partition("@export\n")[0] + f"@export\ndef broken({signature}: ...\n"
        install("bad", {"broken": source, "sound": TASK_COUNTS}, group=GROUP)
        result = CliRunner().invoke(suffrage, ["export", "broken"])
        assert isinstance(result.exception, PluginError)
        assert result.exception.args[0].startswith("The export")
        with pytest.raises(PluginError, match=words):
            raise result.exception
        assert load_export("sound").main.name == "sound"
