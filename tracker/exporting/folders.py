"""Write folders of files atomically."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.errors import OutputError, SuffrageError

ELSE = "Use another name for --output."


def check_folder(path: Path, *, force: bool) -> None:
    """Reject an unusable output folder before work begins.

    Raises:
        OutputError: the folder exists and may not be replaced, or its parent folder does not exist.
    """
    try:
        is_there, is_folder, has_folder = path.exists(), path.is_dir(), path.absolute().parent.is_dir()
        is_full = is_folder and any(path.iterdir())
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}. {ELSE}") from error
    if is_there and not is_folder:
        raise OutputError(f"{path} is a file, but the export writes several files. {ELSE}")
    if is_full and not force:
        raise OutputError(f"{path} already has files. {ELSE} To replace files of the same names, use --force.")
    if not has_folder:
        parent = path.absolute().parent
        raise OutputError(f"There is no folder {parent}. Create it: mkdir -p {shlex.quote(str(parent))}")


@contextmanager
def write_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder whose files are moved to their place at the end; a failure leaves nothing behind.

    Raises:
        OutputError: a file exists and may not be replaced, or the folder cannot be written.
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
