"""Storage of an archive, in an empty store or merged with stored data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.errors import ConflictError
from tracker.ingest.archives.archive_file import StoreArchive
from tracker.ingest.archives.archived_names import ArchivedNames
from tracker.ingest.archives.archived_prompts import ArchivedPrompts
from tracker.ingest.archives.archived_runs import ArchivedRuns
from tracker.ingest.measurement import ParsedFile, ReadOptions
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.write.bulk_rows import fetch_raw_rows
from tracker.ingest.write.store_changes import StoreChanges, StoredRun
from tracker.ingest.write.stored_runs import OnConflict, limit_warnings
from tracker.ingest.write.undo_log import recorded_import, undo_log
from tracker.ingest.write.vectors import EMBEDDING, EncoderName, add_vectors, find_or_add_encoder
from tracker.schema import Run


def store_archive(
    session: Session,
    parsed: ParsedFile,
    archive: StoreArchive,
    options: ReadOptions,
    *,
    on_conflict: OnConflict = "rerun",
) -> StoreChanges:
    """Store the content of an archive.

    The archive's sources count as ingested. The archive itself gets no source row, so that both stores hold the same
    data.

    Args:
        session: an open write transaction; exclusive on PostgreSQL.
        parsed: the parsed file.
        archive: the open archive.
        options: read options; only the name of the benchmark is used.
        on_conflict: see `tracker.ingest.write.writer.store_file`.

    Raises:
        BadInputError: the archive contradicts itself, a stored prompt or the bounds of a metric.
        ConflictError: the archive contradicts stored data.
    """
    with recorded_import(session, archive.path):
        return _store_archive(session, parsed, archive, options, on_conflict)


def _store_archive(
    session: Session, parsed: ParsedFile, archive: StoreArchive, options: ReadOptions, on_conflict: OnConflict
) -> StoreChanges:
    catalogue = CatalogueResolver(session, archive.path)
    names = ArchivedNames(session, archive, catalogue)
    names.resolve(options.benchmark)
    if (log := undo_log(session)) is not None:
        log.benchmarks.update(catalogue.benchmark_names)
    prompts = ArchivedPrompts(names, on_conflict)
    prompts.store()
    runs = ArchivedRuns(names, prompts, on_conflict)
    runs.store()
    n_vectors = _store_vectors(session, archive, prompts)
    session.flush()
    additions = (
        (n_vectors, "prompt vectors"),
        (prompts.n_names_added, "aliases of stored prompts"),
        (names.n_other_names, "aliases of models"),
    )
    warnings = (*parsed.warnings, *names.warnings, *prompts.warnings, *limit_warnings(runs.warnings))
    return replace(
        _count_changes(runs, catalogue),
        n_prompts_new=prompts.n_new,
        n_models_new=catalogue.n_models_new,
        warnings=(*warnings, *(f"{n:,} {noun} added" for n, noun in additions if n)),
    )


def _count_changes(runs: ArchivedRuns, catalogue: CatalogueResolver) -> StoreChanges:
    def describe(chosen: list[tuple[Run, str]]) -> tuple[StoredRun, ...]:
        return tuple(StoredRun.describe(run, model, catalogue.benchmark_names) for run, model in chosen)

    counts = runs.counts
    return StoreChanges(
        source_id=None,
        benchmarks=tuple(catalogue.benchmark_names.values()),
        runs_new=describe(runs.new),
        runs_extended=describe(runs.extended),
        runs_unchanged=describe(runs.unchanged),
        n_scores=counts.n_scores,
        n_task_scores=counts.n_task_scores,
        n_scores_unchanged=counts.n_unchanged,
        n_scores_skipped=counts.n_skipped,
        n_scores_updated=counts.n_updated,
        n_answers=counts.n_answers,
    )


def _store_vectors(session: Session, archive: StoreArchive, prompts: ArchivedPrompts) -> int:
    """Store missing vectors; return their number.

    Raises:
        ConflictError: stored vectors of an encoder differ in value or length.
    """
    encoders = [
        (EncoderName(name=row["name"], revision=row["revision"], template=row["template"]), row["dimensions"])
        for row in archive.rows("encoder")
    ]
    keys = [find_or_add_encoder(session, *encoder) for encoder in encoders]
    n_new = first = 0
    for batch in archive.batches("embedding"):
        places = np.asarray(batch.column("encoder").to_numpy())
        prompt_ids = prompts.keys[np.asarray(batch.column("prompt").to_numpy())]
        vectors = batch.column("vector").to_pylist()
        for place in sorted(set(places.tolist())):
            rows = np.flatnonzero(places == place).tolist()
            encoder, dimensions = encoders[place]
            wrong = [row for row in rows if len(vectors[row]) != 4 * dimensions]
            if wrong:
                raise archive.error("embedding", first + wrong[0], f"its vector does not have {dimensions} numbers")
            prompts_of_rows = prompt_ids[rows].tolist()
            if len(set(prompts_of_rows)) < len(prompts_of_rows):
                raise archive.error("embedding", first + rows[0], "a prompt has two vectors of the same encoder")
            stored = _find_vectors(session, keys[place], prompts_of_rows)
            pairs = list(zip(rows, prompts_of_rows, strict=True))
            different = [row for row, prompt in pairs if stored.get(prompt, vectors[row]) != vectors[row]]
            if different:
                raise ConflictError(
                    f"{archive.path}: {len(different):,} vectors differ from the stored ones of {encoder.label}. "
                    "Import the archive into another --database."
                )
            fresh = [row for row, prompt in pairs if prompt not in stored]
            if fresh:
                new = np.frombuffer(b"".join(vectors[row] for row in fresh), dtype="<f4").reshape(len(fresh), -1)
                add_vectors(session, keys[place], prompt_ids[fresh], new)
                n_new += len(fresh)
        first += batch.num_rows
    return n_new


def _find_vectors(session: Session, encoder: int, prompt_ids: list[int]) -> dict[int, bytes]:
    vectors: dict[int, bytes] = {}
    for part in split_keys(prompt_ids):
        query = sa.select(EMBEDDING.c.prompt_id, EMBEDDING.c.vector).where(
            EMBEDDING.c.encoder_id == encoder, EMBEDDING.c.prompt_id.in_(part)
        )
        vectors.update((row[0], bytes(row[1])) for row in fetch_raw_rows(session, query))
    return vectors
