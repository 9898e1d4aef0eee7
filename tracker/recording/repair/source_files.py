"""The files that a store was imported from: found by their recorded hash, and imported again into a temporary store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import sqlalchemy as sa

from tracker.errors import SuffrageError
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import identify_content
from tracker.ingest.parsing.file_blocks import ReadProgress, hash_files
from tracker.ingest.pipeline import ingest_file
from tracker.schema import metadata


@dataclass(frozen=True, kw_only=True)
class ImportedFile:
    """A file that was imported, and still has the recorded hash.

    Attributes:
        path: where it is.
        identity: SHA-256 of content and options.
        digest: SHA-256 of its bytes.
        format: name of its format.
    """

    path: Path
    identity: str
    digest: str
    format: str


def find_source_files(connection: sa.Connection, candidates: Sequence[Path] = ()) -> list[ImportedFile]:
    """Return the imported files that still have their hash: at the recorded path, or among the given files."""
    source = metadata.tables["source"]
    rows = connection.execute(sa.select(source.c.identity, source.c.digest, source.c.path, source.c.format)).all()
    hashes: dict[tuple[Path, str], str | None] = {}
    files = []
    for identity, digest, path, kind in rows:
        for candidate in (*candidates, Path(str(path))):
            if (candidate, kind) not in hashes:
                hashes[candidate, kind] = _hash(candidate, kind)
            if hashes[candidate, kind] == digest:
                files.append(ImportedFile(path=candidate, identity=identity, digest=digest, format=kind))
                break
    return files


def import_again(store: sa.Connection, target: sa.Engine, file: ImportedFile) -> str:
    """Import a file into a temporary store with the options of its first import; returns why that failed, or ''."""
    problem = ""
    for options in _list_options(store, file):
        try:
            ingest_file(target, file.path, options, format=file.format, new_metric=True)
        except SuffrageError as error:
            problem = problem or str(error)
        else:
            return ""
    return problem


def _hash(path: Path, kind: str) -> str | None:
    """Return the hash of a file with those that belong to it; None if it is not there."""
    try:
        if not path.is_file():
            return None
        companion_files = getattr(load_formats().get(kind), "companion_files", lambda _: ())
        return hash_files((path, *companion_files(path)), ReadProgress(1, None))
    except (OSError, ValueError, SuffrageError):
        return None


def _list_options(store: sa.Connection, file: ImportedFile) -> Iterator[ReadOptions]:
    """Yield the options whose hash was recorded; if they are not among the usual ones, those that suit the runs."""

    def names(table: str) -> list[str | None]:
        return [None, *store.scalars(sa.select(metadata.tables[table].c.name).distinct())]

    conditions, layouts = (None, "full", "answer_only"), (None, "prompts", "models", "tasks")
    choices = product(names("benchmark"), names("metric"), names("model"), conditions, layouts)
    for benchmark, metric, model, condition, orient in choices:
        options = ReadOptions(benchmark=benchmark, metric=metric, model=model, condition=condition, orient=orient)
        if identify_content(file.digest, file.format, options) == file.identity:
            yield options
            return
    tables = metadata.tables
    of_file = (
        sa.select(tables["benchmark"].c.name, tables["metric"].c.name)
        .select_from(tables["source_metric"])
        .join(tables["source"])
        .join(tables["benchmark"])
        .join(tables["metric"], tables["metric"].c.id == tables["source_metric"].c.metric_id)
        .where(tables["source"].c.digest == file.digest)
    )
    for benchmark, metric in store.execute(of_file).all():
        options = ReadOptions(benchmark=benchmark)
        yield from (options, replace(options, metric=metric))
