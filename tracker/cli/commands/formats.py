"""The command `suffrage formats`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.listing_group import listing_group
from tracker.cli.options import format_option
from tracker.cli.output import print_rows


@click.command("list", cls=Command)
@format_option
def list_formats(output_format: str) -> None:
    """List the file formats that can be imported.

    Each row describes the files of a format, how they are detected, and the package that provides it.

    Examples:
        suffrage formats list
        suffrage formats list --format csv
    """
    from tracker.ingest.format_registry import describe_formats

    print_rows(describe_formats(), output_format, drop_order=("package",))


@listing_group(list_formats)
def command() -> None:
    """List the file formats that can be imported.

    Each row describes the files of a format, how they are detected, and the package that provides it.

    Examples:
        suffrage formats
        suffrage formats --format csv
    """
