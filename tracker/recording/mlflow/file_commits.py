"""Fast commits to the file of an MLflow store: MLflow commits about seven times for each run.

A new file gets a write-ahead log, as Suffrage stores have. Commits to it then need not wait for the disk: after a power
cut the last ones may be lost, and `suffrage publish` publishes what MLflow lacks. At the end, the log is written into
the file, so that a copy of the file is complete. Files that others made stay as they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from tracker.recording.mlflow.tracking_store import MlflowStore


@contextmanager
def fast_commits(store: MlflowStore) -> Iterator[None]:
    """Make commits fast on the connections that MLflow opens to the file of a store; nothing for a server."""
    if store.file is None:
        yield
        return
    path = store.file

    def prepare(raw: Any, _: object) -> None:
        if isinstance(raw, sqlite3.Connection) and _is_open(raw, path):
            has_log = raw.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
            is_empty = raw.execute("SELECT NOT EXISTS (SELECT * FROM sqlite_master)").fetchone()[0]
            if not has_log and is_empty:
                has_log = raw.execute("PRAGMA journal_mode=WAL").fetchone()[0] == "wal"
            if has_log:
                raw.execute("PRAGMA synchronous=NORMAL")

    event.listen(sa.Engine, "connect", prepare)
    try:
        yield
    finally:
        event.remove(sa.Engine, "connect", prepare)
        if Path(f"{path}-wal").exists():
            with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _is_open(raw: sqlite3.Connection, path: Path) -> bool:
    """Return whether a connection is to a file."""
    name = raw.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()[0]
    return bool(name) and Path(name).resolve() == path.resolve()  # SQLite creates a new file only when it is written
