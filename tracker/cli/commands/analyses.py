"""The command `suffrage analyses`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import format_option
from tracker.cli.output import print_rows

COLUMNS = ("name", "description", "package")


@click.command(cls=Command)
@format_option
def command(output_format: str) -> None:
    """List the available analyses.

    Each analysis is a subcommand of `suffrage analyze`. Other packages can add analyses through the entry point
    `suffrage.analyses`; the column `package` shows where each comes from.

    Examples:
        suffrage analyses
        suffrage analyses --format json
    """
    from tracker.recording.registry import discover_analyses

    rows = [
        {
            "name": plugin.name,
            "description": f"(not usable: {plugin.problem})" if plugin.problem else plugin.description,
            "package": plugin.distribution,
        }
        for plugin in discover_analyses().values()
    ]
    print_rows(rows, output_format, columns=COLUMNS)
