"""List the models in the store."""

from __future__ import annotations

import click

from tracker.cli.options import database_option, format_option
from tracker.cli.output import print_rows


@click.command()
@database_option
@format_option
def command(database: str | None, output_format: str) -> None:
    """List the models in the store: who made them, how often they were run, on what."""
    from tracker.database import connect, transaction
    from tracker.queries.catalogue import models

    with transaction(connect(database), write=False) as session:
        rows = models(session)
    columns = None if output_format != "table" else ("name", "organization", "parameters", "n_runs", "benchmarks")
    print_rows(rows, output_format, columns=columns)
