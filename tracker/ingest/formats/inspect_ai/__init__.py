"""Logs of Inspect AI: .eval archives, read from their summaries, and .json logs; transcripts are never read.

A log is read as a stream, a large one twice: first to find prompts, retries and metrics, then for the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import report_progress_to
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.formats.inspect_ai.blocks import InspectBlocks
from tracker.ingest.formats.inspect_ai.header import LogHeader
from tracker.ingest.formats.inspect_ai.log_index import InspectLogIndex
from tracker.ingest.formats.inspect_ai.logs import InspectLog, JsonLog, open_log
from tracker.ingest.measurement import Measurement, ReadOptions
from tracker.ingest.reported_score import ReportedCount, ReportedScore

SPECIFICITY = 30
RECOGNIZED_BY = ".eval archives; .json that begins with status and eval"
ARCHIVE_START = b"PK\x03\x04"
JSON_START = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?'
    rb'"status"\s*:\s*"(?:started|success|cancelled|error)"\s*,\s*"eval"\s*:\s*\{'
)


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a log of Inspect AI."""
    if path.suffix not in (".eval", ".json"):
        return "the name does not end in .eval or .json"
    try:
        if not path.is_file():
            return "is not a file"
        with path.open("rb") as file:
            start = file.read(1024)
    except OSError as error:
        return f"cannot be read ({error})"
    if path.suffix == ".eval":
        return None if start.startswith(ARCHIVE_START) else Mismatch("it is not a zip archive", 1 / 2)
    return None if JSON_START.match(start) else "it does not start with the keys status and eval"


def harness_name(path: Path) -> str | None:
    """Return the program, with its version if the log names it."""
    try:
        inspect_log = open_log(path)
        if isinstance(inspect_log, JsonLog):
            inspect_log.until_eval()
        version = inspect_log.header(ReadOptions()).version
    except BadInputError:
        version = None
    return f"inspect_ai {version}" if version else "inspect_ai"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | ReportedCount | str]:
    """Yield scores and answers of each scorer, or the reported task scores if the log has no samples."""
    inspect_log = open_log(path)
    with report_progress_to(None):  # the second pass reports the progress
        index = InspectLogIndex.of(inspect_log.samples())
    header = replace(_header(inspect_log, options), row_metrics=index.row_metrics)
    index.count_words(header.averaged)
    header = _renamed(header, index, options)
    yield from header.warnings()
    blocks = InspectBlocks(inspect_log, header, index, options)
    yield from blocks.read()
    yield from header.reported_scores(all_errored=0 < index.n_errored == len(index))
    yield from header.reported_counts(blocks.counts)
    if len(index):
        yield from blocks.warnings()
    elif header.reported:
        yield "the log has no samples; its reported metrics were read as task scores"


def _header(inspect_log: InspectLog, options: ReadOptions) -> LogHeader:
    try:
        return inspect_log.header(options)
    except BadInputError:
        for _ in inspect_log.samples():  # damage of the header is more informative than a missing header
            pass
        raise


def _renamed(header: LogHeader, index: InspectLogIndex, options: ReadOptions) -> LogHeader:
    """Return the metric to rename: the first with a reported mean, else the first."""
    metrics = index.metrics or [reported.metric for reported in header.reported if reported.is_stored]
    if options.metric is None or options.metric in metrics or not metrics:
        return header
    reported = [reported.metric for reported in header.reported if reported.is_mean and reported.metric in metrics]
    return replace(header, renamed={(reported or metrics)[0]: options.metric})
