"""A log in either format: its header, and its samples as a stream that can be read twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import open_file
from tracker.ingest.files.json_files import parse_json
from tracker.ingest.files.json_stream import stream_parts
from tracker.ingest.formats.inspect_ai.archive import InspectArchive
from tracker.ingest.formats.inspect_ai.header import LogHeader
from tracker.ingest.formats.inspect_ai.samples import FIELDS, InspectSample, InvalidSampleError, sample
from tracker.ingest.measurement import ReadOptions

HEADER, START, SUMMARIES = "header.json", "_journal/start.json", "summaries.json"
JOURNAL = re.compile(r"_journal/summaries/(\d{1,18})\.json")
HEAD = ("status", "eval", "plan", "results", "stats", "error", "invalidated", "version")
CHUNK = 1 << 18


def _is_read(name: str) -> bool:
    return name in (HEADER, START, SUMMARIES) or JOURNAL.fullmatch(name) is not None


class InspectLog(Protocol):
    """A log of Inspect.

    Attributes:
        path: the file.
    """

    path: Path

    def samples(self) -> Iterator[tuple[int, InspectSample]]:
        """Yield number (from 1) and content of each sample.

        Raises:
            BadInputError: the log is damaged; raised after the samples before the damage.
        """
        ...

    def header(self, options: ReadOptions) -> LogHeader:
        """Return the header. If it follows the samples, they must be read first.

        Raises:
            BadInputError: the header cannot be read.
        """
        ...


class EvalLog:
    """A log in an archive, of which only the sample summaries are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.archive = InspectArchive.open(path, _is_read)
        self._head: dict[str, Any] | None = None
        if HEADER in self.archive.members:
            try:
                self._head = self._read(HEADER)
            except BadInputError:
                if START not in self.archive.members:
                    raise
                self.archive = replace(self.archive, damage=f"{HEADER} in the archive is damaged")

    def samples(self) -> Iterator[tuple[int, InspectSample]]:
        """See `InspectLog`."""
        n = 0
        for name in self._summaries():
            for _, data in stream_parts(self.archive.stream(name), self.path, where=name):
                n += 1
                yield n, _sample(self.path, data, f"{name}, sample {n}")
        if self.archive.damage:
            raise BadInputError(self.path, f"{self.archive.damage}; {n:,} samples precede the damage.")

    def header(self, options: ReadOptions) -> LogHeader:
        """See `InspectLog`."""
        if self._head is not None:
            return LogHeader(self.path, self._head, options)
        if START in self.archive.members:
            return LogHeader(self.path, self._read(START), options, complete=False)
        lacking = self.archive.damage or "is not a log of Inspect"
        raise BadInputError(self.path, f"{lacking}: the archive has neither {HEADER} nor {START}.")

    def _summaries(self) -> list[str]:
        """Return the members with summaries: one of a finished log, else those of its journal in order."""
        if SUMMARIES in self.archive.members:
            return [SUMMARIES]
        numbered = [(int(match[1]), name) for name in self.archive.members if (match := JOURNAL.fullmatch(name))]
        return [name for _, name in sorted(numbered)]

    def _read(self, name: str) -> dict[str, Any]:
        data = parse_json(self.path, self.archive.read(name), name)
        if not isinstance(data, dict):
            raise BadInputError(self.path, f"{name}: is not a log header.")
        return data


class JsonLog:
    """A log in one JSON object; transcripts of samples are dropped while reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._head: dict[str, Any] = {}

    def samples(self) -> Iterator[tuple[int, InspectSample]]:
        """See `InspectLog`."""
        n = 0
        with open_file(self.path) as file:
            chunks = iter(lambda: file.read(CHUNK), b"")
            for name, data in stream_parts(chunks, self.path, of=("samples",), only=FIELDS, beside=HEAD):
                if name is not None:
                    self._head[name] = parse_json(self.path, data, name)
                    continue
                n += 1
                yield n, _sample(self.path, data, f"sample {n}")

    def header(self, options: ReadOptions) -> LogHeader:
        """See `InspectLog`."""
        if not isinstance(self._head.get("eval"), dict):
            raise BadInputError(self.path, "is not a log of Inspect, or its header is truncated.")
        return LogHeader(self.path, self._head, options, complete="status" in self._head)

    def until_eval(self) -> None:
        """Read only the description of the run."""
        with open_file(self.path) as file:
            chunks = iter(lambda: file.read(CHUNK), b"")
            for name, data in stream_parts(chunks, self.path, of=("samples",), only=FIELDS, beside=HEAD):
                if name is None:
                    return
                self._head[name] = parse_json(self.path, data, name)
                if name == "eval":
                    return


def open_log(path: Path) -> EvalLog | JsonLog:
    """Open the log in a file.

    Raises:
        BadInputError: the archive or its header cannot be read.
    """
    with open_file(path) as file:
        start = file.read(2)
    return EvalLog(path) if start == b"PK" else JsonLog(path)


def _sample(path: Path, data: bytes, place: str) -> InspectSample:
    try:
        return sample(parse_json(path, data, place))
    except InvalidSampleError as error:
        raise BadInputError(path, f"{place} {error}.") from error
