"""The command `suffrage findings`."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option
from tracker.cli.output import format_value, print_rows
from tracker.cli.progress import show_activity
from tracker.queries.selection import WHOLE

if TYPE_CHECKING:
    from tracker.queries.findings.finding_records import FindingRow

COLUMNS = ("id", "name", "benchmark", "data", "recorded", "status", "stale", "headline")
MAX_HEADLINE_LENGTH = 100


@click.command(cls=Command)
@click.option(
    "--benchmark", metavar="NAME", show_default="all", help="Name of the benchmark that the findings are about."
)
@click.option(
    "--name", metavar="ANALYSIS", show_default="all", help="Name of the analysis, such as prompt-correlation."
)
@database_option
@format_option
def command(benchmark: str | None, name: str | None, database: str | None, output_format: str) -> None:
    """List the recorded findings, latest first.

    A finding is the recorded result of an analysis. It is stale if runs that it is computed from have changed since.
    `suffrage show ID` prints a finding in full.

    Examples:
        suffrage findings
        suffrage findings --benchmark mmlu_pro --name social-choice
    """
    from tracker.database import connect, transaction
    from tracker.queries.findings.finding_records import list_findings

    with show_activity("findings"), transaction(connect(database, create=False), write=False) as session:
        rows = list_findings(session, benchmark=benchmark, analysis=name)
    if output_format != "table":
        print_rows(rows, output_format)
        return
    policies: dict[str, set[object]] = {}
    for row in rows:
        policies.setdefault(row.name, set()).add((row.selection or {}).get("missing"))
    short = [
        {
            **dataclasses.asdict(row),
            "headline": _headline(row),
            "data": _narrowed(row.selection, has_several_policies=len(policies[row.name]) > 1),
        }
        for row in rows
    ]
    optional = {"data": any(row["data"] for row in short), "status": any(row["status"] == "failed" for row in short)}
    columns = [name for name in COLUMNS if optional.get(name, True)]
    print_rows(
        short, output_format, columns=columns, drop_order=("recorded", "data"), if_empty=_explain_none(benchmark, name)
    )


def _explain_none(benchmark: str | None, name: str | None) -> str:
    """Why no finding is listed, and the command that records one."""
    scope = f" of {name}" * bool(name) + f" on {benchmark}" * bool(benchmark)
    command_line = shlex.join(["suffrage", "analyze", name or "rank-intervals", benchmark or "BENCHMARK"])
    return f"No findings{scope} yet. Record one: `{command_line}`"


def _narrowed(selection: Mapping[str, Any] | None, *, has_several_policies: bool) -> str:
    """What was chosen of the benchmark's data, such as a filter; '' where all was.

    Args:
        selection: as recorded.
        has_several_policies: whether findings of the analysis differ in the policy for missing scores.
    """
    chosen = {
        name: value
        for name, value in (selection or {}).items()
        if name != "benchmark" and (value not in _plain(name) or (name == "missing" and has_several_policies))
    }
    return format_value(chosen)


def _plain(name: str) -> tuple[Any, ...]:
    """Return the values of a recorded field that the list does not show."""
    return {"missing": ("bounds", "common"), "task_effects": ("fixed", "none")}.get(name, (WHOLE.get(name),))


def _headline(row: FindingRow) -> str:
    """Return the headline, or the first line of an error, in at most one line."""
    first = (row.error if row.status == "failed" else row.summary.headline).partition("\n")[0]
    return first if len(first) <= MAX_HEADLINE_LENGTH else f"{first[: MAX_HEADLINE_LENGTH - 1].rstrip()}…"
