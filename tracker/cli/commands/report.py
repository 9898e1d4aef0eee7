"""The command `suffrage report`."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.help_text import Command
from tracker.cli.options import (
    BOUNDS,
    cluster_option,
    database_option,
    missing_options,
    mlflow_options,
    selection_options,
    weights_option,
)
from tracker.cli.output import inform, warn
from tracker.cli.process.interrupts import end_on_interrupt
from tracker.cli.progress import show_activity
from tracker.queries.selection import Selection


@click.command(cls=Command)
@click.argument("benchmark")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, writable=False),
    default=Path("report.html"),
    show_default=True,
    metavar="PATH",
    help="HTML file to write.",
)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
@missing_options(BOUNDS)
@click.option("--no-prompts", is_flag=True, help="Omit the texts of prompts, for example to keep a test set private.")
@cluster_option
@weights_option
@selection_options
@database_option
@mlflow_options
def command(
    selection: Selection,
    output: Path,
    force: bool,
    no_prompts: bool,
    database: str | None,
    tracking_uri: str,
    no_mlflow: bool,
) -> None:
    """Write an HTML report of a benchmark.

    The file holds the leaderboard with intervals, interactive figures and all findings on the benchmark. It opens in
    any browser without network access. The same store gives the same file. The report is also published to MLflow.

    Examples:
        suffrage report mmlu_pro --output mmlu_pro.html
        suffrage report mmlu_pro --output public.html --no-prompts --no-mlflow
    """
    from tracker.api.reports import build_report, publish
    from tracker.database import connect
    from tracker.errors import PublishingError
    from tracker.exporting.output_paths import check_output_path, write_file
    from tracker.recording.mlflow.tracking_store import mlflow_store

    if output.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter("a report is an HTML file: give a name that ends in .html", param_hint="'--output'")
    check_output_path(output, force=force)
    engine = connect(database, create=False)
    if not no_mlflow:
        mlflow_store(tracking_uri, engine)  # what can never work is refused before the report is made
    with end_on_interrupt(), show_activity(f"report of {selection.benchmark}"):
        built = build_report(engine, selection, with_prompts=not no_prompts)
    write_file(output, built.page, force=force)
    for notice in built.notices:
        warn(notice)
    inform(f"Wrote {output} ({len(built.page) / 1e6:.1f} MB). Open it in a browser.")
    if not no_mlflow:
        try:
            publish(engine, built, tracking_uri)
        except PublishingError as error:
            warn(str(error))
        else:
            inform(
                "In MLflow: `suffrage ui` shows it in the experiment "
                f"suffrage/reports/{built.contents.board.benchmark}."
            )
