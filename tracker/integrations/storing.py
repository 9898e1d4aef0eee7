"""Storing the files of a finished evaluation: a failure is a warning, and the evaluation goes on."""

from __future__ import annotations

import logging
import os
import shlex
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import IngestResult
from tracker.private_files.temporary import temporary_folder

BENCHMARK_VARIABLE = "SUFFRAGE_BENCHMARK"
"""Environment variable that names the benchmark of the results; without it the files name their benchmark."""

logger = logging.getLogger(__name__)
_lock = threading.Lock()  # tasks that end together create a new store once


def store_files(
    paths: Sequence[Path], *, database: str | None = None, benchmark: str | None = None, model: str | None = None
) -> list[IngestResult]:
    """Store each file as ``suffrage ingest`` does. Log what changed, and the warnings.

    A file that cannot be stored raises nothing: a warning names the reason, and the command that imports the file.

    Args:
        paths: files, each with the results of one evaluation.
        database: URL or path of the store; else as in `tracker.connections.store_url.database_url`.
        benchmark: its name; else the environment variable SUFFRAGE_BENCHMARK, else as in the file.
        model: name of the model; else as in the file.

    Returns:
        The result of each file that is stored.
    """
    benchmark = benchmark or os.environ.get(BENCHMARK_VARIABLE) or None
    options = ReadOptions(benchmark=benchmark, model=model)
    results = []
    for path in paths:
        try:
            with _lock:
                result = _store_file(path, database, options)
        except Exception as error:  # noqa: BLE001 - whatever fails here, the evaluation is over and its file is kept
            reason = str(error).removeprefix(f"{path}: ") or type(error).__name__
            command = import_command(path, database=database, benchmark=benchmark, model=model)
            logger.warning("Suffrage could not store %s: %s\nTo import it later: %s", path, reason, command)
            continue
        results.append(result)
        logger.info("%s", result.summary())
        for warning in result.changes.warnings:
            logger.warning("%s: %s", path.name, warning)
    return results


def store_location(location: str, download: Callable[[str, str], object]) -> list[IngestResult]:
    """Store a file that a path or a URL names; see `store_files`.

    Args:
        location: such as ``logs/log.eval``, ``file:///logs/log.eval`` or ``s3://bucket/log.eval``.
        download: copies what a URL names to a path.
    """
    url = urlsplit(location)
    if "://" not in location:
        return store_files([Path(location)])
    if url.scheme == "file":
        return store_files([Path(unquote(url.path))])
    with temporary_folder() as folder:
        path = folder / location.rpartition("/")[2]
        try:
            download(location, str(path))
        except Exception as error:  # noqa: BLE001 - each kind of storage has its errors
            command = import_command(path.name, benchmark=os.environ.get(BENCHMARK_VARIABLE))
            logger.warning("Suffrage could not read %s: %s\nTo import it, download it: %s", location, error, command)
            return []
        return store_files([path])


def import_command(
    path: Path | str, *, database: str | None = None, benchmark: str | None = None, model: str | None = None
) -> str:
    """Return the command that imports a file into the same store; passwords of its URL are left out."""
    words = ["suffrage", "ingest", str(path)]
    for option, value in (("--benchmark", benchmark), ("--model", model)):
        words += [option, value] if value else []
    if database:
        words += ["--database", _without_password(database)]
    return shlex.join(words)


def _without_password(database: str) -> str:
    import sqlalchemy as sa

    from tracker.connections.store_url import database_url, format_url
    from tracker.errors import DatabaseError

    try:
        return format_url(sa.make_url(database_url(database)))
    except DatabaseError:
        return "URL"


def _store_file(path: Path, database: str | None, options: ReadOptions) -> IngestResult:
    """Store a file; a new store is created once the file is parsed.

    Raises:
        SuffrageError: the store cannot be used, or the file is invalid or contradicts it.
    """
    from tracker.connections.schema_versions import check_not_foreign, current_version
    from tracker.database import create_unchecked_engine, ensure_current
    from tracker.ingest.pipeline import ingest_file
    from tracker.recording.sealing.loading import with_sealed_rows

    engine = create_unchecked_engine(database)
    try:
        if current_version(engine) is None:
            check_not_foreign(engine)
        else:
            ensure_current(engine)
        return with_sealed_rows(lambda: ingest_file(engine, path, options))
    finally:
        engine.dispose()
