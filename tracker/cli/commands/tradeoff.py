"""Put every benchmark's diversity beside its sensitivity, from the recorded findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracker.cli.commands.analyze import analysis_command
from tracker.cli.output import say
from tracker.errors import OutputError
from tracker.recording.declaration import load_declaration

FORMATS = (".png", ".pdf", ".svg")


def _writable(ctx: click.Context, option: click.Parameter, given: Path | None) -> Path | None:
    if given is not None and given.suffix.lower() not in FORMATS:
        raise click.BadParameter(f"give a name that ends in {', '.join(FORMATS)}")
    if given is not None and not given.parent.is_dir():
        raise click.BadParameter(f"there is no folder {given.parent}")
    return given


def _with_output(asked: click.Command) -> click.Command:
    """The command of the analysis, which can save its picture too."""
    ask: Any = asked.callback

    def run(output: Path | None, **options: Any) -> None:
        recorded = ask(**options)
        if output is not None:
            from tracker.recording.artifacts import figure_as_bytes

            picture = figure_as_bytes(recorded.report.figures["tradeoff"], output.suffix.lower()[1:])
            try:
                output.write_bytes(picture)
            except OSError as error:
                raise OutputError(f"{output} cannot be written: {error.strerror}. Give another --output.") from error
            say(f"Wrote {output}.")

    where = click.Option(
        ["--output"],
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=_writable,
        help="Save the picture too, as .png, .pdf or .svg.",
    )
    return click.Command(
        "tradeoff", callback=run, params=[where, *asked.params], help=asked.help, short_help=asked.short_help
    )


command = _with_output(analysis_command(load_declaration("tradeoff")))
