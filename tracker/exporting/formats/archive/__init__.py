"""Export a store, or some benchmarks, as one archive file.

The archive holds prompts with all their names, models with their facts, metrics, runs, scores, answers, vectors and
source files. `suffrage ingest` imports it into another store with the same content. Findings are not included: compute
them again.

Examples:
    suffrage export archive --output store.suffrage.zip
    suffrage export archive mmlu_pro --output mmlu_pro.suffrage.zip
"""

from __future__ import annotations

from typing import Annotated, BinaryIO

from sqlalchemy.orm import Session

from tracker.exporting.declaration import export
from tracker.exporting.formats.archive.archive_writer import ArchiveSummary, write_archive
from tracker.exporting.outputs import BinaryFile, FileSummary, Progress
from tracker.plugins.parameters import ValueHint
from tracker.queries.resolution import find_benchmark

COUNTS = (
    ("benchmark", "benchmark", "benchmarks"),
    ("prompt", "prompt", "prompts"),
    ("run", "run", "runs"),
    ("score", "score", "scores"),
    ("task_score", "score of a whole task", "scores of a whole task"),
    ("answer", "answer", "answers"),
    ("embedding", "vector", "vectors"),
)
"""Tables whose rows are counted, with their noun."""


@export(suffix=".suffrage.zip")
def export_archive(
    session: Session, benchmarks: Annotated[tuple[str, ...], ValueHint(metavar="[BENCHMARK]...")] = ()
) -> BinaryFile:
    """Export catalogue and measurements of some benchmarks, or of the whole store.

    Raises:
        NotFoundError: a benchmark does not exist.
    """
    keys = [find_benchmark(session, name) for name in dict.fromkeys(benchmarks)]

    def write(file: BinaryIO, progress: Progress | None) -> FileSummary:
        return _summarize(write_archive(session, file, keys, progress))

    return BinaryFile(write=write)


def _summarize(archive: ArchiveSummary) -> FileSummary:
    n = archive.n_rows
    nouns = {table: singular if n[table] == 1 else plural for table, singular, plural in COUNTS if n[table]}
    counts = ", ".join(f"{n[table]:,} {noun}" for table, noun in nouns.items())
    warnings = []
    if archive.n_files_left_out:
        warnings.append(
            f"{archive.n_files_left_out} source files also contain other benchmarks. The archive does not list them, "
            "so that they can still be ingested."
        )
    if archive.n_findings:
        findings = "finding is" if archive.n_findings == 1 else f"{archive.n_findings:,} findings are"
        warnings.append(f"The {findings} not included: run the analyses again in the other store.")
    return FileSummary(text=counts or "an empty store", warnings=warnings)
