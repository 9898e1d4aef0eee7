"""Merge a SQLite store into an empty store, or into one with data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.copying.merging.merged_names import MergedNames
from tracker.copying.merging.merged_prompts import MergedPrompts
from tracker.copying.merging.merged_runs import MergedRuns
from tracker.copying.merging.source_store import SourceStore, open_source
from tracker.database import split_keys
from tracker.errors import BadInputError, ConflictError
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.write.bulk_rows import fetch_raw_rows
from tracker.ingest.write.store_changes import StoreChanges, StoredRun
from tracker.ingest.write.stored_runs import OnConflict, limit_warnings
from tracker.ingest.write.undo_log import recorded_import, undo_log
from tracker.ingest.write.vectors import EMBEDDING, EncoderName, add_vectors, find_or_add_encoder
from tracker.schema import Run


def merge_store(
    session: Session, path: Path, *, benchmark: str | None = None, on_conflict: OnConflict = "rerun"
) -> StoreChanges:
    """Add catalogue and measurements of the store in a SQLite file to the session's store.

    The source's files count as ingested. The source itself gets no row among them, so that both stores hold the same
    data. Findings are not merged.

    Args:
        session: an open write transaction; exclusive on PostgreSQL.
        path: the SQLite file.
        benchmark: new name of its only benchmark.
        on_conflict: see `tracker.ingest.write.writer.store_file`.

    Raises:
        BadInputError: the file is not a sound store, is this store, or contradicts a stored prompt or the bounds of a
            metric.
        ConflictError: the store contradicts stored data.
    """
    url = session.connection().engine.url
    if url.get_backend_name() == "sqlite" and Path(str(url.database)).resolve() == path.resolve():
        raise BadInputError(path, "is the store itself.", advice="Choose the store to merge it into with --database.")
    with open_source(path) as source, recorded_import(session, path):
        return _merge(session, source, benchmark, on_conflict)


def _merge(session: Session, source: SourceStore, benchmark: str | None, on_conflict: OnConflict) -> StoreChanges:
    catalogue = CatalogueResolver(session, source.path)
    names = MergedNames(session, source, catalogue)
    names.resolve(benchmark)
    if (log := undo_log(session)) is not None:
        log.benchmarks.update(catalogue.benchmark_names)
    prompts = MergedPrompts(names, on_conflict)
    prompts.store()
    runs = MergedRuns(names, prompts, on_conflict)
    runs.store()
    n_vectors = _store_vectors(session, source, prompts.keys)
    session.flush()
    additions = (
        (n_vectors, "prompt vectors"),
        (prompts.n_names_added, "aliases of stored prompts"),
        (names.n_aliases, "aliases of models"),
    )
    warnings = [*names.warnings, *prompts.warnings, *limit_warnings(runs.warnings)]
    warnings += [f"{n:,} {noun} added" for n, noun in additions if n]
    if n_findings := source.count("finding"):
        warnings.append(f"{n_findings:,} findings of the file are not merged: run the analyses again in this store")
    changes = _count_changes(runs, catalogue)
    return replace(changes, n_prompts_new=prompts.n_new, warnings=tuple(warnings))


def _count_changes(runs: MergedRuns, catalogue: CatalogueResolver) -> StoreChanges:
    def describe(chosen: list[tuple[Run, str]]) -> tuple[StoredRun, ...]:
        return tuple(StoredRun.describe(run, model, catalogue.benchmark_names) for run, model in chosen)

    counts = runs.counts
    return StoreChanges(
        source_id=None,
        benchmarks=tuple(catalogue.benchmark_names.values()),
        n_models_new=catalogue.n_models_new,
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


def _store_vectors(session: Session, source: SourceStore, prompts: Mapping[int, int]) -> int:
    """Store missing vectors; return their number.

    Raises:
        BadInputError: a vector does not have the encoder's length.
        ConflictError: stored vectors of an encoder differ in value or length.
    """
    n_new = 0
    for row in source.rows("encoder"):
        encoder = EncoderName(name=row["name"], revision=row["revision"], template=row["template"])
        key = find_or_add_encoder(session, encoder, row["dimensions"])
        for batch in source.batches("embedding", [EMBEDDING.c.encoder_id == row["id"]]):
            vectors = {prompts[vector["prompt_id"]]: bytes(vector["vector"]) for vector in batch}
            if any(len(vector) != 4 * row["dimensions"] for vector in vectors.values()):
                text = f"a vector of it does not have {row['dimensions']} numbers"
                raise source.error("encoder", row["id"], text)
            stored = _find_vectors(session, key, list(vectors))
            if different := [prompt for prompt in stored if stored[prompt] != vectors[prompt]]:
                raise ConflictError(
                    f"{source.path}: {len(different):,} vectors differ from the stored ones of {encoder.label}. "
                    "Import it into another --database."
                )
            fresh = [prompt for prompt in vectors if prompt not in stored]
            if fresh:
                new = np.frombuffer(b"".join(vectors[prompt] for prompt in fresh), dtype="<f4")
                add_vectors(session, key, np.array(fresh, dtype=np.int64), new.reshape(len(fresh), -1))
                n_new += len(fresh)
    return n_new


def _find_vectors(session: Session, encoder: int, prompt_ids: list[int]) -> dict[int, bytes]:
    vectors: dict[int, bytes] = {}
    for part in split_keys(prompt_ids):
        query = sa.select(EMBEDDING.c.prompt_id, EMBEDDING.c.vector).where(
            EMBEDDING.c.encoder_id == encoder, EMBEDDING.c.prompt_id.in_(part)
        )
        vectors.update((row[0], bytes(row[1])) for row in fetch_raw_rows(session, query))
    return vectors
