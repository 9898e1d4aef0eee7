"""Check the store and MLflow, and say what to do."""

from __future__ import annotations

import sys

import click

from tracker.cli.options import database_option, format_option, mlflow_options
from tracker.cli.output import inform, print_rows


@click.command()
@database_option
@mlflow_options
@format_option
def command(database: str | None, tracking_uri: str, no_mlflow: bool, output_format: str) -> None:
    """Check the store and MLflow, and say what to do.

    One line for each check: the versions of the programs, the store's version, its tables, references and
    checksums, partial runs, stale findings, room on the disk, whether MLflow answers and shows what is stored.
    Nothing is changed. Exit 0: all is well; 2: warnings; 1: problems.
    """
    from tracker.database import create_unchecked_engine
    from tracker.recording.doctor import run_checks

    checks = []
    for check in run_checks(create_unchecked_engine(database), None if no_mlflow else tracking_uri):
        checks.append(check)
        if output_format == "table":
            click.echo(f"{check.verdict:<8} {check.name:<11} {check.result}")
            if check.advice:
                click.echo(f"{'':<20} {check.advice}")
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
