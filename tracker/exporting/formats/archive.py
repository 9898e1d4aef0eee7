"""Export a store, or part of it, as a SQLite store.

The part is some benchmarks, models or runs. The archive holds prompts with all their names, models with their facts,
metrics, runs, scores, answers, vectors and source files. It is a store by itself, and `suffrage ingest` merges it into
another store. Findings are not included: compute them again.

Examples:
    suffrage export archive --output archive.db
    suffrage export archive mmlu_pro --output mmlu_pro.db
    suffrage export archive mmlu_pro --models llama-3.1-70b --output model.db
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.copying.partial_copy import PartialCopyResult, StorePart, copy_part
from tracker.errors import NotFoundError
from tracker.exporting.declaration import export
from tracker.exporting.outputs import BinaryFile, FileSummary, Progress
from tracker.plugins.parameters import ValueHint
from tracker.queries.catalogue.model_names import find_model
from tracker.queries.resolution import find_benchmark
from tracker.queries.sql import tables

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


@export(suffix=".db")
def export_archive(
    session: Session,
    benchmarks: Annotated[tuple[str, ...], ValueHint(metavar="[BENCHMARK]...")] = (),
    *,
    models: Annotated[tuple[str, ...], "Models whose runs to include, separated by commas. By default all."] = (),
    runs: Annotated[tuple[int, ...], "IDs of runs to include, separated by commas. By default all."] = (),
) -> BinaryFile:
    """Export catalogue and measurements of some benchmarks, models or runs, or of the whole store.

    Raises:
        NotFoundError: a benchmark, model or run does not exist.
    """
    part = StorePart(
        benchmarks=[find_benchmark(session, name).id for name in dict.fromkeys(benchmarks)],
        models=[find_model(session, name).id for name in dict.fromkeys(models)],
        runs=_find_runs(session, runs),
    )
    engine = session.get_bind()
    assert isinstance(engine, sa.Engine)

    def write(path: Path, progress: Progress | None) -> FileSummary:
        return _summarize(copy_part(engine, path, part, progress))

    return BinaryFile(write=write)


def _find_runs(session: Session, runs: Sequence[int]) -> Sequence[int]:
    known = set(session.scalars(sa.select(tables.run.c.id))) if runs else set()
    for key in runs:
        if key not in known:
            raise NotFoundError("run", key, sorted(known))
    return runs


def _summarize(archive: PartialCopyResult) -> FileSummary:
    n = archive.n_rows
    nouns = {table: singular if n[table] == 1 else plural for table, singular, plural in COUNTS if n[table]}
    counts = ", ".join(f"{n[table]:,} {noun}" for table, noun in nouns.items())
    warnings = []
    if archive.n_files_left_out:
        warnings.append(
            f"{archive.n_files_left_out} source files also contain other runs. The archive does not list them, "
            "so that they can still be ingested."
        )
    if archive.n_findings:
        findings = "finding is" if archive.n_findings == 1 else f"{archive.n_findings:,} findings are"
        warnings.append(f"The {findings} not included: run the analyses again in the other store.")
    return FileSummary(text=counts or "an empty store", warnings=warnings)
