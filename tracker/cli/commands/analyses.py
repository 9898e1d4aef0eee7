"""List what was concluded, the latest first."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import click

from tracker.cli.options import database_option, format_option
from tracker.cli.output import format_value, print_rows
from tracker.queries.selection import WHOLE

COLUMNS = ("id", "name", "benchmark", "data", "recorded", "stale", "summary")
LONGEST = 100


@click.command()
@click.option("--benchmark", metavar="NAME", help="Only findings about this benchmark.")
@click.option("--name", metavar="QUESTION", help="Only findings of this question, such as prompt-correlation.")
@database_option
@format_option
def command(benchmark: str | None, name: str | None, database: str | None, output_format: str) -> None:
    """List what was concluded, the latest first; `suffrage show ID` tells one whole."""
    from tracker.database import connect, transaction
    from tracker.queries.findings.finding_records import findings

    with transaction(connect(database), write=False) as session:
        rows = findings(session, benchmark=benchmark, analysis=name)
    if output_format != "table":
        print_rows(rows, output_format)
        return
    short = [
        {**dataclasses.asdict(row), "summary": _opening(row.summary), "data": _narrowed(row.selection)} for row in rows
    ]
    columns = [name for name in COLUMNS if name != "data" or any(row["data"] for row in short)]
    print_rows(short, output_format, columns=columns, spare=("recorded", "data"))


def _narrowed(selection: Mapping[str, Any] | None) -> str:
    """What was chosen of the benchmark's data, such as a filter; '' where all was."""
    chosen = (selection or {}).items()
    return format_value({name: value for name, value in chosen if name != "benchmark" and value != WHOLE.get(name)})


def _opening(summary: str) -> str:
    """What the summary says first: up to its first full stop, colon or semicolon, and no more than a line."""
    first = re.split(r"[.:;](?=\s|$)", summary, maxsplit=1)[0]
    return first if len(first) <= LONGEST else f"{first[: LONGEST - 1].rstrip()}…"
