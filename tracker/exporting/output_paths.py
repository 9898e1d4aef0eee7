"""Write files and folders atomically: no reader sees a part, and a failure leaves nothing behind."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tracker.connections.sqlite_connections import is_sqlite_file
from tracker.errors import OutputError, SuffrageError
from tracker.private_files.temporary import unfinished_output

ADVICE = "Use another name."
LOGS = ("-wal", "-journal", "-shm")
"""Endings of the files in which SQLite keeps changes beside a database."""


def check_output_path(
    path: Path, *, force: bool, is_folder: bool = False, is_database: bool = False, store: Path | None = None
) -> None:
    """Reject an unusable output file or folder before work begins.

    Args:
        path: of the output.
        force: whether files that exist may be replaced.
        is_folder: whether the output is a folder.
        is_database: whether the output is a SQLite file; only such an output may replace a SQLite file.
        store: the SQLite file that is read, which no output replaces.

    Raises:
        OutputError: the path exists and may not be replaced, is part of a SQLite database in use, or its parent folder
            does not exist.
    """
    try:
        exists, is_file, has_parent = path.exists(), path.is_file(), path.absolute().parent.is_dir()
        children = sorted(path.iterdir()) if path.is_dir() else None
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}. {ADVICE}") from error
    if is_folder:
        if exists and children is None:
            raise OutputError(f"{path} is a file, but the export writes several files. {ADVICE}")
        if children and not force:
            raise OutputError(f"{path} already has files. {ADVICE} To replace files of the same names, use --force.")
    else:
        if exists and not is_file:
            kind, example = ("not a regular file", "FILE") if children is None else ("a folder", path / "FILE")
            raise OutputError(f"{path} is {kind}. Name a file: {example}")
        if exists and not force:
            raise OutputError(f"{path} exists already. Choose another name, or replace it with --force.")
        _protect_databases(path, is_database=is_database, store=store)
    if not has_parent:
        raise OutputError(f"There is no folder {path.parent}. Create it: mkdir -p {shlex.quote(str(path.parent))}")


def _protect_databases(path: Path, *, is_database: bool, store: Path | None) -> None:
    """Reject a file that belongs to a SQLite database which would be lost or damaged.

    Raises:
        OutputError: the path is the store, another SQLite file, a log of one, or has a log that SQLite would apply to
            whatever is written there.
    """
    place = Path(os.path.realpath(path))
    for ending in LOGS:
        base = place.with_name(place.name.removesuffix(ending))
        if base != place and base.exists():
            raise OutputError(f"{path} is the name of a file that SQLite keeps beside {base.name}. {ADVICE}")
    is_kept = place.exists() and is_sqlite_file(place)
    if is_kept and store is not None and os.path.samefile(place, store):
        raise OutputError(f"{path} is the store itself. {ADVICE}")
    if is_kept and not is_database:
        raise OutputError(f"{path} is a SQLite database, perhaps a store, and is not replaced. {ADVICE}")
    logs = [place.with_name(place.name + ending) for ending in LOGS[:2]]
    if is_database and (open_logs := [log.name for log in logs if log.exists() and log.stat().st_size]):
        raise OutputError(
            f"{path} is in use, or a program was killed that used it: {open_logs[0]} holds changes that SQLite would "
            f"apply to the new file. {ADVICE}"
        )


def write_file(path: Path, content: bytes, *, force: bool, is_private: bool = False) -> None:
    """Write a file.

    Args:
        path: of the file.
        content: of the file.
        force: whether a file that exists may be replaced.
        is_private: whether only its owner can read it; else the umask decides.

    Raises:
        OutputError: the file exists and may not be replaced, or it cannot be written.
    """
    with open_atomically(path, force=force, is_private=is_private) as file:
        file.write(content)


@contextmanager
def open_atomically(path: Path, *, force: bool, is_private: bool = False) -> Iterator[BinaryIO]:
    """Yield a temporary file that is moved to its place at the end.

    Args:
        path, force, is_private: as for `write_file`.

    Raises:
        OutputError: the file exists and may not be replaced, or it cannot be written.
    """
    with unfinished_file(path, force=force, is_private=is_private) as unfinished, unfinished.open("wb") as file:
        yield file


@contextmanager
def unfinished_file(
    path: Path, *, force: bool, is_private: bool = False, is_database: bool = False, store: Path | None = None
) -> Iterator[Path]:
    """Yield the path of an empty temporary file that is moved to its place at the end.

    Args:
        path, force, is_private: as for `write_file`.
        is_database, store: as for `check_output_path`.

    Raises:
        OutputError: the file exists and may not be replaced, or it cannot be written.
    """
    check_output_path(path, force=force, is_database=is_database, store=store)
    with _moved_at_end(path, is_folder=False, mode=0o600 if is_private else None) as unfinished:
        yield unfinished


@contextmanager
def write_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder whose files are moved to their place at the end.

    Raises:
        OutputError: a file exists and may not be replaced, or the folder cannot be written.
    """
    check_output_path(path, force=force, is_folder=True)
    with _moved_at_end(path, is_folder=True) as unfinished:
        yield unfinished


@contextmanager
def _moved_at_end(path: Path, *, is_folder: bool, mode: int | None = None) -> Iterator[Path]:
    """Yield the path of a temporary file or folder beside the output, which is moved to its place or removed."""
    place = Path(os.path.realpath(path))
    try:
        with unfinished_output(place, is_folder=is_folder, mode=mode) as unfinished:
            yield unfinished
            _move(unfinished, place)
    except OSError as error:
        if isinstance(error, SuffrageError):
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror}. {ADVICE}") from error


def _move(unfinished: Path, place: Path) -> None:
    """Move a file or folder to its place; in a folder that exists, other files stay."""
    if not (unfinished.is_dir() and place.exists()):
        unfinished.replace(place)
        return
    for file in sorted(unfinished.rglob("*")):
        if file.is_file():
            to = place / file.relative_to(unfinished)
            to.parent.mkdir(parents=True, exist_ok=True)
            file.replace(to)
