"""The pages of a SQLite file, and those that wait in its write-ahead log.

A transaction for reading keeps other programs from changing the pages of the file that it may need, and from starting
the log anew while it reads from it. The pages are those of the last commit, which may be later than the transaction.

Source: "Database file format", https://www.sqlite.org/fileformat2.html, sections 1.3 and 4; "WAL-mode file format",
https://www.sqlite.org/walformat.html, section 2.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

HEADER_BYTES = 100
LOG_HEADER, FRAME_HEADER = 32, 24
INDEX_HEADER = 48
"""Bytes of the header of the index of a log, which is stored twice."""
ATTEMPTS = 10


class UnexpectedPageError(Exception):
    """The file, or a page, is not as a store's writers leave it."""


class Pages(Protocol):
    """The pages of a file; the first one has the number 1.

    Attributes:
        size: bytes of a page.
        usable: bytes of a page that hold content.
        number: how many pages there are.
    """

    size: int
    usable: int
    number: int

    def load(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return pages, ``(n, size)``; ascending numbers take the least time."""
        ...

    def read(self, page: int, start: int, n: int) -> bytes:
        """Return bytes of a page."""
        ...


@dataclass(frozen=True, kw_only=True)
class _WriteAheadLog:
    """The write-ahead log of a file.

    Attributes:
        descriptor: of the log.
        index: descriptor of its index.
        salts: what changes when the log is started anew.
        page_size: bytes of a page.
        n_pages: pages of the file after the last commit.
        places: by page, where the log holds it.
    """

    descriptor: int
    index: int
    salts: bytes
    page_size: int
    n_pages: int
    places: dict[int, int]

    @property
    def end(self) -> int:
        """Return how long the file is at least when all pages are merged."""
        return max(self.places) * self.page_size


class FilePages:
    """The pages of a file with its log.

    Args:
        path: absolute path of the file, which a transaction of this process reads.

    Raises:
        UnexpectedPageError: the file or its log cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = find_descriptor(path)
        self._log = _read_log(path)
        header = os.pread(self._descriptor, HEADER_BYTES, 0)
        if self._log is None and len(header) < HEADER_BYTES:
            raise UnexpectedPageError("the file is too short")
        size = self._log.page_size if self._log else int.from_bytes(header[16:18])
        self.size = {1: 65536}.get(size, size)
        if self.size < 512 or self.size & (self.size - 1):
            raise UnexpectedPageError("the size of a page is impossible")
        header = self.read(1, 0, HEADER_BYTES)
        self.usable = self.size - header[20]
        self.number = self._log.n_pages if self._log else -(-os.fstat(self._descriptor).st_size // self.size)
        if (stated := int.from_bytes(header[28:32])) and header[24:28] == header[92:96]:
            self.number = stated
        if self.number * self.size > max(os.fstat(self._descriptor).st_size, self._log.end if self._log else 0):
            raise UnexpectedPageError("the file is shorter than it states")

    def load(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return pages, ``(n, size)``; ascending numbers take the least time."""
        loaded = np.empty((len(numbers), self.size), dtype=np.uint8)
        ends = np.append(np.flatnonzero(np.diff(numbers) != 1) + 1, len(numbers))
        start = 0
        for end in ends.tolist():
            part: Any = loaded[start:end].reshape(-1)
            n = os.preadv(self._descriptor, [part], (int(numbers[start]) - 1) * self.size)
            part[n:] = 0
            start = end
        if self._log:
            for place, page in enumerate(numbers.tolist()):
                if page in self._log.places:
                    loaded[place] = np.frombuffer(self.read(page, 0, self.size), dtype=np.uint8)
        return loaded

    def read(self, page: int, start: int, n: int) -> bytes:
        """Return bytes of a page, as 0 where the file is too short."""
        if self._log and page in self._log.places:
            content = os.pread(self._log.descriptor, n, self._log.places[page] + start)
        else:
            content = os.pread(self._descriptor, n, (page - 1) * self.size + start)
        return content.ljust(n, b"\0")

    def check_unchanged(self) -> None:
        """Check that the log was not started anew since its pages were listed.

        Raises:
            UnexpectedPageError: it was, so pages may have been read that are newer.
        """
        if self._log and _read_index(self._log.index)[32:40] != self._log.salts:
            raise UnexpectedPageError("the log was started anew")


def open_pages(connection: sa.Connection) -> FilePages:
    """Return the pages of the file of a connection, whose transaction has read before.

    Raises:
        UnexpectedPageError: the file or its log cannot be read.
    """
    path = Path(str(connection.engine.url.database)).resolve()  # a log lies beside the file, not beside a link to it
    try:
        journal = Path(f"{path}-journal")
        if journal.exists() and journal.stat().st_size:
            raise UnexpectedPageError("changes are not merged yet")
        return FilePages(path)
    except (OSError, struct.error) as error:
        raise UnexpectedPageError(str(error)) from error


def find_descriptor(path: Path) -> int:
    """Return a descriptor by which SQLite has the file open in this process.

    A file that this module opened itself could not be closed again: on POSIX systems that would drop all locks of the
    process on it, those of SQLite too.
    """
    status = path.stat()
    for name in os.listdir("/dev/fd"):
        try:
            present = os.fstat(int(name))
        except (OSError, ValueError):  # such as that of the listing itself
            continue
        if (present.st_dev, present.st_ino) == (status.st_dev, status.st_ino):
            return int(name)
    raise UnexpectedPageError("the file is not open")


def _read_log(path: Path) -> _WriteAheadLog | None:
    """Return the log beside a file; None if nothing waits in it."""
    log = Path(f"{path}-wal")
    if not log.exists() or not log.stat().st_size:
        return None
    descriptor, index = find_descriptor(log), find_descriptor(Path(f"{path}-shm"))
    header = _read_index(index)
    n_frames, n_pages = struct.unpack_from("=II", header, 16)  # the computer's order of bytes
    if not n_frames:
        return None
    start = os.pread(descriptor, LOG_HEADER, 0)
    size, salts, places = int.from_bytes(start[8:12]), header[32:40], {}
    for place in range(LOG_HEADER, LOG_HEADER + n_frames * (FRAME_HEADER + size), FRAME_HEADER + size):
        frame = os.pread(descriptor, FRAME_HEADER, place)
        if frame[8:16] != salts:
            raise UnexpectedPageError("the log does not match its index")
        places[int.from_bytes(frame[:4])] = place + FRAME_HEADER
    return _WriteAheadLog(
        descriptor=descriptor, index=index, salts=salts, page_size=size, n_pages=n_pages, places=places
    )


def _read_index(descriptor: int) -> bytes:
    """Return the header of the index of a log, of which writers keep two equal copies."""
    for _ in range(ATTEMPTS):
        both = os.pread(descriptor, 2 * INDEX_HEADER, 0)
        if both[:INDEX_HEADER] == both[INDEX_HEADER:] and len(both) == 2 * INDEX_HEADER:
            return both[:INDEX_HEADER]
    raise UnexpectedPageError("the index of the log changes")
