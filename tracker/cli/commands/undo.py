"""The command `suffrage undo`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from tracker.cli.changed_runs import describe_findings, update_mlflow
from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option, mlflow_options
from tracker.cli.output import inform, print_rows
from tracker.cli.progress import show_activity

if TYPE_CHECKING:
    from tracker.recording.undo.imports import ImportRow
    from tracker.recording.undo.removal import UndoResult

COLUMNS = ("source", "file", "format", "ingested", "n_prompts", "n_models", "n_runs")
NOUNS: Mapping[str, tuple[str, str]] = {
    "score": ("score", "scores"),
    "answer": ("answer", "answers"),
    "task_score": ("score of a whole task", "scores of whole tasks"),
    "run": ("run", "runs"),
    "prompt": ("prompt", "prompts"),
    "embedding": ("vector", "vectors"),
    "task": ("task", "tasks"),
    "task_alias": ("name of a task", "names of tasks"),
    "model": ("model", "models"),
    "model_alias": ("name of a model", "names of models"),
    "metric": ("metric", "metrics"),
    "encoder": ("encoder", "encoders"),
    "benchmark": ("benchmark", "benchmarks"),
}
"""Words for the rows of a table; other tables are not reported."""


@click.command(cls=Command)
@click.option(
    "--source",
    type=click.IntRange(min=1),
    metavar="ID",
    show_default="the latest import",
    help="Source of the import, as --list shows it.",
)
@click.option("--list", "listing", is_flag=True, help="List the imports that can be undone, and change nothing.")
@click.option("--dry-run", is_flag=True, help="Report what would be removed, and change nothing.")
@click.option("--yes", is_flag=True, help="Undo without confirmation; required without a terminal.")
@database_option
@format_option
@mlflow_options
def command(
    source: int | None,
    listing: bool,
    dry_run: bool,
    yes: bool,
    database: str | None,
    output_format: str,
    tracking_uri: str,
    no_mlflow: bool,
) -> None:
    """Remove exactly what an import added.

    Removes the scores, answers, runs, prompts, models, tasks and metrics that the import added, and restores the values
    that it changed. Findings that depended on them become stale. If later imports depend on them, the command fails and
    names the import to undo first. An undone file can be imported again.

    Examples:
        suffrage undo --dry-run
        suffrage undo --source 3 --yes
        suffrage undo --list
    """
    from tracker.cli.previews import preview
    from tracker.database import connect, transaction
    from tracker.recording.undo.imports import find_import, list_imports
    from tracker.recording.undo.removal import undo_import

    engine = connect(database, create=False)
    if listing:
        with transaction(engine, write=False) as session:
            print_rows(list_imports(session), output_format, columns=COLUMNS, if_empty="No import can be undone.")
        return
    with preview(engine) as session:
        chosen = find_import(session, source)
        with show_activity("looking what the import added"):
            result = undo_import(session, chosen)
        _print_result(chosen, result)
    if dry_run:
        inform("Dry run: nothing was changed.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Nothing was changed, since there is no terminal to confirm on. Add --yes to undo.")
        click.confirm("Remove permanently?", abort=True, err=True)
    with show_activity("removing"), transaction(engine, exclusive=True) as session:
        result = undo_import(session, find_import(session, source))
    inform(f"The {chosen.title} is undone.")
    if not no_mlflow:
        update_mlflow(engine, result.run_ids, (*result.stale, *result.sound), tracking_uri)


def _print_result(chosen: ImportRow, result: UndoResult) -> None:
    """Report what is removed, restored and kept."""
    of_source = "" if chosen.source is None else f", source {chosen.source}"
    details = "" if chosen.merged_models or chosen.task_alias else f" ({chosen.format}{of_source})"
    inform(f"{chosen.title[0].upper()}{chosen.title[1:]}{details}:")
    inform(f"  To remove: {_describe(result.removed) or 'no rows'}.")
    if result.n_restored:
        inform(f"  To restore: earlier values of {result.n_restored:,} row{'s' * (result.n_restored != 1)}.")
    if kept := _describe(result.kept):
        inform(f"  Kept, because findings refer to them: {kept}.")
    if result.stale:
        inform(f"  Stale after it: {describe_findings(result.stale)}. Run them again: `suffrage show ID` shows how.")
    if result.sound:
        inform(f"  No longer stale: {describe_findings(result.sound)}.")


def _describe(counts: Mapping[str, int]) -> str:
    parts = [(counts.get(table, 0), nouns) for table, nouns in NOUNS.items()]
    return ", ".join(f"{n:,} {nouns[n != 1]}" for n, nouns in parts if n)
