"""Write scores, runs, prompts, findings, filters and weights as files, or a whole store as one."""

from __future__ import annotations

import click

from tracker.cli.exports import filter as kept
from tracker.cli.exports import tables


@click.group()
def command() -> None:
    """Write scores, runs, prompts, findings, filters and weights as files, or a whole store as one."""


for part in (tables.scores, tables.runs, tables.prompts, tables.findings, kept.command, tables.weights):
    command.add_command(part)
