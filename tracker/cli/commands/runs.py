"""List the runs in the store, the latest first; hide, supersede or delete some."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracker.cli.options import database_option, format_option, mlflow_options
from tracker.cli.output import format_value, in_one_line, inform, print_record, print_rows
from tracker.name_lists import join_names

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.recording.run_status import DeletionPreview, StatusChange

SHOWN = ("id", "benchmark", "model", "condition", "label", "status", "n_scores", "means", "ingested")
TELLING = ("variant", "few_shot", "limited")
"""Columns that are shown where a run has something there."""
SPARE = ("status", "ingested", "label", "limited", "few_shot", "condition")
N_NAMED = 8

F = TypeVar("F", bound=Callable[..., Any])


def _listing(function: F) -> F:
    for option in (
        format_option,
        database_option,
        click.option("--all", "every", is_flag=True, help="With those that were hidden or superseded."),
        click.option("--model", metavar="NAME", help="Only runs of this model."),
        click.option("--benchmark", metavar="NAME", help="Only runs of this benchmark."),
    ):
        function = option(function)
    return function


def _changing(function: F) -> F:
    for option in (
        mlflow_options,
        database_option,
        click.option("--reason", metavar="TEXT", help="Why, in words; it is kept and shown."),
    ):
        function = option(function)
    return function


KEYS = click.argument("keys", metavar="ID...", nargs=-1, required=True, type=click.IntRange(min=1))


@click.group(invoke_without_command=True)
@_listing
@click.pass_context
def command(ctx: click.Context, /, **listing: Any) -> None:
    """List the runs in the store, the latest first; or set some aside.

    A hidden or superseded run stays in the store and is taken only where it is named with --runs. Findings
    that rest on a run that was hidden, superseded or deleted say that they are stale.
    """
    if ctx.invoked_subcommand is None:
        _list(**listing)
        return
    given = [name for name in listing if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    if given:
        raise click.UsageError(f"Give the options after the word {ctx.invoked_subcommand}.", ctx)


@command.command("list")
@_listing
def list_(**listing: Any) -> None:
    """List the runs, the latest first."""
    _list(**listing)


@command.command()
@click.argument("key", metavar="ID", type=int)
@database_option
@format_option
def show(key: int, database: str | None, output_format: str) -> None:
    """Show one run whole: model, settings, files, means, status, and the findings that rest on it."""
    import dataclasses

    from tracker.database import connect, transaction
    from tracker.queries.catalogue.listing import find_run
    from tracker.recording.run_status import preview_deletion

    with transaction(connect(database), write=False) as session:
        found = find_run(session, key)
        held = preview_deletion(session, [key])
    counts = {"n_answers": held.n_answers, "n_task_scores": held.n_task_scores, "findings": list(held.finding_ids)}
    record = {**dataclasses.asdict(found), **counts}
    if output_format == "table":
        record = {name: value for key, told in record.items() for name, value in _parts(key, told)}
    print_record(record, output_format)


@command.command()
@KEYS
@_changing
def hide(keys: tuple[int, ...], reason: str | None, database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Leave runs out of everything that does not name them."""
    from tracker.database import connect, transaction
    from tracker.recording import run_status as set_aside

    engine = connect(database)
    with transaction(engine, exclusive=True) as session:
        change = set_aside.hide(session, keys, reason)
    _tell(engine, change, "hidden", None if no_mlflow else tracking_uri)


@command.command()
@KEYS
@database_option
@mlflow_options
def unhide(keys: tuple[int, ...], database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Take hidden or superseded runs back."""
    from tracker.database import connect, transaction
    from tracker.recording import run_status as set_aside

    engine = connect(database)
    with transaction(engine, exclusive=True) as session:
        change = set_aside.restore(session, keys)
    _tell(engine, change, "in use again", None if no_mlflow else tracking_uri)


@command.command()
@click.argument("old", metavar="OLD", type=int)
@click.option("--by", metavar="NEW", type=int, required=True, help="The run that takes its place.")
@_changing
def supersede(old: int, by: int, reason: str | None, database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Have a run stand in for another of the same model on the same benchmark."""
    from tracker.database import connect, transaction
    from tracker.recording import run_status as set_aside

    engine = connect(database)
    with transaction(engine, exclusive=True) as session:
        change = set_aside.supersede(session, old, by, reason)
    _tell(engine, change, f"superseded by run {by}", None if no_mlflow else tracking_uri)


@command.command()
@KEYS
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal to ask on.")
@_changing
def delete(
    keys: tuple[int, ...], yes: bool, reason: str | None, database: str | None, tracking_uri: str, no_mlflow: bool
) -> None:
    """Delete runs with their scores and answers; for good."""
    from tracker.database import connect, transaction
    from tracker.recording import run_status as set_aside

    engine = connect(database)
    with transaction(engine, write=False) as session:
        _warn(set_aside.preview_deletion(session, keys))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Nothing was deleted. To delete them, say so with --yes.")
        click.confirm("Delete them for good?", abort=True, err=True)
    with transaction(engine, exclusive=True) as session:
        change = set_aside.delete(session, keys, reason)
    _tell(engine, change, "deleted", None if no_mlflow else tracking_uri)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Nested settings one by one, each in a line that can be read; --format json has them whole."""
    if name.partition(".")[0] != "settings" or value is None:
        yield name, value
    elif isinstance(value, dict):
        for part, told in value.items():
            yield from _parts(f"{name}.{part}", told)
    else:
        yield name, in_one_line(format_value(value))


def _list(benchmark: str | None, model: str | None, every: bool, database: str | None, output_format: str) -> None:
    from tracker.database import connect, transaction
    from tracker.queries.catalogue.listing import SET_ASIDE, list_runs

    with transaction(connect(database), write=False) as session:
        rows = list_runs(session, benchmark=benchmark, model=model)
    shown = [row for row in rows if every or row.status not in SET_ASIDE]
    columns: tuple[str, ...] = SHOWN
    if any(row.reason or row.superseded_by for row in shown):
        columns = (*SHOWN, "superseded_by", "reason")
    more = [name for name in TELLING if any(getattr(row, name) for row in shown)]
    at = columns.index("label")
    columns = (*columns[:at], *more, *columns[at:])
    print_rows(shown, output_format, columns=columns if output_format == "table" else None, spare=SPARE)
    if n := len(rows) - len(shown):
        inform(f"Not listed: {n} hidden or superseded. --all lists them too.")


def _warn(going: DeletionPreview) -> None:
    for run in going.runs:
        inform(f"run {run.id}: {run.model} on {run.benchmark} {run.label}".rstrip())
    counts = (
        (going.n_scores, "scores"),
        (going.n_task_scores, "scores of whole tasks"),
        (going.n_answers, "answers"),
    )
    gone = ", ".join(f"{n:,} {what}" for n, what in counts if n) or "no scores"
    inform(f"With {'it' if len(going.runs) == 1 else 'them'} go {gone}. Prompts, models and findings stay.")
    if going.finding_ids:
        inform(f"Stale from then on: {_findings(going.finding_ids)}.")


def _tell(engine: Engine, change: StatusChange, state: str, publish_to: str | None) -> None:
    """Say what has changed, and have MLflow show it."""
    n = len(change.run_ids)
    inform(f"Run{'s' * (n > 1)} {format_value(change.run_ids)} {'is' if n == 1 else 'are'} {state}.")
    if change.stale:
        inform(f"Stale now: {_findings(tuple(change.stale))}. `suffrage show ID` says why, and how to ask again.")
    if change.sound:
        inform(f"No longer stale: {_findings(change.sound)}.")
    if publish_to is None:
        return
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.publishing import publish_changes

    try:
        publish_changes(engine, change.run_ids, (*change.stale, *change.sound), publish_to)
    except PublishingError as error:
        inform(f"Warning: {error}")


def _findings(keys: tuple[int, ...]) -> str:
    return f"finding{'s' * (len(keys) > 1)} {join_names(keys, N_NAMED)}"
