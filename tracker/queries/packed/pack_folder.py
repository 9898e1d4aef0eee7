"""Where the packed scores of a store are."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
import xxhash

from tracker.connections.store_url import PACK_SUFFIX
from tracker.private_files.permissions import permissions_beside

VARIABLE = "SUFFRAGE_PACKED"
"""``off``, or a folder for the packed scores of all stores."""
OFF = ("off", "0", "no", "false")


@dataclass(frozen=True, kw_only=True)
class PackFolder:
    """A folder for packed scores, which may not exist yet.

    Attributes:
        path: the folder.
        file_mode: permissions of its files: those of the SQLite file, else of the owner alone.
        owner: user, besides this one, whose files are trusted: the owner of the SQLite file; None without one.
    """

    path: Path
    file_mode: int
    owner: int | None

    @property
    def folder_mode(self) -> int:
        """Permissions of folders: those who read a file list its folder."""
        return self.file_mode | (self.file_mode & 0o444) >> 2

    def is_trusted(self) -> bool:
        """Return whether the folder exists and belongs to this user, or to the owner of the store."""
        try:
            status = self.path.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode) and (
            not hasattr(os, "geteuid") or status.st_uid in (os.geteuid(), self.owner)
        )

    def create(self) -> None:
        """Create the folder, with those above it.

        Raises:
            OSError: it cannot be created.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self.path.mkdir(mode=0o700)
            self.path.chmod(self.folder_mode)


def find_pack_folder(engine: sa.Engine) -> PackFolder | None:
    """Return the folder of a store; None if packed scores are switched off, or there is no place for them.

    It is beside a SQLite file, as ``results.db.packed``. Packed scores of a server are in the user's cache.

    Args:
        engine: the store.
    """
    chosen = os.environ.get(VARIABLE, "").strip()
    if chosen.lower() in OFF:
        return None
    url = engine.url
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            return None
        store = Path(url.database).resolve()
        path = Path(f"{store}{PACK_SUFFIX}") if not chosen else _subfolder(chosen, str(store))
        mode, owner = permissions_beside(store) | 0o600, find_owner(store)
    else:
        address = f"{url.host}:{url.port}/{url.database}?{sorted(url.query.items())}"
        path, mode, owner = _subfolder(chosen or find_user_cache(), address), 0o600, None
    return None if path is None else PackFolder(path=path, file_mode=mode, owner=owner)


def find_owner(path: Path) -> int | None:
    """Return the user to whom a file belongs; None if it does not exist."""
    try:
        return path.stat().st_uid
    except OSError:
        return None


def _subfolder(folder: str, address: str) -> Path | None:
    try:
        return Path(folder).expanduser() / xxhash.xxh3_64_hexdigest(address.encode())
    except RuntimeError:  # a user without a home
        return None


def find_user_cache() -> str:
    """Return the folder for files of this user that can be built again."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not folder and sys.platform == "darwin":
        folder = "~/Library/Caches"
    return str(Path(folder or "~/.cache") / "suffrage" / "packed")
