"""Archive of a store (`suffrage export archive`): prompts, models, runs, scores, answers and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tracker.ingest.archives.archive_file import LOCAL_HEADER, StoreArchive, open_archive, starts_like_archive
from tracker.ingest.archives.layout import MARK
from tracker.ingest.measurement import ReadOptions

SPECIFICITY = 90
RECOGNIZED_BY = "a zip that begins with a member suffrage-archive"
SUPPORTS_SPLITS = True


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not an archive of a store."""
    try:
        with path.open("rb") as file:
            head = file.read(LOCAL_HEADER + len(MARK))
    except OSError as error:
        return f"cannot be opened: {error.strerror or error}"
    return None if starts_like_archive(head) else "it is not a Suffrage archive"


def read(path: Path, options: ReadOptions) -> Iterator[StoreArchive | str]:
    """Yield the archive after verifying its checksums; its rows are read while they are stored."""
    option_names = ("model", "metric", "condition", "splits")
    if ignored := [f"--{name.removesuffix('s')}" for name in option_names if getattr(options, name)]:
        yield f"an archive defines these itself; ignored: {', '.join(ignored)}"
    yield open_archive(path)
