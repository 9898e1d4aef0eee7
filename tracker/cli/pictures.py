"""Pictures of answers as files that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracker.cli.output import say
from tracker.errors import OutputError

if TYPE_CHECKING:
    from tracker.recording.finding import Report

FORMATS = (".png", ".pdf", ".svg")


def _writable(ctx: click.Context, option: click.Parameter, given: Path | None) -> Path | None:
    if given is not None and given.suffix.lower() not in FORMATS:
        raise click.BadParameter(f"give a name that ends in {', '.join(FORMATS)}")
    if given is not None and not given.parent.is_dir():
        raise click.BadParameter(f"there is no folder {given.parent}")
    return given


picture_option = click.option(
    "--output",
    "picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=_writable,
    help="Save the picture too, as .png, .pdf or .svg.",
)


def save_picture(report: Report, name: str, path: Path) -> None:
    """Draw one of a report's figures into a file.

    Raises:
        OutputError: it cannot be written.
    """
    from tracker.recording.artifacts import figure_as_bytes

    picture = figure_as_bytes(report.figures[name], path.suffix.lower()[1:])
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}. Give another --output.") from error
    say(f"Wrote {path}.")
