"""Compare the content of a store with its checksums."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from tracker.integrity.scopes import covered_tables, describe_scope
from tracker.integrity.sealed_rows import IGNORED as SEALED_IGNORED
from tracker.integrity.sealed_rows import list_moved
from tracker.integrity.stored_checksums import (
    COUNTERS,
    LAYOUT,
    LOCAL_SCOPES,
    Sums,
    compute_checksums,
    compute_local_checksums,
    iterate_words,
    read_checksums,
)


@dataclass(frozen=True, kw_only=True)
class ContentFault:
    """Content that differs from its checksum.

    Attributes:
        table: the table.
        key: of the scope: the row, or what the rows belong to; None if the whole table cannot be read.
        reason: ``changed``, ``lost`` (no row is left), ``unknown`` (rows without a checksum), or the message of the
            engine.
    """

    table: str
    key: int | None
    reason: str

    @property
    def subject(self) -> str:
        """Return what differs, such as ``prompt 17`` or ``answer of run 5``."""
        return self.table if self.key is None else _LOCAL.get(self.table) or describe_scope(self.table, self.key)

    def __str__(self) -> str:
        sentence = _SENTENCES.get(self.reason)
        return f"{self.subject} {sentence}" if sentence else f"{self.subject} cannot be read: {self.reason}"


_SENTENCES = {
    "changed": "differs from what was stored",
    "lost": "is missing, although its checksum is there",
    "unknown": "has no checksum: another program added it, or the checksum is lost",
}
_LOCAL = {LAYOUT: "the definition of a table, view or trigger", COUNTERS: "a counter of keys"}


@contextmanager
def snapshot(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction for reading that sees one state of the store, whatever is written meanwhile.

    Of sealed runs it sees the rows in the store alone.
    """
    options: dict[str, Any] = {SEALED_IGNORED: True}
    if engine.dialect.name == "postgresql":
        options["isolation_level"] = "REPEATABLE READ"
    with engine.connect().execution_options(**options) as connection:
        transaction = connection.begin()
        try:
            yield connection
        finally:
            with suppress(sa.exc.DBAPIError):  # a damaged file can fail once more
                transaction.rollback()


def find_content_faults(
    connection: sa.Connection, compared: Mapping[str, list[ContentFault]] | None = None
) -> Iterator[ContentFault]:
    """Yield what differs from its checksum, table by table; nothing if the store is sound.

    The scores of runs are compared by `tracker.ingest.write.checksums.verify_checksums`.

    Args:
        connection: a transaction that sees one state of the store.
        compared: the faults of tables that are compared already, by table.
    """
    unreadable = sa.exc.DBAPIError, connection.dialect.loaded_dbapi.Error, ValueError, OverflowError
    for table in covered_tables():
        if compared and table.name in compared:
            yield from compared[table.name]
            continue
        try:
            with connection.begin_nested():  # PostgreSQL reads no further after an error
                stored, present = _read_expected(connection, table.name), compute_checksums(connection, table)
        except unreadable as error:
            yield ContentFault(table=table.name, key=None, reason=str(getattr(error, "orig", None) or error))
            continue
        yield from compare_checksums(table.name, stored, present)
    try:
        for scope, present in compute_local_checksums(connection).items():
            stored = read_checksums(connection, scope)
            if connection.dialect.name == "postgresql" and not np.isin(present[0], stored[0]).all():
                continue  # of another major version of the server, or of an earlier program
            yield from compare_checksums(scope, stored, present)
        yield from _find_strays(connection)
    except (sa.exc.DBAPIError, sqlite3.Error) as error:
        yield ContentFault(table="checksum", key=None, reason=str(getattr(error, "orig", None) or error))


def _read_expected(connection: sa.Connection, table: str) -> Sums:
    """Return the stored checksums of a table, without those of answers that are in sealed files only."""
    return drop_moved(read_checksums(connection, table), table, list_moved(connection))


def drop_moved(sums: Sums, table: str, moved: Collection[int]) -> Sums:
    """Return checksums of a table without those of rows that are in sealed files only.

    Args:
        sums: by the keys of the table's scopes.
        table: its name.
        moved: the runs whose rows are in sealed files only.
    """
    if table != "answer" or not moved:
        return sums
    remain = ~np.isin(sums[0], list(moved))
    return sums[0][remain], sums[1][remain]


def load_checksums(connection: sa.Connection, *, recompute: bool = False) -> Mapping[tuple[str, int], str]:
    """Return the checksum of every scope of a store, 32 hexadecimal digits, by table and key.

    Two stores with equal mappings have equal content, whatever their engines. The scores of a run are under
    ``("score", run)``.

    Args:
        connection: a transaction that sees one state of the store.
        recompute: compute them from the rows instead of reading those that are stored; scores are not read.
    """
    checksums = {}
    for table in covered_tables():
        sums = (compute_checksums if recompute else _read)(connection, table)
        checksums.update({(table.name, key): words for key, words in iterate_words(sums)})
    for run_id, words in connection.execute(sa.text("SELECT id, checksum FROM run WHERE n_scores > 0")):
        checksums["score", run_id] = words
    return checksums


def _read(connection: sa.Connection, table: sa.Table) -> Sums:
    return read_checksums(connection, table.name)


def compare_checksums(table: str, stored: Sums, present: Sums) -> Iterator[ContentFault]:
    """Yield the scopes of a table whose checksums differ."""
    keys = np.union1d(stored[0], present[0])
    expected, computed = np.zeros((len(keys), 2), dtype=np.uint64), np.zeros((len(keys), 2), dtype=np.uint64)
    expected[np.searchsorted(keys, stored[0])] = stored[1]
    computed[np.searchsorted(keys, present[0])] = present[1]
    for place in np.flatnonzero((expected != computed).any(axis=1)):
        reason = (
            "changed"
            if expected[place].any() and computed[place].any()
            else "lost"
            if expected[place].any()
            else "unknown"
        )
        yield ContentFault(table=table, key=int(keys[place]), reason=reason)


def _find_strays(connection: sa.Connection) -> Iterator[ContentFault]:
    """Yield checksums of tables that have none."""
    known = {table.name for table in covered_tables()} | {*LOCAL_SCOPES}
    for name, key in connection.execute(sa.text("SELECT table_name, key FROM checksum")):
        if name not in known:
            yield ContentFault(table=str(name), key=int(key), reason="lost")
