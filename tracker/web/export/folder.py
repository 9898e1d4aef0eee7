"""The folder of an export: written beside its place, and put there at once.

A folder that an export wrote is replaced; any other that is not empty is left as it is.
"""

from __future__ import annotations

import ctypes
import glob
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson

from tracker.errors import OutputError

MARKER = "suffrage-export.json"
"""The file that marks a folder as an export; it lists the files and folders beside it."""
ADVICE = "Choose another folder for --export."
MOVED = "-replaced"
EXCHANGE, AT_WORKING_FOLDER = 2, -100
"""``RENAME_EXCHANGE`` and ``AT_FDCWD`` of Linux."""


def check_folder(path: Path) -> None:
    """Reject a folder that an export may not write, before work begins.

    Raises:
        OutputError: it is a file, has files that no export wrote, or has no parent folder.
    """
    try:
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path} is a file. {ADVICE}")
        if not path.resolve().parent.is_dir():
            parent = shlex.quote(str(path.parent))
            raise OutputError(f"There is no folder {path.parent}. Create it: mkdir -p {parent}")
        strangers = _list_strangers(path)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path} cannot be read: {error.strerror}. {ADVICE}") from error
    if strangers:
        names = ", ".join(strangers[:5]) + (f" and {len(strangers) - 5:,} more" if len(strangers) > 5 else "")
        raise OutputError(f"{path} has files that no export wrote: {names}. {ADVICE}")


def _list_strangers(path: Path) -> list[str]:
    """Return the files and folders that no export wrote."""
    names = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
    try:
        written = orjson.loads((path / MARKER).read_bytes())["entries"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return names
    return [name for name in names if name not in {MARKER, *written}]


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that takes the place of ``path`` at the end; until then, that stays as it is.

    Raises:
        OutputError: the folder may not be replaced, or cannot be written.
    """
    check_folder(path)
    place = path.resolve()
    prefix = f".{place.name}.export-"
    try:
        _clear_after_kills(place, prefix)
        unfinished = place.with_name(f"{prefix}{os.getpid()}-{secrets.token_hex(8)}")
        unfinished.mkdir()
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}. {ADVICE}") from error
    try:
        yield unfinished
        entries = sorted(entry.name for entry in unfinished.iterdir())
        (unfinished / MARKER).write_bytes(orjson.dumps({"written by": "suffrage serve --export", "entries": entries}))
        check_folder(path)  # files may have come meanwhile
        _swap(unfinished, place)
    except OSError as error:
        if isinstance(error, OutputError) or error.errno is None:  # no error of a file
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror}. {ADVICE}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _swap(unfinished: Path, place: Path) -> None:
    """Put a folder in its place; what was there takes its name. No moment has neither, where the system can do that."""
    if not place.exists():
        unfinished.rename(place)
    elif not _exchange(unfinished, place):
        old = Path(f"{unfinished}{MOVED}")
        place.rename(old)
        unfinished.rename(place)
        old.rename(unfinished)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step; False if the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        paths = (AT_WORKING_FOLDER, os.fsencode(first), AT_WORKING_FOLDER, os.fsencode(second))
        return bool(rename(*paths, EXCHANGE) == 0)
    return False


def _clear_after_kills(place: Path, prefix: str) -> None:
    """Remove what exports that were killed left behind; put back a folder that a swap in two steps had moved."""
    for entry in place.parent.glob(f"{glob.escape(prefix)}*"):
        process = entry.name.removeprefix(prefix).partition("-")[0]
        if not process.isdigit() or _is_running(int(process)):
            continue
        if entry.name.endswith(MOVED) and not place.exists():
            entry.rename(place)
        else:
            shutil.rmtree(entry, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
