"""The command `suffrage weights`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option, limits_option, mlflow_options
from tracker.cli.output import inform, print_summary, warn
from tracker.cli.progress import show_activity


def _name(ctx: click.Context, option: click.Parameter, name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[\w.-]+", name):
        raise click.BadParameter("use letters, digits, dots, dashes and underscores only")
    return name


@click.command(cls=Command)
@click.argument("benchmark")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path, readable=False))
@click.option(
    "--name", metavar="NAME", callback=_name, show_default="the name of the file", help="Name of the weights."
)
@limits_option
@database_option
@mlflow_options
def command(
    benchmark: str, path: Path, name: str | None, database: str | None, tracking_uri: str, no_mlflow: bool
) -> None:
    """Import weights of the prompts from a file.

    The file is CSV, Parquet or JSON Lines. It has the columns prompt_id, weight (0 or larger, in any unit) and task, if
    names of prompts repeat between tasks. Prompts without a weight are excluded. The weights become a finding, which
    `--weights ID` selects in other commands.

    Examples:
        suffrage weights mmlu_pro weights.csv
        suffrage weights mmlu_pro weights.csv --name by-difficulty --no-mlflow
    """
    from tracker.database import connect, transaction
    from tracker.ingest.files.weight_file import read_weights
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.custom_weights import make_custom_weights
    from tracker.recording.pipeline import record_report

    engine = connect(database, create=False)
    name = name or re.sub(r"[^\w.-]+", "-", path.name.removesuffix(".gz")).rpartition(".")[0] or "custom"
    with show_activity("weights"), transaction(engine, write=False) as session:
        benchmark_key = find_benchmark(session, benchmark)
        weights = read_weights(session, path, benchmark_key.id, benchmark_key.label)
        provenance, report = make_custom_weights(
            session, benchmark_key, weights.prompt_ids, weights.values, name=name, file=path.name
        )
    recorded = record_report(engine, provenance, report, publish_to=None if no_mlflow else tracking_uri)
    print_summary(report.summary)
    if recorded.publishing_problem:
        warn(recorded.publishing_problem)
    key = recorded.finding_id
    inform(f"Recorded as finding {key}: suffrage leaderboard {shlex.quote(benchmark_key.label)} --weights {key}")
