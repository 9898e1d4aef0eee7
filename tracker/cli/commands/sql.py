"""The command `suffrage sql`."""

from __future__ import annotations

from contextlib import ExitStack

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option
from tracker.cli.output import print_rows, warn
from tracker.cli.progress import show_activity


@click.command(cls=Command)
@click.argument("statement")
@click.option("--max-rows", type=click.IntRange(min=1), show_default="all", help="Largest number of rows to return.")
@click.option(
    "--limit-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Largest time in seconds that the query may take.",
)
@click.option(
    "--max-megabytes",
    type=click.FloatRange(min=0, min_open=True),
    default=500.0,
    show_default=True,
    help="Largest size of the result.",
)
@database_option
@format_option
def command(
    statement: str,
    max_rows: int | None,
    limit_seconds: float,
    max_megabytes: float,
    database: str | None,
    output_format: str,
) -> None:
    """Query the store with read-only SQL.

    The database engine rejects every statement that writes. The view `leaderboard` has the intervals of `suffrage
    leaderboard`. Tables, views and example queries: docs/how-to/sql.md.

    Examples:
        suffrage sql "SELECT * FROM leaderboard WHERE benchmark = 'mmlu_pro'"
        suffrage sql "SELECT model, mean FROM leaderboard WHERE benchmark = 'mmlu_pro'" --format csv
    """
    from tracker.database import connect
    from tracker.queries.sql.read_only import read_only_sql

    with ExitStack() as stack:
        with show_activity("querying"):
            query = read_only_sql(
                connect(database, create=False),
                statement,
                limit_seconds=limit_seconds,
                max_rows=max_rows,
                max_bytes=round(max_megabytes * 1e6),
            )
            result = stack.enter_context(query)
        print_rows(result.rows, output_format, columns=result.columns)
        for warning in result.warnings:
            warn(warning)
