"""Take in weights of a benchmark's prompts from a file, for use as --weights ID."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from tracker.cli.options import database_option, mlflow_options
from tracker.cli.output import inform, print_summary


def _name(ctx: click.Context, option: click.Parameter, name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[\w.-]+", name):
        raise click.BadParameter("use letters, digits, dots, dashes and underscores only")
    return name


@click.command()
@click.argument("benchmark")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path, readable=False))
@click.option("--name", metavar="NAME", callback=_name, help="What to call the weights; by default the file's name.")
@database_option
@mlflow_options
def command(
    benchmark: str, path: Path, name: str | None, database: str | None, tracking_uri: str, no_mlflow: bool
) -> None:
    """Take in weights of a benchmark's prompts from a CSV, Parquet or JSON Lines file.

    Columns: prompt_id, as the files of results call the prompts; weight, a number from 0 up in any unit; task,
    where names of prompts repeat between tasks. The weights become a finding, and --weights ID chooses them
    wherever prompts can be weighted. Prompts that are not in the file are left out there.
    """
    from tracker.database import connect, transaction
    from tracker.ingest.files.weight_file import read_weights
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.custom_weights import make_custom_weights
    from tracker.recording.pipeline import record_report

    engine = connect(database, create=False)
    name = name or re.sub(r"[^\w.-]+", "-", path.name.removesuffix(".gz")).rpartition(".")[0] or "custom"
    with transaction(engine, write=False) as session:
        benchmark_key = find_benchmark(session, benchmark)
        weights = read_weights(session, path, benchmark_key.id, benchmark_key.label)
        provenance, report = make_custom_weights(
            session, benchmark_key, weights.prompt_ids, weights.values, name=name, file=path.name
        )
    recorded = record_report(engine, provenance, report, publish_to=None if no_mlflow else tracking_uri)
    print_summary(report.summary)
    if recorded.publishing_problem:
        inform(f"Warning: {recorded.publishing_problem}")
    key = recorded.finding_id
    inform(f"Recorded as finding {key}: suffrage leaderboard {shlex.quote(benchmark_key.label)} --weights {key}")
