"""Restore damaged rows: find rows with the recorded checksum, write them in one transaction, check the store again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import exc

from tracker.connections.driver_errors import driver, explain_driver_error, explained_errors
from tracker.connections.partitions import PARTITIONED
from tracker.copying.store_faults import SCORES, StoreFault, find_store_faults
from tracker.copying.store_files import UNREADABLE
from tracker.database import MISPLACED, lock_for_writing
from tracker.errors import BadInputError, DatabaseError, SuffrageError, first_line
from tracker.integrity.row_hashes import Row
from tracker.integrity.stored_checksums import add_to_checksums
from tracker.integrity.verification import snapshot
from tracker.private_files.temporary import temporary_folder
from tracker.recording.doctor import find_faults
from tracker.recording.repair.backups import is_store_file, open_backup
from tracker.recording.repair.counters import restore_counters
from tracker.recording.repair.damage import (
    Damage,
    has_expected_rows,
    hash_each_row,
    list_damages,
    parse_score_checksum,
    read_scope,
    read_score_checksum,
)
from tracker.recording.repair.imported_rows import ImportedRows
from tracker.recording.repair.reruns import RerunRows, may_restore
from tracker.recording.repair.row_choice import choose_rows, drop_stray_row, has_equal_rows
from tracker.recording.repair.row_writing import find_broken_reference, replace_rows
from tracker.recording.repair.source_files import find_source_files
from tracker.schema.search_index import create_search_index, drop_search_index, find_search_faults

STRAY = "removal: Suffrage did not store it"
UNKNOWN = "no copy has the same content, which would prove it; --repair --remove-unknown removes it"
_REMOVE_STRAY_SCORES = (
    "DELETE FROM score WHERE run_id NOT IN (SELECT id FROM run) "
    "AND run_id NOT IN (SELECT key FROM checksum WHERE table_name = 'run')"
)
"""Scores of runs that never existed have no checksum; those of a run whose row is lost stay."""

RERUN = "a rerun of its analysis"


class RowSource(Protocol):
    """Another copy of rows of the store."""

    @property
    def label(self) -> str:
        """Return what it is, for messages."""
        ...

    def find(self, damage: Damage) -> Iterator[list[Row]]:
        """Yield rows that may be those of a damaged scope."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Remedy:
    """What can be done about a damage.

    Attributes:
        damage: the rows that are damaged.
        origin: what can restore or has restored them; '' if nothing can.
        rows: rows with the recorded checksum; None if a rerun may return them, or nothing can.
        adds_checksum: whether the rows are those that are stored, and only their checksum is written.
        problem: why they cannot be restored, or were not; '' if they can.
    """

    damage: Damage
    origin: str = ""
    rows: Sequence[Row] | None = None
    adds_checksum: bool = False
    problem: str = ""

    @property
    def is_certain(self) -> bool:
        """Return whether rows with the recorded checksum are at hand."""
        return self.rows is not None

    @property
    def is_restored(self) -> bool:
        """Return whether its rows were written."""
        return self.is_certain and not self.problem


@dataclass(frozen=True, kw_only=True)
class RepairResult:
    """The result of a repair.

    Attributes:
        remedies: one for each damage, in the order of the tables.
        remaining: faults of the store afterwards, of every kind.
    """

    remedies: Sequence[Remedy]
    remaining: Sequence[StoreFault]

    @property
    def n_restored(self) -> int:
        """Return how many damages were restored."""
        return sum(remedy.is_restored for remedy in self.remedies)


def plan_repair(engine: sa.Engine, files: Sequence[Path] = ()) -> list[Remedy]:
    """Return what could restore each damaged row, run or finding; nothing is changed, and no analysis is run.

    Args:
        engine: the store.
        files: backups, archives, and copies of imported files.

    Raises:
        BadInputError: a file cannot be used.
    """
    with snapshot(engine) as connection, _open_sources(connection, files) as sources:
        damages = list_damages(connection, find_store_faults(connection))
        remedies = _find_remedies(connection, damages, sources)
    return [
        replace(remedy, origin=RERUN, problem="")
        if not remedy.is_certain and may_restore(engine, remedy.damage)
        else remedy
        for remedy in remedies
    ]


def repair(engine: sa.Engine, files: Sequence[Path] = (), *, remove_unknown: bool = False) -> RepairResult:
    """Restore what can be restored: rows from copies in one transaction, then rows of findings from reruns in another.

    Each damage is restored completely or left as it is. A row is accepted only with its recorded checksum, which is
    computed again from the store before the transaction commits. Rows without a checksum stay; a copy or rerun with
    the same content restores their checksum.

    Args:
        engine: the store.
        files: as for `plan_repair`.
        remove_unknown: remove rows without a checksum which no copy and no rerun holds, then restore again.

    Raises:
        BadInputError: a file cannot be used.
        DatabaseError: the store cannot be written.
    """
    outcome = {remedy.damage.place: remedy for remedy in _restore(engine, files)}
    unknown = [
        Remedy(damage=remedy.damage, origin=STRAY, rows=())
        for remedy in outcome.values()
        if remedy.damage.is_unknown and not remedy.is_restored
    ]
    if remove_unknown:
        with _writing(engine) as connection, _new_search_index(connection, unknown):
            removed = _write(connection, unknown, checks_references=True)
            connection.exec_driver_sql(_REMOVE_STRAY_SCORES)
        outcome |= {remedy.damage.place: remedy for remedy in (*removed, *_restore(engine, files))}
    return RepairResult(remedies=list(outcome.values()), remaining=list(find_faults(engine)))


def _restore(engine: sa.Engine, files: Sequence[Path]) -> list[Remedy]:
    """Restore what copies and reruns hold, and remove nothing but scores and rows that checksums rule out.

    SQLite checks references when all is written. If one is to a row that could not be restored, every damage is tried
    again, and left out if a row that it refers to is missing.
    """
    try:
        return _try_to_restore(engine, files, checks_references=False)
    except DatabaseError as error:
        if not isinstance(error.__cause__, exc.IntegrityError):
            raise
        return _try_to_restore(engine, files, checks_references=True)


def _try_to_restore(engine: sa.Engine, files: Sequence[Path], *, checks_references: bool) -> list[Remedy]:
    with _writing(engine) as connection:
        faults = list(find_store_faults(connection))
        with _open_sources(connection, files) as sources:
            damages = list_damages(connection, faults)
            remedies = _find_remedies(connection, damages, sources)
        with _new_search_index(connection, remedies):
            first = _write(connection, remedies, checks_references=checks_references)
        if any(MISPLACED in fault.sentence for fault in faults):
            _move_to_partitions(connection)
        restore_counters(connection)
    waiting = [remedy for remedy in first if not remedy.is_certain and may_restore(engine, remedy.damage)]
    again: list[Remedy] = []
    if waiting:
        with snapshot(engine) as connection:
            recomputed = _find_remedies(
                connection, [remedy.damage for remedy in waiting], [RerunRows(engine, connection)]
            )
        with _writing(engine) as connection:
            again = _write(connection, recomputed, checks_references=True)
    by_place = {remedy.damage.place: remedy for remedy in again}
    return [by_place.get(remedy.damage.place, remedy) for remedy in first]


@contextmanager
def _open_sources(connection: sa.Connection, files: Sequence[Path]) -> Iterator[list[RowSource]]:
    """Open backups, archives and imported files, in the order in which they are tried.

    Raises:
        BadInputError: a file is neither a store nor a file that was imported.
    """
    stores = [path for path in files if is_store_file(path)]
    results = [path for path in files if path not in stores]
    with ExitStack() as stack:
        sources: list[RowSource] = [stack.enter_context(open_backup(path)) for path in stores]
        recorded = find_source_files(connection, results)
        if unknown := [path for path in results if path not in {file.path for file in recorded}]:
            raise BadInputError(unknown[0], "is no backup, and no file with the hash of an imported file.")
        imported = ImportedRows(connection, recorded, stack.enter_context(temporary_folder()))
        stack.callback(imported.close)
        yield [*sources, imported]


def _move_to_partitions(connection: sa.Connection) -> None:
    """Move rows to the partition of the benchmark of their run; another program may have moved them away."""
    for table in PARTITIONED:
        connection.exec_driver_sql(
            f"UPDATE {table} SET benchmark_id = run.benchmark_id FROM run "
            f"WHERE run.id = run_id AND run.benchmark_id <> {table}.benchmark_id"
        )


def _find_remedies(connection: sa.Connection, damages: Iterable[Damage], sources: Sequence[RowSource]) -> list[Remedy]:
    """Return rows with the recorded checksum for each damage, as far as the sources hold them."""
    remedies: list[Remedy] = []
    checksums: dict[int, NDArray[np.uint64] | None] = {}
    for damage in damages:
        known = damage if damage.expected is not None else replace(damage, expected=checksums.get(damage.key))
        remedy = _find_remedy(connection, known, sources)
        if damage.table.name == "run" and remedy.rows:
            checksums[damage.key] = _score_checksum_of(remedy.rows[0], damage.table)
        remedies.append(remedy)
    return remedies


def _find_remedy(connection: sa.Connection, damage: Damage, sources: Sequence[RowSource]) -> Remedy:
    if damage.expected is None:
        return Remedy(damage=damage, problem="the checksum of its scores is in the row of the run, which is lost too")
    if damage.is_stray:
        return Remedy(damage=damage, origin=STRAY, rows=())
    try:
        present = read_scope(connection, damage.table, damage.key)
    except UNREADABLE as error:
        return Remedy(damage=damage, problem=f"the store cannot be read: {first_line(error)}")
    if damage.is_unknown:
        return _find_checksum(damage, present, sources)
    if present and (rows := drop_stray_row(damage.table, present, damage.expected)):
        return Remedy(damage=damage, origin=STRAY, rows=rows)
    problems = []
    for source in sources:
        try:
            for copied in source.find(damage):
                if rows := choose_rows(damage.table, present, copied, damage.expected):
                    return Remedy(damage=damage, origin=source.label, rows=rows)
                if has_equal_rows(damage.table, present, copied):
                    problems.append(f"{source.label} has the same content: its checksum may be what was changed")
        except (*UNREADABLE, SuffrageError) as error:
            problems.append(first_line(error))
    return Remedy(damage=damage, problem="; ".join(problems) or "no copy has content with the recorded checksum")


def _find_checksum(damage: Damage, present: Sequence[Row], sources: Sequence[RowSource]) -> Remedy:
    """Return the remedy for rows without a checksum: it is written anew if a copy has the same content."""
    for source in sources:
        with suppress(*UNREADABLE, SuffrageError):
            if any(has_equal_rows(damage.table, present, copied) for copied in source.find(damage)):
                proven = replace(damage, expected=hash_each_row(damage.table, present).sum(axis=0, dtype=np.uint64))
                return Remedy(
                    damage=proven, origin=f"{source.label} has the same content", rows=present, adds_checksum=True
                )
    return Remedy(damage=damage, problem=UNKNOWN)


def _score_checksum_of(row: Row, table: sa.Table) -> NDArray[np.uint64] | None:
    return parse_score_checksum(row[list(table.columns.keys()).index("checksum")])


def _write(connection: sa.Connection, remedies: Sequence[Remedy], *, checks_references: bool) -> list[Remedy]:
    """Write the rows of each remedy that has some, all or none; what fails is tried again after the others.

    Rows that should not exist are removed first, the last tables first: they may hold the names of those to restore.
    """
    strays = [remedy for remedy in reversed(remedies) if remedy.is_certain and not remedy.rows]
    waiting = [*strays, *(remedy for remedy in remedies if remedy.is_certain and remedy.rows)]
    problems: dict[tuple[str, int], str] = {}
    n_waiting = len(waiting) + 1
    while waiting and len(waiting) < n_waiting:
        n_waiting = len(waiting)
        failed = []
        for remedy in waiting:
            problem = _try_to_write(connection, remedy, checks_references)
            if problem:
                failed.append(remedy)
                problems[remedy.damage.place] = problem
            else:
                problems.pop(remedy.damage.place, None)
        waiting = failed
    return [
        replace(remedy, problem=problems[remedy.damage.place]) if remedy.damage.place in problems else remedy
        for remedy in remedies
    ]


def _try_to_write(connection: sa.Connection, remedy: Remedy, checks_references: bool) -> str:
    """Write the rows of a remedy and compare them with the checksum; returns why it was undone, or ''."""
    damage = remedy.damage
    driver_error = driver(connection.dialect.name).Error
    undo = connection.begin_nested()
    try:
        present = read_scope(connection, damage.table, damage.key)
        replace_rows(connection, damage.table, present, remedy.rows or ())
        expected = damage.expected
        if damage.table.name == SCORES:
            expected = read_score_checksum(connection, damage.key)
        if expected is None or not has_expected_rows(connection, damage, expected):
            undo.rollback()
            return "the written rows did not have the recorded checksum"
        if checks_references and (
            problem := find_broken_reference(connection, damage.table, present, remedy.rows or ())
        ):
            undo.rollback()
            return problem
        if remedy.adds_checksum:
            add_to_checksums(connection, damage.table.name, (np.array([damage.key]), expected[None, :]))
    except (driver_error, *UNREADABLE) as error:
        undo.rollback()
        return f"it cannot be written: {first_line(error)}"
    undo.commit()
    return ""


@contextmanager
def _new_search_index(connection: sa.Connection, remedies: Sequence[Remedy]) -> Iterator[None]:
    """Create the index of prompts anew after prompts are restored, or if it has faults.

    It is dropped first: its triggers rely on rows that the damage may have passed by.
    """
    changed = any(remedy.damage.table.name == "prompt" and remedy.is_certain for remedy in remedies)
    is_new = changed or bool(find_search_faults(connection))
    if is_new:
        drop_search_index(connection)
    yield
    if is_new:
        create_search_index(connection)


@contextmanager
def _writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a write transaction whose changes leave the recorded checksums as they are.

    Raises:
        DatabaseError: the store cannot be written.
    """
    try:
        with (
            explained_errors(engine),
            engine.execution_options(begin="IMMEDIATE").connect() as connection,
            connection.begin(),
        ):
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
            else:
                lock_for_writing(connection)
            yield connection
    except exc.DBAPIError as error:
        raise DatabaseError(explain_driver_error(error, engine)) from error
