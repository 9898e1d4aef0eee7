"""Seal a benchmark: write the scores and answers of its runs to Parquet files, and remove them from the store."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tracker.connections.driver_errors import explain_driver_error
from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys, transaction
from tracker.errors import ConflictError, DatabaseError
from tracker.integrity.recorder import unrecorded
from tracker.integrity.sealed_rows import TABLE
from tracker.integrity.stored_checksums import iterate_words, read_checksums
from tracker.private_files.temporary import temporary_folder
from tracker.queries.resolution import BenchmarkKey
from tracker.queries.sql import arrow, tables
from tracker.recording.erasure.purging import rewrite_file
from tracker.recording.sealing.loading import Progress, ignore_progress
from tracker.recording.sealing.sealed_files import (
    FILES,
    MANIFEST,
    NO_ROWS,
    sum_files,
    verify_files,
    write_files,
    write_manifest,
)
from tracker.recording.sealing.storage import open_folder, write_folder
from tracker.schema import metadata
from tracker.schema.table import now

WAIT_SECONDS, RETRY_SECONDS = 60.0, 0.03
LOCK_NOT_AVAILABLE = "55P03"
RUN_FACTS = ("model", "condition", "variant", "label", "n_scores", "checksum")


@dataclass(frozen=True, kw_only=True)
class SealResult:
    """What sealing a benchmark did.

    Attributes:
        address: the new folder; None if the rows were in sealed files already.
        n_runs: number of runs whose rows were removed from the store.
        n_scores, n_answers: numbers of removed rows.
        n_bytes: size of the new files.
        unfinished: runs that are still being evaluated, and stay in the store.
    """

    address: str | None
    n_runs: int
    n_scores: int
    n_answers: int
    n_bytes: int
    unfinished: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _State:
    """The runs of a benchmark as one transaction sees them.

    Attributes:
        facts: by run, its description in the manifest.
        answers: by run, the checksum of its answers.
        again: runs whose rows are in sealed files already, as they are in the store.
        fresh: runs whose rows are not.
        unfinished: runs that are being evaluated.
        files: by run in ``again``, address and digest of its files.
    """

    facts: Mapping[int, Mapping[str, Any]]
    answers: Mapping[int, str]
    again: tuple[int, ...]
    fresh: tuple[int, ...]
    unfinished: tuple[int, ...]
    files: Mapping[int, tuple[str, str]]

    def pick(self, run_ids: Sequence[int]) -> dict[int, tuple[Any, str]]:
        """Return the checksums of some runs."""
        return {run: (self.facts[run]["checksum"], self.answers.get(run, NO_ROWS)) for run in run_ids}


@dataclass(frozen=True, kw_only=True)
class _WrittenFiles:
    """A new folder with sealed files.

    Attributes:
        address: of the folder.
        digest: SHA-256 of its manifest.
        n_bytes: size of its files.
        n_answers: by run.
    """

    address: str
    digest: str
    n_bytes: int
    n_answers: Mapping[int, int]


def find_sealed_folder(session: Session, benchmark_id: int) -> str | None:
    """Return the folder in which a benchmark was sealed last; None if it is not sealed."""
    sealed, run = tables.sealed_run.c, tables.run.c
    query = sa.select(sealed.address).join(tables.run, run.id == sealed.run_id)
    address = session.scalar(query.where(run.benchmark_id == benchmark_id).order_by(sealed.sealed.desc()).limit(1))
    return None if address is None else address.rsplit("/", 1)[0]


def seal(engine: sa.Engine, benchmark: BenchmarkKey, address: str, progress: Progress = ignore_progress) -> SealResult:
    """Move the scores and answers of a benchmark's runs into sealed files.

    The files are written, read back and compared with the checksums of the runs before anything is removed. Runs whose
    rows were loaded from sealed files, and have not changed, are removed without writing them again.

    Args:
        engine: the store.
        benchmark: the benchmark.
        address: normalized folder, or address, under which the files get a new folder.
        progress: called with the number of finished rows, and of all rows.

    Raises:
        DatabaseError: rows differ from their checksums, or the store cannot be written.
        ConflictError: the rows changed in the meantime; nothing was removed.
        OutputError: the files cannot be written.
    """
    with transaction(engine, write=False) as session:
        state = _read_state(session, benchmark.id)
        description = _describe_store(session, benchmark)
    state, written = _without_lost_files(state), None
    if state.fresh:
        written = _write(engine, benchmark, state, description, address, progress)
    moved = (*state.fresh, *state.again)
    with _without_readers(engine) as session:
        latest = _read_state(session, benchmark.id)
        is_same = set(moved) <= {*latest.again, *latest.fresh} and set(state.again) <= set(latest.again)
        if not is_same or state.pick(moved) != latest.pick(moved):
            raise ConflictError(f"{benchmark.label} changed while it was sealed. Nothing was removed: run it again.")
        if written is not None:
            _record_files(session, state, written)
        n_scores, n_answers = _remove_rows(session, moved)
    if moved:
        _return_space(engine)
    return SealResult(
        address=written.address if written else None,
        n_runs=len(moved),
        n_scores=n_scores,
        n_answers=n_answers,
        n_bytes=written.n_bytes if written else 0,
        unfinished=state.unfinished,
    )


@contextmanager
def _without_readers(engine: sa.Engine) -> Iterator[Session]:
    """Open an exclusive transaction when nobody reads rows of PostgreSQL who has looked that they are there.

    It does not queue for the lock: a reader with two connections would wait behind it with one, and hold it up with
    the other. SQLite shows each reader one state.

    Raises:
        DatabaseError: others read all the time.
    """
    end = time.monotonic() + WAIT_SECONDS
    while True:
        with transaction(engine, exclusive=True) as session:
            if engine.dialect.name == "sqlite" or _has_lock(session):
                yield session
                return
        if time.monotonic() > end:
            raise DatabaseError(
                f"Others have been reading the store for {WAIT_SECONDS:g} s. Nothing was removed: run it again later."
            )
        time.sleep(RETRY_SECONDS)


def _has_lock(session: Session) -> bool:
    """Lock the table of sealed runs; return False if others read it."""
    try:
        with session.begin_nested():
            session.execute(sa.text(f"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE NOWAIT"))
    except exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        return False
    return True


def _read_state(session: Session, benchmark_id: int) -> _State:
    run, model, sealed = tables.run.c, tables.model.c, tables.sealed_run.c
    leased = set(session.scalars(sa.select(tables.evaluation_lease.c.run_id).distinct()))
    of_answers = dict(iterate_words(read_checksums(session.connection(), "answer")))
    query = (
        sa.select(
            run.id, model.name.label("model"), run.condition, run.variant, run.label, run.n_scores, run.checksum,
            sealed.checksum.label("sealed"), sealed.answer_checksum, sealed.rows_in_store,
            sealed.address, sealed.digest,
        )
        .join(tables.model, model.id == run.model_id)
        .outerjoin(tables.sealed_run, sealed.run_id == run.id)
        .where(run.benchmark_id == benchmark_id)
        .order_by(run.id)
    )  # fmt: skip
    facts, files, fresh, unfinished = {}, {}, [], []
    for row in session.execute(query):
        facts[row.id] = {name: getattr(row, name) for name in RUN_FACTS}
        answers = of_answers.get(row.id, NO_ROWS)
        if row.rows_in_store is not None and not row.rows_in_store:
            continue
        if row.id in leased:
            unfinished.append(row.id)
        elif (row.sealed, row.answer_checksum) == (row.checksum, answers):
            files[row.id] = row.address, row.digest
        elif row.n_scores or answers != NO_ROWS:
            fresh.append(row.id)
    return _State(
        facts=facts,
        answers={run_id: words for run_id, words in of_answers.items() if run_id in facts},
        again=tuple(files),
        fresh=tuple(fresh),
        unfinished=tuple(unfinished),
        files=files,
    )


def _without_lost_files(state: _State) -> _State:
    """Return the state in which runs whose sealed files are missing or damaged are to be written anew."""
    lost = set()
    for address, digest in set(state.files.values()):
        try:
            with open_folder(address, (MANIFEST, *FILES)) as folder:
                verify_files(folder, digest, address)
        except DatabaseError:
            lost |= {run for run, files in state.files.items() if files == (address, digest)}
    again = tuple(run for run in state.again if run not in lost)
    return replace(state, again=again, fresh=tuple(sorted({*state.fresh, *lost})))


def _describe_store(session: Session, benchmark: BenchmarkKey) -> dict[str, Any]:
    metric = tables.metric.c
    metrics = session.execute(sa.select(metric.id, metric.name).order_by(metric.id)).all()
    store = session.scalar(sa.select(tables.database.c.id))
    return {"store": store, "benchmark": benchmark.label, "metrics": {str(key): name for key, name in metrics}}


def _write(
    engine: sa.Engine,
    benchmark: BenchmarkKey,
    state: _State,
    description: Mapping[str, Any],
    address: str,
    progress: Progress,
) -> _WrittenFiles:
    """Write the files, read them back, and move them to their place."""
    total = sum(state.facts[run]["n_scores"] for run in state.fresh)
    done = 0

    def count(n: int) -> None:
        nonlocal done
        done += n
        progress(min(done, total), total)

    with temporary_folder() as folder:
        with arrow.snapshot(engine) as reading:
            written = write_files(reading, state.fresh, folder, count)
        read_back = sum_files(folder, state.fresh)
        runs = []
        for run in state.fresh:
            facts, answers = state.facts[run], written.answers.describe(run)
            expected = (facts["n_scores"], facts["checksum"]), state.answers.get(run, NO_ROWS)
            if (written.scores.describe(run), answers[1]) != expected:
                raise DatabaseError(
                    f"Run {run} of {benchmark.label} differs from its checksums. Nothing was sealed. "
                    "`suffrage db check` lists what is damaged, and what can restore it."
                )
            if (read_back.scores.describe(run), read_back.answers.describe(run)) != (
                written.scores.describe(run), answers,
            ):  # fmt: skip
                raise DatabaseError(f"Run {run} read back from its new file differs. Nothing was sealed.")
            runs.append({"run": run, **facts, "n_answers": answers[0], "answer_checksum": answers[1]})
        digest = write_manifest(folder, {**description, "runs": runs})
        name = f"{re.sub('[^a-z0-9]+', '-', benchmark.label.lower()).strip('-') or 'benchmark'}-{digest[:12]}"
        n_bytes = sum(path.stat().st_size for path in folder.iterdir())
        place = write_folder(address, name, folder)
    with open_folder(place, (MANIFEST, *FILES)) as copy:
        verify_files(copy, digest, place)
    n_answers = {run["run"]: run["n_answers"] for run in runs}
    return _WrittenFiles(address=place, digest=digest, n_bytes=n_bytes, n_answers=n_answers)


def _record_files(session: Session, state: _State, written: _WrittenFiles) -> None:
    """Record which files hold the rows of runs, and what is known of the rows without them."""
    sealed, metric, score = (metadata.tables[name] for name in ("sealed_run", "sealed_metric", "score"))
    for part in split_keys(state.fresh):
        for table in (metric, sealed):
            session.execute(sa.delete(table).where(table.c.run_id.in_(part)))
        rows = [
            {
                "run_id": run,
                "address": written.address,
                "digest": written.digest,
                "checksum": state.facts[run]["checksum"],
                "answer_checksum": state.answers.get(run, NO_ROWS),
                "n_answers": written.n_answers[run],
                "rows_in_store": True,
                "sealed": now(),
            }
            for run in part
        ]
        session.execute(sa.insert(sealed), rows)
        s = score.c
        means = (
            sa.select(s.run_id, s.metric_id, sa.func.count(), sa.func.avg(s.value))
            .where(s.run_id.in_(part), in_partitions_of_runs(session, score, part))
            .group_by(s.run_id, s.metric_id)
        )
        session.execute(sa.insert(metric).from_select(["run_id", "metric_id", "n_scores", "mean"], means))


def _remove_rows(session: Session, run_ids: Sequence[int]) -> tuple[int, int]:
    """Remove the rows of runs that are in sealed files; return the numbers of scores and answers."""
    sealed, counts = metadata.tables["sealed_run"], {"score": 0, "answer": 0}
    for part in split_keys(run_ids):
        with unrecorded(session.connection()):
            for table in (metadata.tables["score"], metadata.tables["answer"]):
                terms = table.c.run_id.in_(part), in_partitions_of_runs(session, table, part)
                result: Any = session.execute(sa.delete(table).where(*terms))
                counts[table.name] += result.rowcount
        marked: Any = session.execute(sa.update(sealed).where(sealed.c.run_id.in_(part)).values(rows_in_store=False))
        if marked.rowcount != len(part):
            raise ConflictError("Runs were unsealed while they were sealed. Nothing was removed: run it again.")
    return counts["score"], counts["answer"]


def _return_space(engine: sa.Engine) -> None:
    """Return the space of removed rows to the disk.

    Raises:
        DatabaseError: another program uses the store.
    """
    try:
        if engine.dialect.name == "postgresql":
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for table in ("score", "answer"):
                    connection.exec_driver_sql(f"VACUUM (ANALYZE) {table}")
            return
        rewrite_file(engine)
    except (sqlite3.Error, exc.DBAPIError) as error:
        reason = explain_driver_error(error, engine)
        raise DatabaseError(
            f"The benchmark is sealed, but the file of the store has kept its size: {reason} "
            "To shrink it, run the same command again when no other program uses the store."
        ) from error
