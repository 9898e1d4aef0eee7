"""The command `suffrage doctor`."""

from __future__ import annotations

import sys

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, format_option, mlflow_options
from tracker.cli.output import inform, print_rows
from tracker.cli.progress import show_activity
from tracker.cli.values.terminal_text import echo


@click.command(cls=Command)
@database_option
@mlflow_options
@format_option
def command(database: str | None, tracking_uri: str, no_mlflow: bool, output_format: str) -> None:
    """Check the store and MLflow and advise what to do.

    Prints a line for each check: versions, tables, references, checksums, partial runs, similar names of models, faulty
    prompts, stale findings, disk space and MLflow. Nothing is changed. The exit code is 0 if all is well, 2 after
    warnings and 1 after problems.

    Examples:
        suffrage doctor --no-mlflow
        suffrage doctor --format json --no-mlflow
    """
    from tracker.database import create_unchecked_engine
    from tracker.recording.doctor import run_checks

    checks, waiting = [], run_checks(create_unchecked_engine(database), None if no_mlflow else tracking_uri)
    while True:
        with show_activity("checking"):
            check = next(waiting, None)
        if check is None:
            break
        checks.append(check)
        if output_format == "table":
            echo(f"{check.verdict:<8} {check.name:<11} {check.result}")
            if check.advice:
                echo(f"{'':<20} {check.advice}")
    if output_format != "table":
        print_rows(checks, output_format)
    verdicts = [check.verdict for check in checks]
    n_problems, n_warnings = verdicts.count("problem"), verdicts.count("warning")
    inform(f"{len(checks)} checks: {n_problems or 'no'} problem{'s' * (n_problems != 1)}, "
        f"{n_warnings or 'no'} warning{'s' * (n_warnings != 1)}.")  # fmt: skip
    if n_problems:
        sys.exit(1)
    if n_warnings:
        sys.exit(2)
