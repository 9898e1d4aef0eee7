"""The command `suffrage formats`."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.help_text import Command
from tracker.cli.listing_group import listing_group
from tracker.cli.options import format_option
from tracker.cli.output import inform, print_rows


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
    """List the importable file formats, or check a file against them.

    Each row describes the files of a format, how they are detected, and the package that provides it.

    Examples:
        suffrage formats
        suffrage formats --format csv
        suffrage formats check results.csv
    """


@command.command("check", cls=Command)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, readable=False))
@format_option
def check_file(path: Path, output_format: str) -> None:
    """Check which formats match a file, the nearest first.

    The first line names the format that `suffrage ingest` chooses. Each row has the reason why a format does not match,
    and the share of its features that the file has. Nothing is read beyond the start of the file, and nothing is
    stored.

    Examples:
        suffrage formats check results.csv
        suffrage formats check results.csv --format json
    """
    from tracker.ingest.files.file_summary import describe_file
    from tracker.ingest.measurement import ReadOptions
    from tracker.ingest.parsing.recognition import check_formats

    checks = check_formats(path, ReadOptions())
    matching = [check.format for check in checks if check.match != "no"]
    if checks[0].match == "chosen":
        verdict = f"{path}: {matching[0]}"
    elif matching:
        verdict = f"{path}: {', '.join(matching)} match equally well; choose one with `suffrage ingest --format NAME`"
    else:
        nearest = f"; the nearest is {checks[0].format}" if checks[0].similarity > 0 else ""
        verdict = f"{path}: no format matches{nearest}"
    inform(f"{verdict} ({describe_file(path)})")
    print_rows(checks, output_format)
