"""The bytes of a file: without gzip, and as text where they should be text."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from itertools import islice
from pathlib import Path

from tracker.errors import BadInputError

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
RECORD_SUFFIXES = (".json", ".jsonl")
DELIMITERS = ",\t;"
HEAD_BYTES, HEAD_ROWS = 1 << 20, 50


def read_bytes(path: Path) -> bytes:
    """A file's bytes, without gzip.

    Raises:
        BadInputError: it is empty, cannot be opened, or its gzip is damaged or ends too early.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError(path, f"cannot be opened: {error.strerror or error}.") from error
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        except EOFError as error:
            raise BadInputError(path, "the gzip data end too early; copy or download the file again.") from error
        except (OSError, zlib.error) as error:
            raise BadInputError(path, f"the gzip data are damaged ({error}); get the file again.") from error
    if not data.strip():
        raise BadInputError(path, "is empty.")
    return data


def is_named_like_a_table(path: Path) -> bool:
    """Whether the name says that a file is CSV or Parquet."""
    return Path(path.name.removesuffix(".gz")).suffix.lower() in TABLE_SUFFIXES


def damage(path: Path) -> str | None:
    """Why a file that is named like results cannot hold any: empty, UTF-16, gzip or Parquet that breaks off."""
    if Path(path.name.removesuffix(".gz")).suffix.lower() not in (*TABLE_SUFFIXES, *RECORD_SUFFIXES):
        return None
    try:
        data = read_bytes(path)
    except BadInputError as error:
        return error.problems[0]
    if data.startswith(UTF16):
        return "is UTF-16 text; save it as UTF-8."
    return "the Parquet data end too early." if data.startswith(PARQUET) and not data.endswith(PARQUET) else None


def check_text(path: Path, data: bytes) -> None:
    """Refuses bytes that are not UTF-8 text.

    Raises:
        BadInputError: with the line of the first wrong byte.
    """
    if data.startswith(UTF16):
        raise BadInputError(path, "is UTF-16 text; save it as UTF-8.")
    if (position := data.find(b"\0")) >= 0:
        raise BadInputError(path, f"line {_line_at(data, position)}: holds a zero byte, so this is not a text file.")
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, start = _line_at(data, error.start), data.rfind(b"\n", 0, error.start) + 1
        text = f"line {line}, byte {error.start - start + 1}: byte 0x{data[error.start]:02x} is not UTF-8 text."
        raise BadInputError(path, text, advice="Save the file as UTF-8.") from error


def first_records(data: bytes, whole: bool) -> list[list[str]] | str:
    """The first rows of a CSV file, the header among them, or why there are none."""
    text = data.decode("utf-8-sig", errors="replace")
    if not whole:
        text = text[: text.rfind("\n") + 1] or text
    records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text))
    try:
        return list(islice((record for record in records if record), HEAD_ROWS + 1)) or "is empty"
    except csv.Error as error:
        return f"is no CSV file ({error})"


def delimiter(text: str) -> str:
    """The delimiter most frequent in the header, outside quotes; a comma where there is none."""
    line = text.lstrip("\r\n").partition("\n")[0]
    bare = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=lambda mark: (bare.count(mark), mark == ","))


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _line_at(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1
