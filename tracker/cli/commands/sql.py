"""Ask the store in SQL; nothing can be changed."""

from __future__ import annotations

import click

from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows


@click.command()
@click.argument("statement")
@click.option("--max-rows", type=click.IntRange(min=1), help="Stop after as many rows.")
@click.option(
    "--limit-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="How long the engine may work on it.",
)
@database_option
@format_option
def command(
    statement: str, max_rows: int | None, limit_seconds: float, database: str | None, output_format: str
) -> None:
    """Ask the store in SQL. The engine itself refuses to change anything.

    Queries to start from: docs/how-to/sql.md. A good first one:
    suffrage sql "select * from leaderboard"
    """
    from tracker.database import connect
    from tracker.queries.sql.read_only import read_only_sql

    with read_only_sql(
        connect(database, create=False), statement, limit_seconds=limit_seconds, max_rows=max_rows
    ) as result:
        print_rows(result.rows, output_format, columns=result.columns)
        for warning in result.warnings:
            inform(f"note: {warning}")
