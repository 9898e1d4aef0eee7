"""Put every benchmark's diversity beside its sensitivity, from the recorded findings."""

from __future__ import annotations

from typing import Any

import click

from tracker.cli.commands.analyze import analysis_command
from tracker.cli.figure_files import Picture, picture_option
from tracker.recording.declaration import load_declaration


def _with_output(asked: click.Command) -> click.Command:
    """The command of the analysis, which can save its picture too."""
    ask: Any = asked.callback

    def run(picture: Picture | None, **options: Any) -> None:
        recorded = ask(**options)
        if picture is not None:
            picture.save(recorded.report, "tradeoff")

    made: click.Command = click.command("tradeoff", help=asked.help, short_help=asked.short_help)(picture_option(run))
    made.params = [*made.params, *asked.params]
    return made


command = _with_output(analysis_command(load_declaration("tradeoff")))
