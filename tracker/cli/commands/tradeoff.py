"""Plot diversity against sensitivity for all benchmarks."""

from __future__ import annotations

from typing import Any

import click

from tracker.cli.commands.analyze import analysis_command
from tracker.cli.figure_files import Picture, picture_option
from tracker.cli.help_text import Command
from tracker.recording.declaration import load_declaration

EXAMPLES = """
Examples:
    suffrage tradeoff
    suffrage tradeoff --output tradeoff.pdf
"""


def _with_output(analysis: click.Command) -> click.Command:
    """The command of the analysis, which can save its picture too."""
    run_command: Any = analysis.callback

    def run(picture: Picture | None, **options: Any) -> None:
        recorded = run_command(**options)
        if picture is not None:
            picture.save(recorded.report, "tradeoff")

    built: click.Command = click.command(
        "tradeoff", cls=Command, help=f"{analysis.help}\n{EXAMPLES}", short_help=analysis.short_help
    )(picture_option(run))
    built.params = [*built.params, *analysis.params]
    return built


command = _with_output(analysis_command(load_declaration("tradeoff")))
