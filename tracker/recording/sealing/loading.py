"""Copy the rows of sealed runs back into the store: for as long as they are read, or for good."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import create_unchecked_engine, split_keys, transaction
from tracker.errors import DatabaseError, SealedRowsError
from tracker.ingest.write.bulk_rows import insert_answers, insert_scores
from tracker.ingest.write.score_columns import ScoreColumn, pack
from tracker.integrity.recorder import unrecorded
from tracker.integrity.sealed_rows import IGNORED, list_moved
from tracker.queries.sql import tables
from tracker.recording.sealing.sealed_files import (
    FILES,
    MANIFEST,
    FileSums,
    ScoreRows,
    read_answers,
    read_scores,
    verify_files,
    verify_manifest,
)
from tracker.recording.sealing.storage import open_folder
from tracker.schema import metadata

T = TypeVar("T")
Progress = Callable[[int, int], None]

SEALED = metadata.tables["sealed_run"]
MAX_LOADS = 20
"""Times that a command is begun again after the rows it needs were loaded."""


@dataclass(frozen=True, kw_only=True)
class LoadedRows:
    """What was copied back into the store.

    Attributes:
        n_runs: number of runs.
        n_scores, n_answers: numbers of rows.
        addresses: the folders they were read from.
    """

    n_runs: int
    n_scores: int
    n_answers: int
    addresses: tuple[str, ...]


def ignore_progress(done: int, total: int) -> None:
    """Report no progress."""


def with_sealed_rows(
    action: Callable[[], T],
    load: Callable[[Callable[[Progress], LoadedRows]], object] = lambda load_needed: load_needed(ignore_progress),
    needed: SealedRowsError | None = None,
) -> T:
    """Return what an action returns; if it needs rows that are in sealed files only, load them and begin it again.

    Args:
        action: what has no effect before it needs the rows.
        load: called with a function that loads the rows and reports its progress to the passed function.
        needed: the error of the first attempt, if it was made.
    """
    for _ in range(MAX_LOADS):
        if needed is not None:
            load(partial(_load_needed, needed))
        try:
            return action()
        except SealedRowsError as error:
            needed = error
    raise DatabaseError("The rows of sealed runs are removed as fast as they are loaded. End `suffrage seal` first.")


def _load_needed(needed: SealedRowsError, progress: Progress) -> LoadedRows:
    engine = create_unchecked_engine(needed.url)
    try:
        return load_rows(engine, needed.run_ids, progress=progress)
    except DatabaseError as error:
        raise DatabaseError(
            f"The scores are in sealed files and could not be copied into the store. {error}"
        ) from error
    finally:
        engine.dispose()


def load_rows(
    engine: sa.Engine,
    run_ids: Collection[int],
    *,
    for_good: bool = False,
    new_address: str | None = None,
    progress: Progress = ignore_progress,
) -> LoadedRows:
    """Copy the rows of some runs into the store, with those of all other sealed runs of their benchmarks.

    Args:
        engine: the store.
        run_ids: the runs; those that are in the store already, or not sealed, are left out.
        for_good: whether the runs are sealed no longer; the files stay.
        new_address: folder or address of the files, or of the folder in which theirs are, if not the stored one.
        progress: called with the number of finished rows, and of all rows.

    Raises:
        DatabaseError: a file is missing or not as it was written, or the store cannot be written.
    """
    with transaction(engine, write=False) as session:
        folders = _find_folders(session, run_ids)
    with ExitStack() as opened:
        places = {}
        for address, digest in {(row.address, row.digest) for row in folders}:
            place = _find_folder(address, digest, new_address)
            places[address] = opened.enter_context(open_folder(place, (MANIFEST, *FILES)))
            verify_files(places[address], digest, place)
        with transaction(engine, exclusive=True) as session:
            loaded = _insert(session, places, run_ids, progress)
            if new_address and loaded.addresses:
                loaded = replace(loaded, addresses=(new_address,))
            if for_good:
                _forget_files(session, run_ids)
    return loaded


def _find_folder(address: str, digest: str, new_address: str | None) -> str:
    """Return where the files of a folder are: at its new address, in a folder of its name there, or where it was."""
    if new_address is None:
        return address
    for place in (new_address, f"{new_address}/{address.rsplit('/', 1)[-1]}", address):
        with suppress(DatabaseError), open_folder(place, (MANIFEST,)) as folder:
            verify_manifest(folder, digest, place)
            return place
    return new_address


def _find_folders(session: Session, run_ids: Collection[int]) -> list[Any]:
    """Return the sealed runs without rows in the store, of the benchmarks of some runs, with their folders."""
    moved = list_moved(session.connection())
    benchmarks = {moved[run] for run in run_ids if run in moved}
    chosen = sorted(run for run, benchmark in moved.items() if benchmark in benchmarks)
    sealed, run = tables.sealed_run.c, tables.run.c
    rows: list[Any] = []
    for part in split_keys(chosen):
        query = sa.select(tables.sealed_run, run.n_scores, run.checksum.label("stored")).join(
            tables.run, run.id == sealed.run_id
        )
        rows += session.execute(query.where(sealed.run_id.in_(part)).order_by(sealed.run_id)).all()
    return rows


def _insert(session: Session, places: Mapping[str, Path], run_ids: Collection[int], progress: Progress) -> LoadedRows:
    connection = session.connection().execution_options(**{IGNORED: True})
    # Another process may have loaded some in the meantime, or sealed more.
    chosen = [row for row in _find_folders(session, run_ids) if row.address in places]
    by_folder: dict[str, list[Any]] = {}
    for row in chosen:
        by_folder.setdefault(row.address, []).append(row)
    total = sum(row.n_scores + row.n_answers for row in chosen)
    done, sums = 0, FileSums()
    with unrecorded(connection):
        for address, rows in by_folder.items():
            keys = {row.run_id for row in rows}
            for scores in read_scores(places[address], keys):
                insert_scores(session, _split_columns(scores))
                sums.scores.add(scores.keys[0], scores.words)
                progress(done := done + len(scores.values), total)
            for answers, words in read_answers(places[address], keys):
                insert_answers(session, answers)
                sums.answers.add(np.array([row[0] for row in answers], dtype=np.int64), words)
                progress(done := done + len(answers), total)
    for row in chosen:
        present = sums.scores.describe(row.run_id), sums.answers.describe(row.run_id)
        if present != ((row.n_scores, row.stored), (row.n_answers, row.answer_checksum)):
            raise DatabaseError(
                f"The sealed rows of run {row.run_id} in {row.address} are not those of the store. Nothing was changed."
            )
    for part in split_keys([row.run_id for row in chosen]):
        session.execute(sa.update(SEALED).where(SEALED.c.run_id.in_(part)).values(rows_in_store=True))
    return LoadedRows(
        n_runs=len(chosen),
        n_scores=sum(row.n_scores for row in chosen),
        n_answers=sum(row.n_answers for row in chosen),
        addresses=tuple(by_folder),
    )


def _split_columns(rows: ScoreRows) -> Iterator[tuple[int, ScoreColumn]]:
    """Yield the run and its scores, by run and metric."""
    (runs, metrics, prompts, trials), values = rows.keys, rows.values
    starts = np.flatnonzero(np.concatenate([[True], (runs[1:] != runs[:-1]) | (metrics[1:] != metrics[:-1])]))
    for first, last in zip(starts.tolist(), [*starts[1:].tolist(), len(values)], strict=True):
        part = slice(first, last)
        column = ScoreColumn(int(metrics[first]), pack(prompts[part], trials[part]), values[part])
        yield int(runs[first]), column


def list_sealed_runs(session: Session, benchmark_id: int | None = None) -> list[int]:
    """Return the sealed runs of a benchmark, or of all, whether or not their rows are in the store as well."""
    sealed, run = tables.sealed_run.c, tables.run.c
    query = sa.select(sealed.run_id).join(tables.run, run.id == sealed.run_id).order_by(sealed.run_id)
    return list(session.scalars(query if benchmark_id is None else query.where(run.benchmark_id == benchmark_id)))


def _forget_files(session: Session, run_ids: Collection[int]) -> None:
    """Let those of some runs be sealed no longer whose rows are in the store."""
    in_store = sa.select(SEALED.c.run_id).where(SEALED.c.rows_in_store)
    for part in split_keys(run_ids):
        for table in (metadata.tables["sealed_metric"], SEALED):
            session.execute(sa.delete(table).where(table.c.run_id.in_(part), table.c.run_id.in_(in_store)))
