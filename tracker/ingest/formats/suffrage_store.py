"""SQLite store (`suffrage export archive`, or any store in a file), which is merged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tracker.connections.schema_versions import VERSION_TABLE
from tracker.connections.sqlite_connections import is_sqlite_file
from tracker.database import make_read_only_uri
from tracker.ingest.measurement import ReadOptions, StoreFile

SPECIFICITY = 90
RECOGNIZED_BY = "a SQLite file with a table suffrage_version"
SUPPORTS_SPLITS = True


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a store."""
    try:
        if not is_sqlite_file(path):
            return "it is not a SQLite file"
        with closing(sqlite3.connect(make_read_only_uri(path.resolve()), uri=True)) as connection:
            query = "SELECT 1 FROM sqlite_master WHERE name = ?"
            known = connection.execute(query, (VERSION_TABLE,)).fetchone()
    except OSError as error:
        return f"cannot be opened: {error.strerror or error}"
    except UnicodeDecodeError:  # SQLite quotes the damaged name
        return "the SQLite file cannot be read: a name in it is no text"
    except sqlite3.Error as error:
        return f"the SQLite file cannot be read: {error}"
    return None if known else "it is a SQLite file of another program"


def read(path: Path, options: ReadOptions) -> Iterator[StoreFile | str]:
    """Yield the store, whose rows are read while they are merged."""
    option_names = ("model", "metric", "condition", "splits")
    if ignored := [f"--{name.removesuffix('s')}" for name in option_names if getattr(options, name)]:
        yield f"a store defines these itself; ignored: {', '.join(ignored)}"
    yield StoreFile(path)
