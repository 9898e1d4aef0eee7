"""Figures as files that the user names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.output import inform

if TYPE_CHECKING:
    from tracker.recording.finding import Report

FORMATS = (".png", ".pdf", ".svg")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Where a picture goes.

    Attributes:
        path: the file; its suffix determines the format.
        force: whether a file that is there is replaced.
    """

    path: Path
    force: bool

    def numbered(self, number: int) -> Picture:
        """The same with a number in the file's name."""
        return replace(self, path=self.path.with_stem(f"{self.path.stem}-{number}"))

    def save(self, report: Report, name: str) -> None:
        """Draw one of a report's figures into the file.

        Raises:
            OutputError: it is there and may not be replaced, or cannot be written.
        """
        from tracker.exporting.output_paths import write_file
        from tracker.recording.artifacts import render_figure

        write_file(self.path, render_figure(report.figures[name], self.path.suffix.lower()[1:]), force=self.force)
        inform(f"Wrote {self.path}.")


def _writable(ctx: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in FORMATS:
        raise click.BadParameter(f"give a name that ends in {', '.join(FORMATS)}")
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}")
    return path


def picture_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --output and --force; the command receives them as one keyword, ``picture``, a `Picture` or None.

    An unusable path is rejected before anything is computed.
    """

    @functools.wraps(function)
    def wrapped(*args: Any, output: Path | None, force: bool, **options: Any) -> Any:
        if output is not None:
            from tracker.exporting.output_paths import check_output_path

            check_output_path(output, force=force)
        picture = None if output is None else Picture(path=output, force=force)
        return function(*args, picture=picture, **options)

    where = click.option(
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=_writable,
        help="File to save the figure to, as .png, .pdf or .svg.",
    )
    return where(click.option("--force", is_flag=True, help="Overwrite the figure if it exists.")(wrapped))
