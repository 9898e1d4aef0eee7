"""List the analyses that can be run."""

from __future__ import annotations

import click

from tracker.cli.options import format_option
from tracker.cli.output import print_rows

COLUMNS = ("name", "description", "package")


@click.command()
@format_option
def command(output_format: str) -> None:
    """List the analyses that can be run: `suffrage analyze NAME --help` describes one."""
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
