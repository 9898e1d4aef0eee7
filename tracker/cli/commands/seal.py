"""The command `suffrage seal`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option
from tracker.cli.output import inform, warn
from tracker.cli.progress import progress


@click.command(cls=Command)
@click.argument("benchmark")
@click.option(
    "--to",
    "address",
    metavar="FOLDER",
    show_default="the folder in which it was sealed last",
    help="Folder of the files, or an address such as s3://bucket/folder. They get a new folder in it.",
)
@database_option
def command(benchmark: str, address: str | None, database: str | None) -> None:
    """Move the scores and responses of a benchmark into Parquet files.

    A sealed benchmark takes a fraction of the space. Prompts, runs and findings stay in the store. What needs the
    scores copies them back first, with a message, and gives the same results; the same command removes them again.
    The files are compared with the checksums of the runs before anything is removed.

    Examples:
        suffrage seal mmlu_pro --to /data/sealed
        suffrage seal mmlu_pro
        suffrage seal mmlu_pro --to s3://bucket/sealed
    """
    from tracker.database import connect, transaction
    from tracker.name_lists import join_names
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.doctor import format_size
    from tracker.recording.sealing.loading import ignore_progress
    from tracker.recording.sealing.sealing import find_sealed_folder, seal
    from tracker.recording.sealing.storage import normalize_address
    from tracker.report.number_format import format_count

    engine = connect(database, create=False)
    with transaction(engine, write=False) as session:
        chosen = find_benchmark(session, benchmark)
        place = normalize_address(address) if address else find_sealed_folder(session, chosen.id)
    if place is None:
        raise click.UsageError(f"{chosen.label} was never sealed. Name the folder of its files: --to FOLDER")
    with progress(f"sealing {chosen.label}") as update:
        result = seal(engine, chosen, place, update or ignore_progress)
    if result.unfinished:
        names = join_names([str(run) for run in result.unfinished], 5)
        warn(f"Runs that are being evaluated stay in the store: {names}.")
    if not result.n_runs:
        inform(f"{chosen.label}: nothing to seal. Its scores are in sealed files already, or it has none.")
        return
    rows = f"{format_count(result.n_scores, 'score')} and {format_count(result.n_answers, 'answer')}"
    runs = format_count(result.n_runs, "run")
    if result.address is None:
        inform(f"{chosen.label}: {rows} of {runs} removed again; the sealed files hold them already.")
    else:
        inform(f"{chosen.label}: {rows} of {runs} moved to {result.address} ({format_size(result.n_bytes)}).")
