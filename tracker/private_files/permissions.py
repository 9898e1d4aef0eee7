"""Permissions of stores and of the files beside them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def create_private_file(path: Path) -> None:
    """Create an empty file that only its owner can read and write; do nothing if it exists, or cannot be created.

    SQLite gives the files beside a store, such as its write-ahead log, the same permissions.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def permissions_beside(path: Path) -> int:
    """Return the permissions of a file that belongs to another one, such as its lock: those who read it share them."""
    try:
        return stat.S_IMODE(path.stat().st_mode) & 0o666
    except OSError:
        return 0o600
