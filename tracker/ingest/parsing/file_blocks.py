"""Parsing of a file into blocks with a format, with progress and hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import report_progress_to
from tracker.ingest.measurement import ReadOptions, ReportedDifference, StoreFile
from tracker.ingest.parsing.block_buffer import BlockBuffer
from tracker.ingest.parsing.duplicate_models import DuplicateModels
from tracker.ingest.parsing.ingest_counter import IngestCounter
from tracker.ingest.parsing.name_checks import LengthChecks
from tracker.ingest.parsing.reported_scores import ReportedScores
from tracker.ingest.reported_score import ReportedCount, ReportedScore
from tracker.settings.input_limits import current_limits, explain_limit

CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, eq=False)
class ParsedBlocks:
    """The content of a file.

    Attributes:
        blocks: its blocks.
        warnings: messages for the user.
        differences: reported scores that differ from those computed from the rows.
        damage: why only a part of the file could be read; '' if all of it was.
        store: the store that the file holds instead of blocks.
    """

    blocks: BlockBuffer
    warnings: Sequence[str]
    differences: Sequence[ReportedDifference] = ()
    damage: str = ""
    store: StoreFile | None = None


def parse_blocks(
    path: Path, module: ModuleType, options: ReadOptions, position: ReadProgress, *, partial: bool
) -> ParsedBlocks:
    """Parse a file with its format, and compare the scores that its harness reports with its rows.

    Raises:
        BadInputError: the file is invalid, holds nothing, or reports scores but holds none.
    """
    buffer, counter, duplicates, warnings, damage = BlockBuffer(), IngestCounter(), DuplicateModels(), list[str](), ""
    reported = ReportedScores(is_expected=getattr(module, "REPORTS_SCORES", True))
    limits = current_limits()
    lengths = LengthChecks(path, limits)
    try:
        with report_progress_to(position.add_parsed):
            for part in module.read(path, options):
                if isinstance(part, str):
                    warnings.append(part)
                elif isinstance(part, StoreFile):
                    position.end()
                    return ParsedBlocks(blocks=buffer, warnings=warnings, store=part)
                elif isinstance(part, (ReportedScore, ReportedCount)):
                    reported.add(part)
                else:
                    lengths.check(part)
                    counter.add(part)
                    if counter.n_runs > limits.runs:
                        raise BadInputError(path, explain_limit("runs", f"has more than {limits.runs:,} runs"))
                    duplicates.add(part)
                    reported.add(part)
                    buffer.append(part)
        for part in reported.check(path, n_prompts=counter.n_prompts, n_scores=counter.n_scores):
            if isinstance(part, str):
                warnings.append(part)
            else:
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
    except (RecursionError, MemoryError) as error:
        buffer.close()
        reason = "is nested too deeply" if isinstance(error, RecursionError) else "needs more memory than there is"
        raise BadInputError(path, f"{reason}; nothing was stored.") from error
    except BaseException:
        buffer.close()
        raise
    if not len(buffer):
        raise BadInputError(path, "holds no scores, answers or prompts.", advice="\n".join(warnings))
    position.end()
    warnings += duplicates.warnings()
    return ParsedBlocks(blocks=buffer, warnings=warnings, differences=reported.differences, damage=damage)


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
