"""The command `suffrage unseal`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.options import database_option
from tracker.cli.output import inform
from tracker.cli.progress import progress


@click.command(cls=Command)
@click.argument("benchmark", required=False)
@click.option("--all", "everything", is_flag=True, help="All sealed benchmarks.")
@click.option(
    "--from", "new_address", metavar="FOLDER", help="Where the folder with the files is now, if it has moved."
)
@database_option
def command(benchmark: str | None, everything: bool, new_address: str | None, database: str | None) -> None:
    """Copy scores and responses of a sealed benchmark back into the store.

    The rows are compared with the checksums of their runs. The files stay where they are.

    Examples:
        suffrage unseal mmlu_pro
        suffrage unseal mmlu_pro --from /backup/sealed/mmlu-pro-1f2e3d4c5b6a
        suffrage unseal --all
    """
    from tracker.database import connect, transaction
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.sealing.loading import ignore_progress, list_sealed_runs, load_rows
    from tracker.recording.sealing.storage import normalize_address
    from tracker.report.number_format import format_count

    if everything == (benchmark is not None):
        raise click.UsageError("Name a benchmark, or use --all.")
    if everything and new_address:
        raise click.UsageError("--from is the folder of one benchmark. Name the benchmark instead of --all.")
    engine = connect(database, create=False)
    with transaction(engine, write=False) as session:
        chosen = find_benchmark(session, benchmark) if benchmark else None
        runs = list_sealed_runs(session, chosen.id if chosen else None)
    label = chosen.label if chosen else "All benchmarks"
    if not runs:
        inform(f"{label}: nothing is sealed.")
        return
    with progress(f"unsealing {label}") as update:
        place = normalize_address(new_address) if new_address else None
        result = load_rows(engine, runs, for_good=True, new_address=place, progress=update or ignore_progress)
    rows = f"{format_count(result.n_scores, 'score')} and {format_count(result.n_answers, 'answer')}"
    inform(f"{label}: {format_count(len(runs), 'run')} unsealed; {rows} copied back.")
    if result.addresses:
        inform(f"The files stay: {', '.join(result.addresses)}. Delete them when no backup of the store needs them.")
