"""The command `suffrage benchmarks`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option
from tracker.cli.output import print_rows
from tracker.cli.progress import show_activity


@click.command(cls=Command)
@database_option
@format_option
def command(database: str | None, output_format: str) -> None:
    """List the benchmarks in the store.

    Each row counts the tasks, prompts, models and runs of a benchmark and names its metrics.

    Examples:
        suffrage benchmarks
        suffrage benchmarks --format csv
    """
    from tracker.database import connect, transaction
    from tracker.queries.catalogue.listing import list_benchmarks

    with show_activity("benchmarks"), transaction(connect(database, create=False), write=False) as session:
        rows = list_benchmarks(session)
    print_rows(
        rows,
        output_format,
        drop_order=("n_with_text", "n_tasks"),
        if_empty="No benchmarks yet. Import results: `suffrage ingest RESULTS --benchmark NAME`",
    )
