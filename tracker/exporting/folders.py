"""Folders of files that are there whole or not at all."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.errors import OutputError, SuffrageError

ELSE = "Give --output another name."


def check_folder(path: Path, *, force: bool) -> None:
    """Refuse a place where no files can or may be written, before work is done for them.

    Raises:
        OutputError: something is there and may not be replaced, or the folder above is not there.
    """
    try:
        is_there, is_folder, has_folder = path.exists(), path.is_dir(), path.absolute().parent.is_dir()
        is_full = is_folder and any(path.iterdir())
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}. {ELSE}") from error
    if is_there and not is_folder:
        raise OutputError(f"{path} is a file; many files are to be written. {ELSE}")
    if is_full and not force:
        raise OutputError(f"{path} holds files already. {ELSE} Or replace those of the same names with --force.")
    if not has_folder:
        parent = path.absolute().parent
        raise OutputError(f"There is no folder {parent}. Create it: mkdir -p {shlex.quote(str(parent))}")


@contextmanager
def write_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """A folder to be filled beside the place to which its files go at the end; nothing is left of one that fails.

    Raises:
        OutputError: something is there and may not be replaced, or it cannot be written.
    """
    check_folder(path, force=force)
    path = path.resolve()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.mkdir()
        yield unfinished
        if path.exists():
            for file in sorted(unfinished.rglob("*")):
                if file.is_file():
                    place = path / file.relative_to(unfinished)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    file.replace(place)
        else:
            unfinished.replace(path)
    except OSError as error:
        if isinstance(error, SuffrageError):
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror}. {ELSE}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
