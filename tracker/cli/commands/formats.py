"""List the file formats that can be taken in, and what each recognises."""

from __future__ import annotations

import click

from tracker.cli.listing_group import listing_group
from tracker.cli.options import format_option
from tracker.cli.output import print_rows


@click.command("list")
@format_option
def list_formats(output_format: str) -> None:
    """List the file formats: what their files are, how they are recognised, who brings them."""
    from tracker.ingest.format_registry import describe_formats

    print_rows(describe_formats(), output_format, spare=("package",))


@listing_group(list_formats)
def command() -> None:
    """List the file formats that can be taken in: what their files are, how they are recognised, who brings them."""
