"""Write a whole store, or some benchmarks, as one file that can be taken in again."""

from __future__ import annotations

from pathlib import Path

import click

from tracker.cli.exports.destination import force_option
from tracker.cli.options import database_option
from tracker.cli.output import inform
from tracker.cli.progress import progress

ENDING = ".suffrage.zip"


@click.command("archive")
@click.argument("benchmarks", metavar="[BENCHMARK]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, writable=False),
    metavar="PATH",
    help=f"Where to, such as results{ENDING}.",
)
@force_option
@database_option
def command(benchmarks: tuple[str, ...], output: Path, force: bool, database: str | None) -> None:
    """Write the whole store, or some benchmarks, as one file: `suffrage ingest` gives another store the same content.

    It holds prompts with all their names, models with their facts, metrics, runs, scores, answers, vectors and which
    files they came from. Findings are not in it: they can be computed again.
    """
    from tracker.database import connect, transaction
    from tracker.exporting.archive import write_archive
    from tracker.exporting.table_files import check_output_path, open_atomically

    check_output_path(output, force=force)
    with transaction(connect(database), write=False) as session:
        from tracker.queries.resolution import find_benchmark

        chosen = [find_benchmark(session, name) for name in dict.fromkeys(benchmarks)]
        with open_atomically(output, force=force) as file, progress(output.name) as advance:
            archived = write_archive(session, file, chosen, advance)
    n = archived.n_rows
    counts = (("benchmark", "benchmark"), ("prompt", "prompt"), ("run", "run"), ("score", "score"),
              ("task_score", "score of a whole task"), ("answer", "answer"), ("embedding", "vector"))  # fmt: skip
    told = ", ".join(f"{n[table]:,} {word if n[table] == 1 else _many(word)}" for table, word in counts if n[table])
    if archived.n_files_left_out:
        inform(
            f"{archived.n_files_left_out} files also brought other benchmarks; the archive does not name them, so that "
            "they can still be taken in."
        )
    if archived.n_findings:
        findings = "finding is" if archived.n_findings == 1 else f"{archived.n_findings:,} findings are"
        inform(f"The {findings} not in it: ask the questions again where it is taken in.")
    inform(f"Wrote {output}: {told or 'an empty store'}.")


def _many(word: str) -> str:
    first, _, rest = word.partition(" ")
    return f"{first}s {rest}".rstrip()
