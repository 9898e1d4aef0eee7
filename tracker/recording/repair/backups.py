"""Rows of backups and archives, which keep the keys of the store that they were copied from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from tracker.connections.sqlite_connections import is_sqlite_file
from tracker.copying.store_files import UNREADABLE, open_store_file
from tracker.errors import BadInputError, first_line
from tracker.integrity.row_hashes import Row
from tracker.integrity.verification import snapshot
from tracker.recording.repair.damage import Damage, read_scope


class BackupRows:
    """The rows of a backup or archive."""

    def __init__(self, path: Path, connection: sa.Connection) -> None:
        self.label = str(path)
        self.connection = connection

    def find(self, damage: Damage) -> Iterator[list[Row]]:
        """Yield the rows of the same scope.

        Raises:
            BadInputError: they cannot be read.
        """
        try:
            rows = read_scope(self.connection, damage.table, damage.key)
        except UNREADABLE as error:
            raise BadInputError(Path(self.label), f"cannot be read ({first_line(error)}).") from error
        if rows:
            yield rows


def is_store_file(path: Path) -> bool:
    """Return whether a file is a SQLite file; others are files of results.

    Raises:
        BadInputError: it cannot be read.
    """
    try:
        return is_sqlite_file(path)
    except OSError as error:
        raise BadInputError(path, f"cannot be read ({error.strerror or error}).") from error


@contextmanager
def open_backup(path: Path) -> Iterator[BackupRows]:
    """Open a backup or archive for reading; one of an earlier version is upgraded in a temporary copy.

    Raises:
        BadInputError: it is not a store.
    """
    with open_store_file(path) as engine, snapshot(engine) as connection:
        yield BackupRows(path, connection)
