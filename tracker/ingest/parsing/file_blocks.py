"""Parsing of a file into blocks with a format, with progress and hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from tracker.errors import BadInputError
from tracker.ingest.archives.archive_file import StoreArchive
from tracker.ingest.files.file_contents import report_progress_to
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.block_buffer import BlockBuffer
from tracker.ingest.parsing.duplicate_models import DuplicateModels
from tracker.ingest.parsing.ingest_counter import IngestCounter

CHUNK = 1 << 20


def parse_blocks(
    path: Path, module: ModuleType, options: ReadOptions, position: ReadProgress, *, partial: bool
) -> tuple[BlockBuffer, list[str], str, StoreArchive | None]:
    """Parse a file with its format.

    Returns:
        Return its blocks, its warnings, the damage if only a part was read, and the archive that it holds.

    Raises:
        BadInputError: the file is invalid, or holds nothing.
    """
    buffer, counter, duplicates, warnings, damage = BlockBuffer(), IngestCounter(), DuplicateModels(), list[str](), ""
    try:
        with report_progress_to(position.add_parsed):
            for part in module.read(path, options):
                if isinstance(part, str):
                    warnings.append(part)
                elif isinstance(part, StoreArchive):
                    position.end()
                    return buffer, warnings, "", part
                else:
                    counter.add(part)
                    duplicates.add(part)
                    buffer.append(part)
    except BadInputError as error:
        counts = counter.summary()
        if not counts:
            raise
        if not partial:
            buffer.close()
            advice = f"What could be read: {counts}\nNothing was stored. Add --partial to store this part."
            advice = f"{error.advice}\n{advice}" if error.advice else advice
            raise BadInputError(error.path, error.problems, count=error.count, advice=advice) from error
        damage = str(error)
    except BaseException:
        buffer.close()
        raise
    if not len(buffer):
        raise BadInputError(path, "holds no scores, answers or prompts.", advice="\n".join(warnings))
    position.end()
    return buffer, [*warnings, *duplicates.warnings()], damage, None


def hash_files(files: Sequence[Path], position: ReadProgress) -> str:
    """Return the SHA-256 of a file, or of the SHA-256 of each of several."""
    digests = []
    for path in files:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                position.add_hashed(len(chunk))
        digests.append(digest.hexdigest())
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


class ReadProgress:
    """Progress of reading a file; its bytes are read twice, for hashing and parsing.

    Args:
        total: number of bytes of all its files.
        progress: receives the number of bytes done, and the total.
    """

    HASHING = 0.1
    """Share of the time that hashing takes."""

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self.total, self.progress = total, progress
        self.n_hashed = self.n_parsed = 0

    def add_hashed(self, n_bytes: int) -> None:
        """Add bytes that were hashed."""
        self.n_hashed += n_bytes
        self._report(self.HASHING * self.n_hashed)

    def add_parsed(self, n_bytes: int) -> None:
        """Add bytes that were parsed."""
        self.n_parsed = min(self.n_parsed + n_bytes, self.total)
        self._report(self.HASHING * self.total + (1 - self.HASHING) * self.n_parsed)

    def end(self) -> None:
        """Report that all is done."""
        self._report(self.total)

    def _report(self, done: float) -> None:
        if self.progress is not None:
            self.progress(int(done), self.total)
