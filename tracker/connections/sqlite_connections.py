"""The SQLite connections that this process has open, per file.

POSIX drops every lock of a process on a file as soon as the process closes any descriptor of that file. SQLite avoids
this among its own connections, but ADBC has a second copy of SQLite. If that copy closes a file that the first one
uses, another process may believe itself alone, delete the write-ahead log, and what is written afterwards is lost
(https://www.sqlite.org/howtocorrupt.html, section 2.2.1). `keep_open` therefore delays the closing.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracker.private_files.permissions import create_private_file

BUSY_SECONDS = 60
"""How long a connection waits for another program that writes."""

POLL_SECONDS = (0.002, 0.01)
"""How long it sleeps between two attempts to write, at least and at most."""

SIGNATURE = b"SQLite format 3\0"
"""How every SQLite file begins that is not empty."""

_lock = threading.RLock()
_open: dict[Path, set[int]] = {}
_kept: dict[Path, Callable[[], None]] = {}


class TrackedConnection(sqlite3.Connection):
    """A connection that is counted while it is open. A file that it creates is readable by its owner alone.

    Args:
        database: path or URI, as for `sqlite3.Connection`.
        path: absolute path of the file, under which the connection is counted.
    """

    def __init__(self, database: str, *arguments: Any, path: Path, **options: Any) -> None:
        create_private_file(path)
        super().__init__(database, *arguments, **options)
        with _lock:
            _open.setdefault(path, set()).add(id(self))
        self._forget = weakref.finalize(self, _forget, path, id(self))

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._forget()


def is_sqlite_file(path: Path) -> bool:
    """Return whether a file is a SQLite database.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


def begin_writing(connection: sqlite3.Connection) -> None:
    """Begin a transaction that writes, as soon as no other program does.

    All programs that wait have the same chance. SQLite itself tries the less often the longer it has waited, so that
    one of many writers may never get its turn.

    Raises:
        sqlite3.OperationalError: others have been writing for `BUSY_SECONDS`, or the file cannot be written.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(*POLL_SECONDS))
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS}")


def keep_open(path: Path, close: Callable[[], None]) -> None:
    """Close a connection of another copy of SQLite, at once or when this process no longer uses the file.

    Args:
        path: absolute path of the file.
        close: closes the connection, which is idle.
    """
    with _lock:
        if not _open.get(path) or path in _kept:  # a connection that is kept protects the file
            close()
        else:
            _kept[path] = close


def _forget(path: Path, key: int) -> None:
    """Forget a closed connection; with the last one of a file, close what was kept open."""
    with _lock:
        connections = _open.get(path, set())
        connections.discard(key)
        if not connections:
            _open.pop(path, None)
            if close := _kept.pop(path, None):
                close()
