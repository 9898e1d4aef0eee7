"""A file on its way through the format that recognised it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from tracker.errors import BadInputError
from tracker.ingest.archives.archive_file import StoreArchive
from tracker.ingest.files.file_contents import report_progress_to
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.write.block_buffer import BlockBuffer
from tracker.ingest.write.duplicate_models import DuplicateModels
from tracker.ingest.write.ingest_counter import IngestCounter

CHUNK = 1 << 20


def parse_blocks(
    path: Path, module: ModuleType, options: ReadOptions, way: ReadProgress, *, partial: bool
) -> tuple[BlockBuffer, list[str], str, StoreArchive | None]:
    """What a format makes of a file, the notes on it, why it was read in part only, and the store that it holds.

    Raises:
        BadInputError: it is not sound, or holds nothing.
    """
    spool, tally, copies, warnings, why = BlockBuffer(), IngestCounter(), DuplicateModels(), list[str](), ""
    try:
        with report_progress_to(way.read):
            for part in module.read(path, options):
                if isinstance(part, str):
                    warnings.append(part)
                elif isinstance(part, StoreArchive):
                    way.end()
                    return spool, warnings, "", part
                else:
                    tally.add(part)
                    copies.add(part)
                    spool.append(part)
    except BadInputError as error:
        said = tally.said()
        if not said:
            raise
        if not partial:
            spool.close()
            advice = f"What could be read: {said}\nNothing was stored; --partial stores this much."
            advice = f"{error.advice}\n{advice}" if error.advice else advice
            raise BadInputError(error.path, error.problems, count=error.count, advice=advice) from error
        why = str(error)
    except BaseException:
        spool.close()
        raise
    if not len(spool):
        raise BadInputError(path, "holds no scores, answers or prompts.", advice="\n".join(warnings))
    way.end()
    return spool, [*warnings, *copies.warnings()], why, None


def hash_files(files: Sequence[Path], way: ReadProgress) -> str:
    """SHA-256 of a file, or of the SHA-256 of each of several."""
    digests = []
    for path in files:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                way.know(len(chunk))
        digests.append(digest.hexdigest())
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


class ReadProgress:
    """How far a file has come: its bytes are read twice, to be known again and to be understood.

    Args:
        total: bytes of all its files.
        progress: told how many of them count as done.
    """

    KNOWING = 0.1
    """Share of the time that the first reading takes."""

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self.total, self.progress = total, progress
        self.known = self.understood = 0

    def know(self, n_bytes: int) -> None:
        """More bytes have been read for the first time."""
        self.known += n_bytes
        self._tell(self.KNOWING * self.known)

    def read(self, n_bytes: int) -> None:
        """More bytes have been read by the format."""
        self.understood = min(self.understood + n_bytes, self.total)
        self._tell(self.KNOWING * self.total + (1 - self.KNOWING) * self.understood)

    def end(self) -> None:
        """All is done, however it was read."""
        self._tell(self.total)

    def _tell(self, done: float) -> None:
        if self.progress is not None:
            self.progress(int(done), self.total)
