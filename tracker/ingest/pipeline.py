"""Import of one file: parsing and storage in a single transaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.schema_versions import current_version
from tracker.database import ensure_current, transaction
from tracker.errors import BadInputError, SelectionError
from tracker.ingest.measurement import ParsedFile, Prompts, ReadOptions
from tracker.ingest.near_copies import describe_near_copies
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.resolve.catalogue_resolver import make_unknown_benchmark_error
from tracker.ingest.resolve.store_names import StoreNames
from tracker.ingest.write.store_changes import StoreChanges
from tracker.ingest.write.stored_runs import OnConflict
from tracker.ingest.write.writer import store_file


@dataclass(frozen=True, kw_only=True)
class IngestResult:
    """Result of importing a file.

    Attributes:
        path: the file.
        format: name of its format.
        changes: changes of the store; with ``dry_run``, the changes that would be made.
        dry_run: whether nothing was stored.
        reading: what the rows and columns of a table are.
    """

    path: Path
    format: str
    changes: StoreChanges
    dry_run: bool = False
    reading: str | None = None

    def summary(self) -> str:
        """Return the changes in one line."""
        return f"{self.path} ({self.format}): {'would be ' if self.dry_run else ''}{self.changes.summary()}"


class _IngestProgress:
    """Combines the progress of parsing and storing; storing is assumed to take a third of the time."""

    STORING = 1 / 3

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        self.progress, self.total = progress, 1

    def read(self, done: int, total: int) -> None:
        """Report the number of bytes parsed."""
        self.total = max(1, total)
        self._report(done / self.total * (1 - self.STORING))

    def store(self, done: int, total: int) -> None:
        """Report the number of blocks resolved; later steps are not reported."""
        self._report(1 - self.STORING * (1 - done / max(1, total)))

    def end(self) -> None:
        """Report that the file is stored."""
        self._report(1.0)

    def _report(self, share: float) -> None:
        if self.progress is not None:
            self.progress(round(self.total * share), self.total)


class _RollBackDryRunError(Exception):
    """Rolls back the transaction of a dry run."""


def ingest_file(
    engine: sa.Engine,
    path: Path,
    options: ReadOptions | None = None,
    *,
    format: str | None = None,
    on_conflict: OnConflict = "rerun",
    dry_run: bool = False,
    partial: bool = False,
    new_metric: bool = False,
    strict: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> IngestResult:
    """Parse a file, and store it in one transaction.

    Args:
        engine: the store.
        path: the file; for folders, see `tracker.ingest.parsing.detection.find_files`.
        options: how to read the file.
        format: name of its format; None to detect it.
        on_conflict: what to do if scores contradict stored ones; see `tracker.ingest.write.writer.store_file`.
        dry_run: report the changes without storing them.
        partial: store the valid part of a damaged file; its runs are marked as partial.
        new_metric: store content again that the benchmark has under another metric.
        strict: reject a file whose reported scores differ from those computed from its rows; else its runs are marked
            as unverified.
        progress: receives the amount done and the total.

    Raises:
        SuffrageError: the file is invalid or contradicts the store; nothing of it is stored.
        SelectionError: ``on_conflict`` is unknown.
    """
    if on_conflict not in get_args(OnConflict):
        raise SelectionError(f"on_conflict is {on_conflict!r}; choose from: {', '.join(get_args(OnConflict))}.")
    options = replace(options or ReadOptions(), known_names=StoreNames(engine))
    position = _IngestProgress(progress)
    parsed = parse_file(path, options, format=format, partial=partial, progress=position.read)
    try:
        if strict:
            _check_reported(path, parsed)
        if current_version(engine) is None:  # a store gets its tables once there is something to store
            _check_benchmark(parsed, options)
            ensure_current(engine)
        with suppress(_RollBackDryRunError), transaction(engine, exclusive=True) as session:
            changes = (
                store_file(
                    session, parsed, options, on_conflict=on_conflict, partial=partial, new_metric=new_metric,
                    progress=position.store,
                )
                if parsed.store is None
                else _merge(session, path, parsed, options, on_conflict)
            )  # fmt: skip
            if copies := describe_near_copies(session, changes.runs_new):
                changes = replace(changes, warnings=(*changes.warnings, *copies))
            if dry_run:
                raise _RollBackDryRunError
        position.end()
    finally:
        parsed.close()
    return IngestResult(path=path, format=parsed.format, changes=changes, dry_run=dry_run, reading=parsed.reading)


def _check_reported(path: Path, parsed: ParsedFile) -> None:
    """Reject a file whose reported scores differ from those computed from its rows.

    Raises:
        BadInputError: with both values of each.
    """
    if parsed.differences:
        problems = list(dict.fromkeys(difference.text for difference in parsed.differences))
        raise BadInputError(path, problems, advice="Nothing was stored. Without --strict, its runs are unverified.")


def _merge(
    session: Session, path: Path, parsed: ParsedFile, options: ReadOptions, on_conflict: OnConflict
) -> StoreChanges:
    """Merge another store, and return the changes with the warnings of its file."""
    from tracker.copying.merging.store_merge import merge_store  # most files are no stores

    changes = merge_store(session, path, benchmark=options.benchmark, on_conflict=on_conflict)
    return replace(changes, warnings=(*parsed.warnings, *changes.warnings))


def _check_benchmark(parsed: ParsedFile, options: ReadOptions) -> None:
    """Reject a file whose benchmark nobody names.

    Raises:
        BadInputError: neither the options nor the file name it.
    """
    if options.benchmark or parsed.store is not None or not parsed.measurements:
        return
    blocks = parsed.measurements
    if not any(block.benchmark if isinstance(block, Prompts) else block.run.benchmark for block in blocks):
        raise make_unknown_benchmark_error(parsed.path)
