"""Copy a whole store into an empty one, in one transaction, and verify it row by row."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tracker.connections.driver_errors import driver, explain_driver_error, explained_errors
from tracker.connections.partitions import built_partitions
from tracker.connections.schema_versions import current_version
from tracker.connections.store_url import format_url
from tracker.copying.engines import fill_table, has_key_counter, read_last_key, read_rows, set_last_key
from tracker.copying.values import Row, RowsChecksum
from tracker.database import ensure_current, find_stray_rows, lock_for_writing
from tracker.errors import DatabaseError
from tracker.integrity.sealed_rows import IGNORED as SEALED_IGNORED
from tracker.integrity.stored_checksums import LOCAL_SCOPES, replace_checksums, replace_local_checksums
from tracker.schema import metadata
from tracker.schema.search_index import TABLE as SEARCH_INDEX

Progress = Callable[[int, int], None]

_MADE_BY_MIGRATIONS = ("checksum", "database")
"""Tables with rows in an empty store."""
_COPIED = {"checksum": f"table_name NOT IN {LOCAL_SCOPES}"}
"""The condition for the rows that are copied, of tables with others."""


@dataclass(frozen=True, kw_only=True)
class CopiedTable:
    """A table with its row count in both stores.

    Attributes:
        name: of the table.
        n_rows: number of rows.
        checksum: order-free, of their content; equal in both.
    """

    name: str
    n_rows: int
    checksum: str


@dataclass(frozen=True, kw_only=True)
class CopyResult:
    """The result of a copy.

    Attributes:
        tables: all tables, in the order in which they were written.
        seconds: duration, including verification.
    """

    tables: tuple[CopiedTable, ...]
    seconds: float

    @property
    def n_rows(self) -> int:
        """Of all tables."""
        return sum(table.n_rows for table in self.tables)


def copy_store(
    source: sa.Engine,
    target: sa.Engine,
    *,
    new_identity: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
) -> CopyResult:
    """Copy everything with unchanged keys, in one transaction of the target.

    Afterwards every table is read again from both stores and compared by row count and content. If they differ, the
    target stays as it was.

    Args:
        source: a store of this program's version; concurrent writes are allowed, the copy is a snapshot.
        target: an empty or missing store.
        new_identity: give the copy a new identity and clear its record of publications, for use beside the original.
            Otherwise it is the same store in another place, and keeps its MLflow runs.
        replace: remove everything that the target holds first, in the same transaction.
        progress: called with the number of finished rows, and of all rows; each counts twice, since it is read back.

    Raises:
        DatabaseError: the target is not empty, a store cannot be used, or the stores differ in the end.
    """
    began = time.perf_counter()
    if current_version(source) is None:
        raise DatabaseError(f"{format_url(source.url)} is not a store. Name the source first, then the target.")
    ensure_current(source)
    ensure_current(target)
    tables = [table for table in metadata.sorted_tables if not (new_identity and table.name == "publication")]
    with reading(source) as origin, writing(target) as copy:
        if replace:
            _clear(copy)
        else:
            check_empty(copy, target, "Copy into a new store.")
        n_rows = sum(_count_rows(origin, table) for table in tables)
        counter = _RowCounter(2 * n_rows, progress)
        for name in _MADE_BY_MIGRATIONS:
            copy.execute(sa.delete(metadata.tables[name]))
        with built_partitions(copy):
            written = {table.name: _write_table(origin, copy, table, counter, new_identity) for table in tables}
        copied = tuple(_verify_table(copy, table, written[table.name], counter) for table in tables)
        replace_local_checksums(copy)
        if new_identity:
            replace_checksums(copy, ("database", "publication"))
        if target.dialect.name == "postgresql" and (wrong := find_stray_rows(Session(bind=copy))):
            raise DatabaseError(
                f"The store {format_url(source.url)} is damaged: {wrong[0]}. Nothing was copied. See: suffrage doctor"
            )
    if target.dialect.name == "postgresql":
        alone = target.execution_options(isolation_level="AUTOCOMMIT")  # locks one table at a time
        with explained_errors(target), alone.connect() as connection:
            connection.exec_driver_sql("ANALYZE")
    return CopyResult(tables=copied, seconds=time.perf_counter() - began)


def _count_rows(origin: sa.Connection, table: sa.Table) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(sa.text(_COPIED.get(table.name, "1 = 1")))
    return origin.scalar(query) or 0


class _RowCounter:
    """Counts finished rows."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress, self.n = total, progress, 0

    def count(self, batches: Iterable[Sequence[Row]], checksum: RowsChecksum) -> Iterator[Sequence[Row]]:
        for rows in batches:
            checksum.add(rows)
            yield rows
            self.n += len(rows)
            if self.progress:
                self.progress(self.n, self.total)


def _write_table(
    origin: sa.Connection, copy: sa.Connection, table: sa.Table, counter: _RowCounter, new_identity: bool
) -> RowsChecksum:
    """Copy the rows of a table and its last key; returns the checksum of what was written."""
    written = RowsChecksum(table)
    rows = read_rows(origin, table, _COPIED.get(table.name, "1 = 1"))
    if new_identity and table.name == "database":
        rows = _replace_identity(rows)
    with naming_table(table, copy.engine):
        fill_table(copy, table, counter.count(rows, written))
    if has_key_counter(table):
        set_last_key(copy, table, read_last_key(origin, table))
    return written


def _verify_table(copy: sa.Connection, table: sa.Table, written: RowsChecksum, counter: _RowCounter) -> CopiedTable:
    """Read back a table of the copy.

    Raises:
        DatabaseError: it differs from what was written.
    """
    read_back = RowsChecksum(table)
    for _ in counter.count(read_rows(copy, table), read_back):
        pass
    if (read_back.n_rows, read_back.value) != (written.n_rows, written.value):
        raise DatabaseError(
            f"The copy of {table.name} differs ({read_back.n_rows:,} rows of {written.n_rows:,}, checksum "
            f"{read_back.value} for {written.value}). Nothing was copied; check the store first: suffrage doctor"
        )
    return CopiedTable(name=table.name, n_rows=read_back.n_rows, checksum=read_back.value)


def _clear(copy: sa.Connection) -> None:
    """Remove all rows; tables that refer to others first."""
    if copy.dialect.name == "postgresql":
        # Other writers lock checksums last, so this must too.
        names = [name for name in metadata.tables if name != "checksum"]
        copy.exec_driver_sql(f"TRUNCATE {', '.join(names)}, {SEARCH_INDEX}, checksum CASCADE")
        return
    for table in reversed(metadata.sorted_tables):
        copy.execute(sa.delete(table))


def check_empty(copy: sa.Connection, target: sa.Engine, advice: str) -> None:
    """Check that a store has no rows.

    Raises:
        DatabaseError: it has; with the advice.
    """
    for table in metadata.sorted_tables:
        if (
            table.name not in _MADE_BY_MIGRATIONS
            and copy.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first()
        ):
            raise DatabaseError(f"{format_url(target.url)} is not empty: there are rows in {table.name}. {advice}")


def _replace_identity(batches: Iterable[Sequence[Row]]) -> Iterator[Sequence[Row]]:
    for rows in batches:
        yield [(str(uuid.uuid4()), *rest) for _, *rest in rows]


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that sees a snapshot of the store, whatever others write meanwhile.

    Of sealed runs it sees the rows in the store alone.
    """
    options: dict[str, Any] = {SEALED_IGNORED: True}
    if engine.dialect.name == "postgresql":
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with (
        explained_errors(engine),
        engine.connect().execution_options(**options) as connection,
        connection.begin(),
    ):
        yield connection


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open an exclusive transaction; its references are checked at its end."""
    try:
        with (
            explained_errors(engine),
            engine.execution_options(begin="IMMEDIATE", **{SEALED_IGNORED: True}).connect() as connection,
            connection.begin(),
        ):
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
            else:
                lock_for_writing(connection)
            yield connection
    except exc.IntegrityError as error:
        raise DatabaseError(
            f"Rows of the store refer to missing rows ({str(error.orig).splitlines()[0]}). Nothing was copied. See: "
            "suffrage doctor"
        ) from error
    except exc.DBAPIError as error:
        raise DatabaseError(explain_driver_error(error, engine)) from error


@contextmanager
def naming_table(table: sa.Table, engine: sa.Engine) -> Iterator[None]:
    """Name the table in an error of the driver."""
    try:
        yield
    except driver(engine.dialect.name).Error as error:
        message = str(error).splitlines()[0]
        raise DatabaseError(
            f"{table.name} could not be copied into {format_url(engine.url)}: {message}. Nothing was copied."
        ) from error
