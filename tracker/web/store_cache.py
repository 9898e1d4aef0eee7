"""Values computed from the store, kept until anything in the store changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import sqlalchemy as sa

T = TypeVar("T")

MAX_VALUES = 64
"""Maximum number of values kept; the one unused for longest is dropped first."""
VERSION_QUERIES = {
    "sqlite": "PRAGMA data_version",
    "postgresql": "SELECT pg_snapshot_xmax(pg_current_snapshot())::text",
}
"""A value that changes with every change of the store. PostgreSQL's also changes with other databases of its server."""


class StoreCache:
    """Values computed from a store that this process does not change.

    Args:
        engine: the store.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._lock = threading.Lock()
        self._connection: sa.Connection | None = None
        self._version: Any = None
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._key_locks: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of a key, computed once for each state of the store; other threads wait for it.

        The state is read before the value is computed: a value is never older than the state it is kept for.
        """
        version = self.refresh()
        with self._lock:
            key_lock = self._key_locks.setdefault(key, threading.Lock())
        with key_lock:
            with self._lock:
                if key in self._values and self._version == version:
                    self._values.move_to_end(key)
                    return self._values[key]  # type: ignore[no-any-return]
            value = compute()
            with self._lock:
                if self._version == version:
                    self._values[key] = value
                    while len(self._values) > MAX_VALUES:
                        dropped, _ = self._values.popitem(last=False)
                        self._key_locks.pop(dropped, None)
            return value

    def refresh(self) -> Any:
        """Drop all values if the store has changed; return its version."""
        with self._lock:
            if self._connection is None:
                self._connection = self.engine.connect()
            version = self._connection.exec_driver_sql(VERSION_QUERIES[self.engine.dialect.name]).scalar_one()
            self._connection.rollback()
            if version != self._version:
                self._values.clear()
                self._key_locks.clear()
                self._version = version
            return version

    def peek(self, key: Hashable) -> Any:
        """Return the value of a key if it is present; else None."""
        self.refresh()
        with self._lock:
            return self._values.get(key)

    def close(self) -> None:
        """Close the connection that observes the store."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
