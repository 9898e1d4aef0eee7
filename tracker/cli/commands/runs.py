"""List the runs in the store, the latest first."""

from __future__ import annotations

import click

from tracker.cli.options import database_option, format_option
from tracker.cli.output import print_rows

SHOWN = ("id", "benchmark", "model", "condition", "label", "status", "n_scores", "means", "ingested")
SPARE = ("status", "ingested", "label", "condition")


@click.command()
@click.option("--benchmark", metavar="NAME", help="Only runs of this benchmark.")
@click.option("--model", metavar="NAME", help="Only runs of this model.")
@database_option
@format_option
def command(benchmark: str | None, model: str | None, database: str | None, output_format: str) -> None:
    """List the runs in the store, the latest first."""
    from tracker.database import connect, transaction
    from tracker.queries.catalogue import runs

    with transaction(connect(database), write=False) as session:
        rows = runs(session, benchmark=benchmark, model=model)
    print_rows(rows, output_format, columns=SHOWN if output_format == "table" else None, spare=SPARE)
