"""The command `suffrage metrics`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tracker.cli.changed_runs import describe_findings, update_mlflow
from tracker.cli.help_text import Command
from tracker.cli.listing_group import listing_group
from tracker.cli.options import database_option, format_option, mlflow_options
from tracker.cli.output import inform, print_rows
from tracker.cli.progress import show_activity
from tracker.name_lists import join_names

if TYPE_CHECKING:
    from tracker.recording.metric_changes import MetricDeletion

MAX_NAMES = 8
yes_option = click.option("--yes", is_flag=True, help="Delete without confirmation; required without a terminal.")


@click.command("list", cls=Command)
@database_option
@format_option
def list_metrics(database: str | None, output_format: str) -> None:
    """List the metrics of each benchmark.

    The default metric of a benchmark is used by commands that name no metric. It is the first one that was stored,
    unless `suffrage metrics default` chose another.

    Examples:
        suffrage metrics list
        suffrage metrics list --format json
    """
    from tracker.database import connect, transaction
    from tracker.queries.catalogue.metrics import list_benchmark_metrics

    with show_activity("metrics"), transaction(connect(database, create=False), write=False) as session:
        rows = list_benchmark_metrics(session)
    print_rows(
        rows, output_format, if_empty="No metrics yet. Import results: `suffrage ingest RESULTS --benchmark NAME`"
    )


@listing_group(list_metrics)
def command() -> None:
    """List the metrics of each benchmark.

    The default metric of a benchmark is used by commands that name no metric. It is the first one that was stored,
    unless `suffrage metrics default` chose another.

    Examples:
        suffrage metrics
        suffrage metrics --format json
    """


@command.command()
@click.argument("benchmark")
@click.argument("metric")
@database_option
def default(benchmark: str, metric: str, database: str | None) -> None:
    """Choose the default metric of a benchmark.

    Commands that name no metric use it and report it.

    Examples:
        suffrage metrics default mmlu_pro accuracy
    """
    from tracker.database import connect, transaction
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.metric_changes import set_default_metric

    with show_activity("metrics"), transaction(connect(database, create=False), exclusive=True) as session:
        key = find_benchmark(session, benchmark)
        set_default_metric(session, key, metric)
    inform(f"The default metric of {key.label} is {metric}.")


@command.command()
@click.argument("old")
@click.argument("new")
@database_option
def rename(old: str, new: str, database: str | None) -> None:
    """Rename a metric in all benchmarks.

    Scores stay as they are. Selections of recorded findings get the new name too.

    Examples:
        suffrage metrics rename accuracy exact_match
    """
    from tracker.database import connect, transaction
    from tracker.recording.metric_changes import rename_metric

    with show_activity("metrics"), transaction(connect(database, create=False), exclusive=True) as session:
        rename_metric(session, old, new)
    inform(f"The metric {old} is named {new} now.")


@command.command()
@click.argument("benchmark")
@click.argument("metric")
@yes_option
@database_option
@mlflow_options
def delete(benchmark: str, metric: str, yes: bool, database: str | None, tracking_uri: str, no_mlflow: bool) -> None:
    """Delete all scores of a benchmark under a metric permanently.

    Runs without other scores or answers are deleted too. Prompts, models and findings stay; findings computed from the
    scores become stale. `suffrage undo` removes a whole import instead.

    Examples:
        suffrage metrics delete mmlu_pro accuracy --yes
    """
    from tracker.cli.previews import preview
    from tracker.database import connect, transaction
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.metric_changes import delete_metric

    engine = connect(database, create=False)
    with preview(engine) as session:
        _print_deletion(delete_metric(session, find_benchmark(session, benchmark), metric))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(
                "Nothing was deleted, since there is no terminal to confirm on. Add --yes to delete."
            )
        click.confirm("Delete permanently?", abort=True, err=True)
    with show_activity("metrics"), transaction(engine, exclusive=True) as session:
        deletion = delete_metric(session, find_benchmark(session, benchmark), metric)
    inform(f"The scores of {benchmark} under {metric} are deleted.")
    if not no_mlflow:
        update_mlflow(engine, deletion.run_ids, tuple(deletion.stale), tracking_uri)


def _print_deletion(deletion: MetricDeletion) -> None:
    counts = ((deletion.n_scores, "scores"), (deletion.n_task_scores, "scores of whole tasks"))
    gone = ", ".join(f"{n:,} {noun}" for n, noun in counts if n)
    inform(f"To delete: {gone} of {len(deletion.run_ids):,} runs.")
    if deletion.deleted_runs:
        inform(f"Runs with nothing else, deleted too: {join_names(deletion.deleted_runs, MAX_NAMES)}.")
    if deletion.stale:
        inform(f"Stale after the deletion: {describe_findings(deletion.stale)}.")
