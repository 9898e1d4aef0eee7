"""The command `suffrage runs`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracker.cli.changed_runs import describe_findings, update_mlflow
from tracker.cli.help_text import Command
from tracker.cli.listing_group import listing_group
from tracker.cli.options import database_option, format_option, mlflow_options
from tracker.cli.output import format_value, inform, join_lines, print_record, print_rows
from tracker.cli.progress import show_activity
from tracker.run_fields import RUN_FIELDS

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.recording.run_status import DeletionPreview, StatusChange

COLUMNS: tuple[str, ...] = ("id", "benchmark", "model", "condition", "label", "status", "n_scores", "means", "ingested")
OPTIONAL_COLUMNS = tuple(name for name in RUN_FIELDS if name not in ("condition", "label", "settings", "started"))
"""Columns that are printed where a run has a value there."""
DROP_ORDER = ("status", "ingested", "label", "limited", "few_shot", "condition")
MAX_NAMES = 8

F = TypeVar("F", bound=Callable[..., Any])


def _change_options(function: F) -> F:
    for option in (
        mlflow_options,
        database_option,
        click.option("--reason", metavar="TEXT", help="Reason for the change; it is stored and shown."),
    ):
        function = option(function)
    return function


run_ids_argument = click.argument("keys", metavar="ID...", nargs=-1, required=True, type=click.IntRange(min=1))


@click.command("list", cls=Command)
@click.option("--benchmark", metavar="NAME", show_default="all", help="Name of a benchmark.")
@click.option("--model", metavar="NAME", show_default="all", help="Name of a model.")
@click.option("--all", "every", is_flag=True, help="Include hidden and superseded runs.")
@database_option
@format_option
def list_runs(benchmark: str | None, model: str | None, every: bool, database: str | None, output_format: str) -> None:
    """List the runs in the store, latest first.

    A hidden or superseded run stays in the store and is used only if --runs names it. Findings computed from such a run
    become stale.

    Examples:
        suffrage runs list
        suffrage runs list --benchmark mmlu_pro --all
    """
    from tracker.database import connect, transaction
    from tracker.queries.catalogue import listing

    with show_activity("runs"), transaction(connect(database, create=False), write=False) as session:
        rows = listing.list_runs(session, benchmark=benchmark, model=model)
    rows_to_print = [row for row in rows if every or row.status not in listing.EXCLUDED_STATUSES]
    columns = COLUMNS
    if any(row.reason or row.superseded_by for row in rows_to_print):
        columns = (*COLUMNS, "superseded_by", "reason")
    optional = [name for name in OPTIONAL_COLUMNS if any(getattr(row, name) for row in rows_to_print)]
    at = columns.index("label")
    columns = (*columns[:at], *optional, *columns[at:])
    if any(row.unverified for row in rows_to_print):
        columns = (*columns, "unverified")
    records = [row.as_record() for row in rows_to_print]
    scope = f" of {model}" * bool(model) + f" on {benchmark}" * bool(benchmark)
    print_rows(
        records,
        output_format,
        columns=columns if output_format == "table" else None,
        drop_order=DROP_ORDER,
        if_empty="Every run is hidden or superseded."
        if rows
        else f"No runs{scope} yet. Import results: `suffrage ingest RESULTS --benchmark {benchmark or 'NAME'}`",
    )
    if n := len(rows) - len(rows_to_print):
        inform(f"Not listed: {n} hidden or superseded. List them with --all.")


@listing_group(list_runs)
def command() -> None:
    """List the runs in the store, latest first.

    A hidden or superseded run stays in the store and is used only if --runs names it. Findings computed from such a run
    become stale.

    Examples:
        suffrage runs
        suffrage runs --benchmark mmlu_pro --all
    """


@command.command()
@click.argument("key", metavar="ID", type=int)
@database_option
@format_option
def show(key: int, database: str | None, output_format: str) -> None:
    """Show a run: model, settings, source files and status.

    Also lists the findings that are computed from the run.

    Examples:
        suffrage runs show 1
        suffrage runs show 1 --format json
    """
    from tracker.database import connect, transaction
    from tracker.queries.catalogue.listing import find_run
    from tracker.recording.run_status import preview_deletion

    with show_activity(f"run {key}"), transaction(connect(database, create=False), write=False) as session:
        run = find_run(session, key)
        preview = preview_deletion(session, [key])
    counts = {
        "n_answers": preview.n_answers,
        "n_task_scores": preview.n_task_scores,
        "findings": list(preview.finding_ids),
    }
    record = {**run.as_record(), **counts}
    if output_format == "table":
        record = {name: value for key, field in record.items() for name, value in _flatten_settings(key, field)}
    print_record(record, output_format)


@command.command()
@run_ids_argument
@_change_options
def hide(keys: tuple[int, ...], reason: str | None, database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Exclude runs from everything that does not name them.

    The runs stay in the store; `suffrage runs unhide` reverses this.

    Examples:
        suffrage runs hide 1 2 --reason "wrong prompt template" --no-mlflow
    """
    from tracker.database import connect, transaction
    from tracker.recording import run_status

    engine = connect(database, create=False)
    with show_activity("hiding runs"), transaction(engine, exclusive=True) as session:
        change = run_status.hide(session, keys, reason)
    _report_change(engine, change, "hidden", None if no_mlflow else tracking_uri)


@command.command()
@run_ids_argument
@database_option
@mlflow_options
def unhide(keys: tuple[int, ...], database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Use hidden or superseded runs again.

    Examples:
        suffrage runs unhide 4 --no-mlflow
    """
    from tracker.database import connect, transaction
    from tracker.recording import run_status

    engine = connect(database, create=False)
    with show_activity("restoring runs"), transaction(engine, exclusive=True) as session:
        change = run_status.restore(session, keys)
    _report_change(engine, change, "in use again", None if no_mlflow else tracking_uri)


@command.command()
@click.argument("old", metavar="OLD", type=int)
@click.option("--by", metavar="NEW", type=int, required=True, help="ID of the run that replaces OLD.")
@_change_options
def supersede(old: int, by: int, reason: str | None, database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Replace a run by another of the same model and benchmark.

    The old run stays in the store but is no longer used.

    Examples:
        suffrage runs supersede 1 --by 2 --reason "rerun with fixed harness" --no-mlflow
    """
    from tracker.database import connect, transaction
    from tracker.recording import run_status

    engine = connect(database, create=False)
    with show_activity("replacing a run"), transaction(engine, exclusive=True) as session:
        change = run_status.supersede(session, old, by, reason)
    _report_change(engine, change, f"superseded by run {by}", None if no_mlflow else tracking_uri)


@command.command()
@run_ids_argument
@click.option("--yes", is_flag=True, help="Delete without confirmation; required without a terminal.")
@_change_options
def delete(
    keys: tuple[int, ...], yes: bool, reason: str | None, database: str | None, tracking_uri: str, no_mlflow: bool
) -> None:
    """Delete runs with their scores and answers permanently.

    Prompts, models and findings stay; findings computed from the runs become stale.

    Examples:
        suffrage runs delete 1 --yes --no-mlflow
    """
    from tracker.database import connect, transaction
    from tracker.recording import run_status

    engine = connect(database, create=False)
    with show_activity("counting what is deleted"), transaction(engine, write=False) as session:
        preview = run_status.preview_deletion(session, keys)
    _print_deletion(preview)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(
                "Nothing was deleted, since there is no terminal to confirm on. Add --yes to delete."
            )
        click.confirm("Delete permanently?", abort=True, err=True)
    with show_activity("deleting runs"), transaction(engine, exclusive=True) as session:
        change = run_status.delete(session, keys, reason)
    _report_change(engine, change, "deleted", None if no_mlflow else tracking_uri)


def _flatten_settings(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Nested settings one by one, each in a line that can be read; --format json has them whole."""
    if name.partition(".")[0] != "settings" or value is None:
        yield name, value
    elif isinstance(value, dict):
        for part, setting in value.items():
            yield from _flatten_settings(f"{name}.{part}", setting)
    else:
        yield name, join_lines(format_value(value))


def _print_deletion(preview: DeletionPreview) -> None:
    """Report what a deletion removes."""
    for run in preview.runs:
        inform(f"run {run.id}: {run.model} on {run.benchmark} {run.label}".rstrip())
    counts = (
        (preview.n_scores, "scores"),
        (preview.n_task_scores, "scores of whole tasks"),
        (preview.n_answers, "answers"),
    )
    gone = ", ".join(f"{n:,} {noun}" for n, noun in counts if n) or "no scores"
    inform(f"Also deleted: {gone}. Prompts, models and findings stay.")
    if preview.finding_ids:
        inform(f"Stale after the deletion: {describe_findings(preview.finding_ids)}.")


def _report_change(engine: Engine, change: StatusChange, state: str, publish_to: str | None) -> None:
    """Report what has changed, and update MLflow."""
    n = len(change.run_ids)
    inform(f"Run{'s' * (n > 1)} {format_value(change.run_ids)} {'is' if n == 1 else 'are'} {state}.")
    if change.stale:
        inform(f"Stale now: {describe_findings(change.stale)}. See why, and how to repeat it: `suffrage show ID`.")
    if change.sound:
        inform(f"No longer stale: {describe_findings(change.sound)}.")
    if publish_to is not None:
        update_mlflow(engine, change.run_ids, (*change.stale, *change.sound), publish_to)
