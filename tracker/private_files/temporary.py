"""Temporary files that are removed even after a kill.

A process holds a lock on each temporary file or folder that it makes. The system releases the locks of a process that
is killed: `remove_abandoned` distinguishes its files from those in use, also by another container.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = "suffrage-work-"
"""Names of folders for temporary files begin with it."""
UNFINISHED = ".suffrage-unfinished-"
"""Names of outputs that are being written begin with it."""


def remove_temporary_folders() -> None:
    """Remove the folders of `temporary_folder` that killed processes left."""
    import tempfile

    remove_abandoned(Path(tempfile.gettempdir()), TEMPORARY)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder that only its owner can read; it is removed at the end, or by the next start after a kill."""
    import tempfile

    remove_temporary_folders()
    while True:
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))
        with locked(folder) as is_locked:
            if not is_locked:
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


@contextmanager
def unfinished_output(place: Path, *, is_folder: bool, mode: int | None = None) -> Iterator[Path]:
    """Yield an empty file or folder beside an output, under a name that nobody can foresee; it is removed at the end.

    Args:
        place: of the output.
        is_folder: whether it is a folder.
        mode: permissions; by default those of every new file.

    Raises:
        OSError: it cannot be created.
    """
    import secrets

    remove_abandoned(place.parent, UNFINISHED)
    while True:
        unfinished = place.with_name(f"{UNFINISHED}{secrets.token_hex(8)}")
        if is_folder:
            unfinished.mkdir(mode=0o777 if mode is None else mode)
        else:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            os.close(os.open(unfinished, flags, 0o666 if mode is None else mode))
        with locked(unfinished) as is_locked:
            if not is_locked:
                continue
            try:
                yield unfinished
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
                with suppress(OSError):
                    unfinished.unlink(missing_ok=True)
            return


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Lock a file or folder while the block runs; yield False if it was removed before the lock was obtained."""
    if sys.platform == "win32":
        yield True
        return
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield False
        return
    try:
        with suppress(OSError):  # some network disks have no locks
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield path.exists()
    finally:
        os.close(descriptor)


def remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove what killed processes of this user left in a folder; what cannot be removed stays."""
    if sys.platform == "win32":
        return
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(prefix)]
        for name in names:
            with suppress(OSError):
                _remove_unless_locked(folder / name)


def _remove_unless_locked(path: Path) -> None:
    """Remove a file or folder of this user that no process has locked.

    Raises:
        OSError: it is in use, or a link, or cannot be removed.
    """
    import fcntl

    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)
