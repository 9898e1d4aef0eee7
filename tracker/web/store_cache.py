"""Values computed from the store, kept until anything in the store changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tracker.connections.driver_errors import explain_driver_error
from tracker.connections.schema_versions import VERSION_TABLE
from tracker.database import create_reading_engine, ensure_current, transaction
from tracker.errors import DatabaseError
from tracker.queries.sql.kept_reads import keep_reads
from tracker.web.memory import measure_size
from tracker.web.store_version import VersionReader

T = TypeVar("T")

MAX_BYTES = 80_000_000
"""Maximum size of all values kept; the one unused for longest is dropped first."""
MAX_SNAPSHOTS = 12
"""Maximum number of snapshots at once, each with a connection to the store; the rest wait."""
MAX_ATTEMPTS = 20
"""How often a snapshot is opened anew because the store changed at that moment."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One state of the store, which other programs do not change.

    Attributes:
        session: reads this state.
        version: of this state.
        thread: the thread that may use the session.
    """

    session: Session
    version: Any
    thread: int


class StoreCache:
    """Values computed from a store that this process does not change.

    Args:
        engine: the store.

    Attributes:
        engine: another engine on it, whose connections cannot write.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = create_reading_engine(engine)
        self._lock = threading.Lock()
        self._snapshots = threading.Semaphore(MAX_SNAPSHOTS)
        self._reader = VersionReader(self.engine)
        self._version: Any = None
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._key_locks: dict[Hashable, threading.Lock] = {}

    @contextmanager
    def open_snapshot(self) -> Iterator[Snapshot]:
        """Open a session that sees one state of the store, whatever other programs write meanwhile.

        Raises:
            DatabaseError: as for `refresh`.
        """
        is_sqlite = self.engine.dialect.name == "sqlite"
        engine = self.engine if is_sqlite else self.engine.execution_options(isolation_level="REPEATABLE READ")
        for is_last in (*(False,) * MAX_ATTEMPTS, True):
            version = object() if is_last else self.refresh()  # values of an unknown state are not kept
            kept = keep_reads(engine, self.at(version))
            with self._snapshots, transaction(kept, write=False) as session:
                session.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}"))  # the first read fixes the state
                if is_last or self.refresh() == version:
                    yield Snapshot(session=session, version=version, thread=threading.get_ident())
                    return

    def get(self, key: Hashable, compute: Callable[[], T], version: Any = None) -> T:
        """Return the value of a key, computed once for each state of the store; other threads wait for it.

        The state is read before the value is computed: a value is never older than the state it is kept for.

        Args:
            key: name of the value.
            compute: computes it.
            version: of the state that ``compute`` reads; by default the present one.
        """
        version = version or self.refresh()
        with self._lock:
            key_lock = self._key_locks.setdefault(key, threading.Lock())
        with key_lock:
            with self._lock:
                if key in self._values and self._version == version:
                    self._values.move_to_end(key)
                    return self._values[key]  # type: ignore[no-any-return]
            value = compute()
            size = measure_size(value)
            self.refresh()
            with self._lock:
                if self._version == version:
                    self._values[key], self._sizes[key] = value, size
                    while sum(self._sizes.values()) > MAX_BYTES and len(self._values) > 1:
                        dropped, _ = self._values.popitem(last=False)
                        del self._sizes[dropped]
                        self._key_locks.pop(dropped, None)
            return value

    def refresh(self) -> Any:
        """Drop all values if the store has changed; return its version.

        Raises:
            DatabaseError: the store was removed, cannot be reached, or has another version than this program.
        """
        with self._lock:
            version = self._read_version()
            if version != self._version:
                self._values.clear()
                self._sizes.clear()
                self._key_locks.clear()
                self._version = None
                ensure_current(self.engine, create=False)
                self._version = version
            return version

    def _read_version(self) -> Any:
        try:
            return self._reader.read()
        except exc.DBAPIError:  # the server was restarted, say
            self._reader.disconnect()
        except OSError:
            self._reader.disconnect()
            self._version = None
            ensure_current(self.engine, create=False)  # explains why the file cannot be read
        try:
            return self._reader.read()
        except exc.DBAPIError as error:
            self._reader.disconnect()
            raise DatabaseError(explain_driver_error(error, self.engine)) from error

    def at(self, version: Any) -> SnapshotCache:
        """Return the values of one state."""
        return SnapshotCache(self, version)

    def peek(self, key: Hashable) -> Any:
        """Return the value of a key if it is present; else None."""
        self.refresh()
        with self._lock:
            return self._values.get(key)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._reader.close()


class SnapshotCache:
    """The values of one state of the store.

    Args:
        cache: keeps the values.
        version: of the state.
    """

    def __init__(self, cache: StoreCache, version: Any) -> None:
        self.cache, self.version = cache, version

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of a key, computed once for this state; other threads wait for it."""
        return self.cache.get(key, compute, self.version)
