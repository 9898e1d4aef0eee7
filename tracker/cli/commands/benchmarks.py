"""List the benchmarks in the store."""

from __future__ import annotations

import click

from tracker.cli.options import database_option, format_option
from tracker.cli.output import print_rows


@click.command()
@database_option
@format_option
def command(database: str | None, output_format: str) -> None:
    """List the benchmarks in the store: tasks, prompts, models, runs, metrics."""
    from tracker.database import connect, transaction
    from tracker.queries.catalogue.listing import list_benchmarks

    with transaction(connect(database, create=False), write=False) as session:
        print_rows(list_benchmarks(session), output_format, spare=("n_with_text", "n_tasks"))
