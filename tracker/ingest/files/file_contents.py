"""File contents: decompression and text decoding."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from tracker.errors import BadInputError
from tracker.ingest.files.missing_files import explain_unreadable
from tracker.settings.input_limits import current_limits, explain_limit

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
RECORD_SUFFIXES = (".json", ".jsonl")
DELIMITERS = ",\t;"
HEAD_BYTES, HEAD_ROWS = 1 << 20, 50
HEAD_CELLS, MAX_HEAD_ROWS = 50_000, 1_000
"""The head of a table has up to this number of cells, but at least `HEAD_ROWS` rows."""
READ_BYTES = 1 << 20

_LISTENER: ContextVar[Callable[[int], None] | None] = ContextVar("listener", default=None)


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes after decompression.

    Raises:
        BadInputError: the file is empty, unreadable or beyond the limits, or its gzip data are damaged or truncated.
    """
    with open_file(path) as file:
        parts = list(iter(lambda: file.read(READ_BYTES), b""))
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    if not data.strip():
        raise BadInputError(path, "is empty.")
    return data


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file as a decompressed byte stream; reading reports to the listener of `report_progress_to`.

    Raises:
        BadInputError: the file is unreadable or beyond the limits, or its gzip data are damaged or truncated.
    """
    try:
        with path.open("rb") as raw:
            counted = _CountedReader(raw, _LISTENER.get())
            zipped = raw.read(2) == GZIP
            raw.seek(0)
            size = raw.seek(0, io.SEEK_END)
            raw.seek(0)
            if zipped:
                with gzip.open(counted) as file:
                    yield io.BufferedReader(_UnpackedReader(path, cast(IO[bytes], file), size), READ_BYTES)
            elif size > current_limits().bytes:
                raise BadInputError(path, explain_limit("bytes", f"has {size:,} bytes"))
            else:
                yield io.BufferedReader(counted, READ_BYTES)
    except BadInputError:
        raise
    except EOFError as error:
        raise BadInputError(path, "the gzip data are truncated; copy or download the file again.") from error
    except zlib.error as error:
        raise BadInputError(path, f"the gzip data are damaged ({error}); download the file again.") from error
    except gzip.BadGzipFile as error:
        raise BadInputError(path, f"the gzip data are damaged ({error}); download the file again.") from error
    except OSError as error:
        raise explain_unreadable(path, error) from error


def check_expansion(path: Path, unpacked: int, packed: int, where: str = "") -> None:
    """Reject a packed file that expands beyond the limits.

    Args:
        path: the file.
        unpacked: bytes so far.
        packed: size of the file.
        where: part of the file.

    Raises:
        BadInputError: the file or part expands too far.
    """
    limits = current_limits()
    if unpacked > limits.bytes:
        raise BadInputError(path, explain_limit("bytes", f"{where}expands to more than {limits.bytes:,} bytes"))
    if unpacked > limits.allow(packed):
        text = f"{where}expands from {packed:,} to more than {limits.allow(packed):,} bytes, {limits.expansion} times"
        raise BadInputError(path, explain_limit("expansion", text))


@contextmanager
def report_progress_to(listener: Callable[[int], None] | None) -> Iterator[None]:
    """Report the bytes read by every `open_file` in the context to ``listener``."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def is_named_like_a_table(path: Path) -> bool:
    """Return whether the name is that of a CSV or Parquet file."""
    return Path(path.name.removesuffix(".gz")).suffix.lower() in TABLE_SUFFIXES


def find_damage(path: Path) -> str | None:
    """Return why a data file is damaged: empty, UTF-16, or truncated gzip or Parquet; None if it is not."""
    if Path(path.name.removesuffix(".gz")).suffix.lower() not in (*TABLE_SUFFIXES, *RECORD_SUFFIXES):
        return None
    first, last, holds_something = b"", b"", False
    try:
        with open_file(path) as file:
            while chunk := file.read(READ_BYTES):
                first = first or chunk[: len(PARQUET)]
                last = (last + chunk)[-len(PARQUET) :]
                holds_something = holds_something or not chunk.isspace()
    except BadInputError as error:
        return error.problems[0]
    if not holds_something:
        return "is empty."
    if first.startswith(UTF16):
        return "is UTF-16 text; save it as UTF-8."
    return "the Parquet data are truncated." if first == PARQUET and last != PARQUET else None


def check_columns(path: Path) -> None:
    """Reject a CSV file with too many columns, before anything parses them.

    Raises:
        BadInputError: its header has too many columns, or the file is unreadable.
    """
    if not is_named_like_a_table(path):
        return
    longest = current_limits().columns
    with open_file(path) as file:
        header = file.readline(HEAD_BYTES)
    n = 1 + max(header.count(mark.encode()) for mark in DELIMITERS)
    if n > longest and not header.startswith(PARQUET):
        raise BadInputError(path, explain_limit("columns", f"has at least {n:,} columns"))


def check_text(path: Path, data: bytes) -> None:
    """Reject bytes that are not UTF-8 text.

    Raises:
        BadInputError: with the line of the first invalid byte.
    """
    if data.startswith(UTF16):
        raise BadInputError(path, "is UTF-16 text; save it as UTF-8.")
    if (position := data.find(b"\0")) >= 0:
        raise BadInputError(path, f"line {_line_at(data, position)}: contains a zero byte, so this is not a text file.")
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, start = _line_at(data, error.start), data.rfind(b"\n", 0, error.start) + 1
        text = f"line {line}, byte {error.start - start + 1}: byte 0x{data[error.start]:02x} is not UTF-8 text."
        raise BadInputError(path, text, advice="Save the file as UTF-8.") from error


def read_first_records(data: bytes, whole: bool) -> list[list[str]] | str:
    """Return the first rows of a CSV file with its header, or why there are none."""
    text = data.decode("utf-8-sig", errors="replace")
    if not whole:
        text = text[: text.rfind("\n") + 1] or text
    records = csv.reader(io.StringIO(text, newline=""), delimiter=detect_delimiter(text))
    filled = (record for record in records if record)
    try:
        header = next(filled, None)
        return "is empty" if header is None else [header, *islice(filled, count_head_rows(len(header)))]
    except csv.Error as error:
        return f"is not a valid CSV file ({error})"


def count_head_rows(n_columns: int) -> int:
    """Return the number of rows of the head of a table."""
    return max(HEAD_ROWS, min(MAX_HEAD_ROWS, HEAD_CELLS // max(1, n_columns)))


def detect_delimiter(text: str) -> str:
    """Return the most frequent delimiter of the header outside quotes; a comma by default."""
    line = text.lstrip("\r\n").partition("\n")[0]
    bare = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=lambda mark: (bare.count(mark), mark == ","))


class _CountedReader(io.RawIOBase):
    """A file that reports the number of bytes read; bytes that are read again count again."""

    def __init__(self, raw: IO[bytes], listener: Callable[[int], None] | None) -> None:
        self._raw, self._listener = raw, listener

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._raw.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        n = self._raw.readinto(buffer)  # type: ignore[attr-defined]
        if self._listener is not None and n:
            self._listener(n)
        return int(n)


class _UnpackedReader(io.RawIOBase):
    """Unpacked bytes of a file, which end with an error if they are too many."""

    def __init__(self, path: Path, file: IO[bytes], packed: int) -> None:
        self._path, self._file, self._packed, self._place = path, file, packed, 0
        self._allowed = current_limits().allow(packed)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = self._file.seek(offset, whence)
        return self._place

    def readinto(self, buffer: Any) -> int:
        n = int(self._file.readinto(buffer))  # type: ignore[attr-defined]
        self._place += n
        if self._place > self._allowed:
            check_expansion(self._path, self._place, self._packed)
        return n


def _line_at(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1
