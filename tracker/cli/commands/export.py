"""Write scores, runs, prompts, findings, filters and weights as files, or a whole store as one."""

from __future__ import annotations

import click

from tracker.cli.exports import archive, tables
from tracker.cli.exports import filter as kept


@click.group()
def command() -> None:
    """Write scores, runs, prompts, findings, filters and weights as files, or a whole store as one."""


tabular = (tables.scores, tables.runs, tables.prompts, tables.findings, tables.weights)
for part in (*tabular, kept.command, archive.command):
    command.add_command(part)
