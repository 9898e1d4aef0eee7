"""Stores in SQLite files: backups and archives, opened for reading only."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.connections.schema_versions import current_version, known_versions, upgrade
from tracker.database import create_file_reader, create_unchecked_engine
from tracker.errors import BadInputError, DatabaseError, first_line
from tracker.private_files.temporary import temporary_folder

AGAIN = "Copy or download it again, or use another file."
NEWER = "A newer version of Suffrage wrote it. Upgrade in the folder of its sources: git pull && pip install ."
UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError, exc.SQLAlchemyError, sqlite3.Error)
"""Errors of drivers and converters for values that no store writes."""


@contextmanager
def open_store_file(path: Path) -> Iterator[sa.Engine]:
    """Yield an engine that reads the store in a SQLite file; one of an earlier version is upgraded in a temporary copy.

    Raises:
        BadInputError: the file is not a store, is damaged, or was written by a newer version.
    """
    if not path.is_file():
        raise BadInputError(path, "there is no such file.")
    with temporary_folder() as folder:
        engine = create_file_reader(path)
        try:
            if _read_version(path, engine) != known_versions()[-1]:
                engine.dispose()
                engine = _upgraded_copy(path, folder / "copy.db")
            yield engine
        finally:
            engine.dispose()


def _read_version(path: Path, engine: sa.Engine) -> str:
    try:
        version = current_version(engine)
    except DatabaseError as error:
        raise BadInputError(path, f"is damaged ({first_line(error)}).", advice=AGAIN) from error
    if version is None:
        raise BadInputError(path, "is a SQLite database, but not a store of Suffrage.")
    if version not in known_versions():
        raise BadInputError(path, f"is at version {version}; this program reads {known_versions()[-1]}.", advice=NEWER)
    return version


def _upgraded_copy(path: Path, copy: Path) -> sa.Engine:
    try:
        shutil.copyfile(path, copy)
        if Path(f"{path}-wal").exists():
            shutil.copyfile(f"{path}-wal", f"{copy}-wal")
        engine = create_unchecked_engine(f"sqlite:///{copy}")
        upgrade(engine)
        engine.dispose()
    except (*UNREADABLE, DatabaseError) as error:
        raise BadInputError(path, f"cannot be upgraded ({first_line(error)}).", advice=AGAIN) from error
    return create_file_reader(copy)
