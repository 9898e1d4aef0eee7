"""The checksums of a store, in the table ``checksum``: read, changed and computed anew.

A checksum is the sum of the hashes of the rows of a scope, so that it does not depend on their order, and changes are
added without reading the other rows. A scope without rows has no checksum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import sqlalchemy as sa
import xxhash
from numpy.typing import NDArray

from tracker.integrity.definitions import read_definitions
from tracker.integrity.row_hashes import Row, Words, concatenate, hash_rows, read_plain_rows
from tracker.integrity.scopes import covered_tables, dependent_tables
from tracker.integrity.sealed_rows import list_moved
from tracker.schema import metadata

CHECKSUM = metadata.tables["checksum"]
LAYOUT, COUNTERS = "sqlite_master", "sqlite_sequence"
LOCAL_SCOPES = (LAYOUT, COUNTERS)
"""Scopes of one database: the definitions of tables, indexes, triggers, functions and views; the last issued keys."""

KEYS_PER_STATEMENT = 500
MIN_COPIED = 200
"""Checksums from which PostgreSQL's COPY is tried first."""

Sums = tuple[NDArray[np.int64], Words]
"""``(n,)`` ascending keys, and the ``(n, 2)`` checksums of their scopes."""


class ScopeChanges:
    """The sum of all changes of a transaction, by scope."""

    def __init__(self) -> None:
        self._sums: dict[str, list[Sums]] = defaultdict(list)
        self._removed: dict[str, set[int]] = defaultdict(set)
        self._added: dict[str, set[int]] = defaultdict(set)

    def __bool__(self) -> bool:
        return bool(self._sums)

    def add_rows(self, table: sa.Table, rows: Sequence[Row], *, removed: bool) -> None:
        """Add rows that the transaction added or removed, in the plain form."""
        if not rows:
            return
        keys, words = hash_rows(table, rows)
        parts = self._sums[table.name]
        parts.append(concatenate([(keys, np.uint64(0) - words if removed else words)]))
        if len(parts) > 20:
            self._sums[table.name] = [concatenate(parts)]
        if table.name in dependent_tables(table.name):
            (self._removed if removed else self._added)[table.name].update(keys.tolist())

    def write(self, connection: sa.Connection) -> None:
        """Add the changes to the stored checksums, and remove those of scopes whose parent row is gone."""
        gone = {
            child: ended
            for parent, removed in self._removed.items()
            if (ended := removed - self._added[parent])
            for child in dependent_tables(parent)
        }
        for table in sorted({*self._sums, *gone}):
            if table in gone:
                _delete(connection, table, sorted(gone[table]))
            keys, words = concatenate(self._sums.get(table, ()))
            if table in gone:
                remain = ~np.isin(keys, np.fromiter(gone[table], dtype=np.int64))
                keys, words = keys[remain], words[remain]
            add_to_checksums(connection, table, (keys, words))
        if connection.dialect.name == "sqlite" and any(self._added[name] for name in ("run", "finding")):
            _replace(connection, COUNTERS, compute_local_checksums(connection)[COUNTERS])


def read_checksums(connection: sa.Connection, table: str) -> Sums:
    """Return the stored checksums of a table's scopes."""
    cursor = _cursor(connection)
    cursor.execute(f"SELECT key, high, low FROM checksum WHERE table_name = {_mark(connection)}", (table,))
    return as_sums(cursor.fetchall())


def compute_checksums(connection: sa.Connection, table: sa.Table, keys: Sequence[int] | None = None) -> Sums:
    """Return the checksums of a table's rows as they are now; ``keys`` limits them to some scopes."""
    sums: list[Sums] = []
    for rows in read_plain_rows(connection, table, keys):
        sums.append(concatenate([hash_rows(table, rows)]))
        if len(sums) > 100:
            sums = [concatenate(sums)]
    return concatenate(sums)


def compute_local_checksums(connection: sa.Connection) -> dict[str, Sums]:
    """Return the checksums of what belongs to one database: definitions, and on SQLite the counters of keys.

    The key of the definitions is 0 on SQLite. On PostgreSQL it is the major version of the server, since others may
    write the same definition in another way.
    """
    is_sqlite = connection.dialect.name == "sqlite"
    parts = {LAYOUT: read_definitions(connection)}
    if is_sqlite:
        names = ", ".join(f"'{name}'" for name in metadata.tables)
        parts[COUNTERS] = (
            _cursor(connection)
            .execute(f"SELECT name, seq FROM main.sqlite_sequence WHERE name IN ({names})")
            .fetchall()
        )
    version: Any = connection.dialect.server_version_info
    key = np.array([0 if is_sqlite else version[0]], dtype=np.int64)
    return {scope: (key, hash_local_rows(rows).reshape(1, 2)) for scope, rows in parts.items()}


def hash_local_rows(rows: Iterable[Sequence[Any]]) -> NDArray[np.uint64]:
    """Return the ``(2,)`` checksum of definitions or counters."""
    texts = sorted(repr(tuple(row)) for row in rows)
    digest = xxhash.xxh3_128_digest("\n".join(texts).encode("utf-8", "surrogatepass"))
    return np.frombuffer(digest, dtype="<u8")


def replace_checksums(connection: sa.Connection, tables: Iterable[str] | None = None) -> None:
    """Compute and store all checksums of some tables anew; None means all tables, definitions and counters.

    Those of answers that are in sealed files only stay as they are.
    """
    sealed = _read_sealed(connection)
    if tables is None:
        connection.execute(sa.delete(CHECKSUM))
        tables = [table.name for table in covered_tables()]
        for scope, sums in compute_local_checksums(connection).items():
            _replace(connection, scope, sums)
    for name in tables:
        present = compute_checksums(connection, metadata.tables[name])
        _replace(connection, name, concatenate([present, sealed]) if name == "answer" else present)


def _read_sealed(connection: sa.Connection) -> Sums:
    """Return the checksums of answers that are in sealed files only."""
    moved = list_moved(connection)
    keys, words = read_checksums(connection, "answer") if moved else as_sums([])
    chosen = np.isin(keys, list(moved))
    return keys[chosen], words[chosen]


def replace_local_checksums(connection: sa.Connection) -> None:
    """Store the checksums of definitions and counters anew."""
    connection.execute(sa.delete(CHECKSUM).where(CHECKSUM.c.table_name.in_(LOCAL_SCOPES)))
    for scope, sums in compute_local_checksums(connection).items():
        _replace(connection, scope, sums)


def add_to_checksums(connection: sa.Connection, table: str, changes: Sums) -> None:
    """Add changes to stored checksums; those that become zero are removed."""
    keys, words = changes
    changed = words.any(axis=1)
    keys, words = keys[changed], words[changed]
    if len(keys) and connection.dialect.name == "postgresql":
        if len(keys) >= MIN_COPIED and _copy_new(connection, table, (keys, words)):
            return
        # Another transaction may be adding to the same checksum: what is inserted here is new to all of them.
        inserted = _insert(connection, table, (keys, words), "ON CONFLICT DO NOTHING RETURNING key")
        is_stored = ~np.isin(keys, inserted)
        keys, words = keys[is_stored], words[is_stored]
    if not len(keys):
        return
    stored_keys, stored_words = _read_some(connection, table, keys)
    total = words.copy()
    total[np.searchsorted(keys, stored_keys)] += stored_words
    remain = total.any(axis=1)
    _delete(connection, table, keys[~remain].tolist())
    update = "ON CONFLICT (table_name, key) DO UPDATE SET high = excluded.high, low = excluded.low"
    _insert(connection, table, (keys[remain], total[remain]), update)


def as_sums(rows: Any) -> Sums:
    """Return checksums from rows of keys and pairs of signed words."""
    array = np.array([tuple(row) for row in rows] if isinstance(rows, list) else rows, dtype=np.int64).reshape(-1, 3)
    array = array[np.argsort(array[:, 0], kind="stable")]
    return array[:, 0].copy(), array[:, 1:].copy().view(np.uint64)


def iterate_words(sums: Sums) -> Iterator[tuple[int, str]]:
    """Yield keys with checksums of 32 hexadecimal digits."""
    for key, (high, low) in zip(sums[0].tolist(), sums[1].tolist(), strict=True):
        yield key, f"{high:016x}{low:016x}"


def _replace(connection: sa.Connection, table: str, sums: Sums) -> None:
    connection.execute(sa.delete(CHECKSUM).where(CHECKSUM.c.table_name == table))
    _insert(connection, table, sums, "")


def _read_some(connection: sa.Connection, table: str, keys: NDArray[np.int64]) -> Sums:
    """Read the stored checksums of some scopes, ascending; on PostgreSQL others cannot change them until the end."""
    cursor, query = _cursor(connection), "SELECT key, high, low FROM checksum WHERE table_name = "
    if connection.dialect.name == "postgresql":
        cursor.execute(f"{query}%s AND key = ANY(%s) ORDER BY key FOR UPDATE", (table, keys.tolist()))
        return as_sums(cursor.fetchall())
    cursor.execute("SELECT max(key) FROM checksum WHERE table_name = ?", (table,))
    (last,) = cursor.fetchone()
    rows = []
    for part in _parts(keys[keys <= last].tolist() if last is not None else []):
        cursor.execute(f"{query}? AND key IN ({part}) ORDER BY key", (table,))
        rows.extend(cursor.fetchall())
    return as_sums(rows)


def _insert(connection: sa.Connection, table: str, sums: Sums, on_conflict: str) -> Sequence[int]:
    """Insert checksums; return the keys that PostgreSQL returns."""
    columns = [sums[0].tolist(), *sums[1].view(np.int64).T.tolist()]
    cursor, into = _cursor(connection), "INSERT INTO checksum (table_name, key, high, low)"
    if connection.dialect.name == "postgresql":
        values = "SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])"
        cursor.execute(f"{into} {values} {on_conflict}", (table, *columns))
        return [key for (key,) in cursor.fetchall()] if "RETURNING" in on_conflict else []
    rows = [*zip(repeat(str(table)), *columns)]  # a name of SQLAlchemy's is a subclass, which SQLite converts slowly
    for first in range(0, len(rows), KEYS_PER_STATEMENT):
        part = rows[first : first + KEYS_PER_STATEMENT]
        marks = ", ".join(["(?, ?, ?, ?)"] * len(part))
        cursor.execute(f"{into} VALUES {marks} {on_conflict}", tuple(chain.from_iterable(part)))
    return []


def _copy_new(connection: sa.Connection, table: str, sums: Sums) -> bool:
    """Insert checksums into PostgreSQL by COPY; return False, with none of them inserted, if one of them exists."""
    from psycopg.errors import UniqueViolation

    cursor = _cursor(connection)
    cursor.execute("SAVEPOINT new_checksums")
    try:
        with cursor.copy("COPY checksum (table_name, key, high, low) FROM STDIN") as copy:
            for row in zip(repeat(table), sums[0].tolist(), *sums[1].view(np.int64).T.tolist()):
                copy.write_row(row)
    except UniqueViolation:
        cursor.execute("ROLLBACK TO SAVEPOINT new_checksums")
        return False
    cursor.execute("RELEASE SAVEPOINT new_checksums")
    return True


def _delete(connection: sa.Connection, table: str, keys: Sequence[int]) -> None:
    cursor, mark = _cursor(connection), _mark(connection)
    for part in _parts(keys):
        cursor.execute(f"DELETE FROM checksum WHERE table_name = {mark} AND key IN ({part})", (table,))


def _parts(keys: Sequence[int]) -> Iterator[str]:
    """Yield lists of keys that one statement can hold."""
    for first in range(0, len(keys), KEYS_PER_STATEMENT):
        yield ", ".join(map(str, keys[first : first + KEYS_PER_STATEMENT]))


def _cursor(connection: sa.Connection) -> Any:
    return connection.connection.cursor()


def _mark(connection: sa.Connection) -> str:
    return "?" if connection.dialect.name == "sqlite" else "%s"
