"""The version of a store: a value that changes with every change of its tables."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.connections.schema_versions import VERSION_TABLE
from tracker.queries.sql import tables

MAX_TABLE_BYTES = 250_000_000
"""Size of a PostgreSQL store up to which the writers of its rows are counted."""
COUNTERS = {"sqlite": "PRAGMA data_version", "postgresql": "SELECT pg_current_snapshot()::text"}
"""A value that changes with every transaction. PostgreSQL's whole snapshot: its end ignores older transactions."""
TABLE_NAMES = (
    *(table.name for table in vars(tables).values() if isinstance(table, sa.TableClause)),
    "prompt_search",
    VERSION_TABLE,
)
"""Tables of a PostgreSQL store. MLflow's may be beside them."""


class VersionReader:
    """Reads the version of a store through a separate connection.

    PostgreSQL's snapshot also changes when its server gathers statistics, and with every transaction in another
    database. So a new snapshot is compared by the transactions that wrote the present rows: their number and a sum of
    hashes for each table. A large store changes with every snapshot, since reading all its rows takes longer than it
    spares.

    Args:
        engine: the store.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._connection: sa.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._n_connections = 0
        self._counter: Hashable = None
        self._version: Hashable = None

    def read(self) -> Hashable:
        """Return the file that the store is, the number of the connection, and what changes with the tables.

        Raises:
            OSError: the file of the store cannot be read.
        """
        is_sqlite = self.engine.dialect.name == "sqlite"
        if is_sqlite and (file := self._find_file()) != self._file:
            self.disconnect()
            self._file = file
        if self._connection is None:
            self._connection = self.engine.connect()
            self._n_connections += 1
            self._counter = None
        counter = self._connection.exec_driver_sql(COUNTERS[self.engine.dialect.name]).scalar_one()
        if counter != self._counter:
            self._counter, self._version = (counter, counter) if is_sqlite else self._count_writers(counter)
        self._connection.rollback()
        return self._file, self._n_connections, self._version

    def _count_writers(self, snapshot: Hashable) -> tuple[Hashable, Hashable]:
        """Return a snapshot, the given one or a later one, and what its tables are compared by."""
        assert self._connection is not None
        self._connection.rollback()
        try:
            snapshot, writers = self._connection.exec_driver_sql(_write_statement()).one()  # both of one state
        except exc.ProgrammingError:  # a table is missing, or may not be read
            return snapshot, snapshot
        return snapshot, snapshot if writers is None else tuple(writers)

    def _find_file(self) -> tuple[int, int]:
        """Return what identifies the file of a SQLite store."""
        file = Path(str(self.engine.url.database)).stat()
        return file.st_dev, file.st_ino

    def disconnect(self) -> None:
        """Close the connections, which may lead to a file that is no longer there."""
        if self._connection is not None:
            self._connection.invalidate()
        self.close()
        self._file = None

    def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.engine.dispose()


def _write_statement() -> str:
    """Return the statement of a snapshot of PostgreSQL and of the writers of its rows; NULL for a large store.

    A row is never overwritten: its next version is another row, with the transaction that wrote it in ``xmin``. Only
    ``age`` turns this column into a number at once; the age of the first transaction makes it independent of the time.
    """
    sizes = " + ".join(f"pg_relation_size('{name}')" for name in TABLE_NAMES)
    writers = " UNION ALL ".join(
        f"SELECT concat(count(*), ' ', sum(hashint8((SELECT first FROM ages) - age(xmin)))) FROM {name}"
        for name in TABLE_NAMES
    )
    return (
        "WITH ages AS MATERIALIZED (SELECT age('3'::xid)::bigint AS first) SELECT pg_current_snapshot()::text, "
        f"CASE WHEN {sizes} <= {MAX_TABLE_BYTES} THEN ARRAY({writers}) END"
    )
