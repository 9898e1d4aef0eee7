"""JSON as harnesses write it: one value in a file, or one in each line; what is broken is told with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import UTF16, check_text, open_file, read_bytes

MAX_LINE_BYTES = 64 << 20


def read_json(path: Path) -> Any:
    """The one value of a file, gzipped or not; NaN and infinity are taken as Python writes them.

    Raises:
        BadInputError: it cannot be read, is no UTF-8, or its JSON is broken, with line and column.
    """
    data = read_bytes(path)
    check_text(path, data)
    return parse_json(path, data.removeprefix(b"\xef\xbb\xbf"))


def parse_json(path: Path, data: bytes, where: str = "") -> Any:
    """The value that some bytes of a file spell.

    Args:
        path: the file, for messages.
        data: UTF-8 text.
        where: the part of the file that they are, for messages, such as a member of an archive.

    Raises:
        BadInputError: they spell none.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    place = f"{where}, " if where else ""
    try:  # Python's own reader takes what Python's own writer writes: NaN, and halves of surrogate pairs.
        return json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        text = f"{place}line {error.lineno}, column {error.colno}: the JSON is broken or ends too early ({error.msg})."
        raise BadInputError(path, text) from error
    except (RecursionError, ValueError) as error:
        raise BadInputError(path, f"{place}the JSON cannot be read ({error}).") from error


def iterate_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Number (from 1) and value of each line that is not empty, read as a stream.

    Raises:
        BadInputError: at the first line that is no JSON, after the lines before it have been yielded.
    """
    for number, line in read_lines(path):
        try:
            yield number, parse_line(line)
        except ValueError as error:
            raise BadInputError(path, f"line {number}: {error}.") from error


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and bytes of each line that is not empty, read as a stream.

    Raises:
        BadInputError: the file cannot be read, is UTF-16, or has a line that no harness writes.
    """
    with open_file(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            if number == 1:
                if line.startswith(UTF16):
                    raise BadInputError(path, "is UTF-16 text; save it as UTF-8.")
                line = line.removeprefix(b"\xef\xbb\xbf")
            if len(line) == MAX_LINE_BYTES:
                raise BadInputError(path, f"line {number}: is longer than {MAX_LINE_BYTES >> 20} MB.")
            if not line.isspace():
                yield number, line


def parse_line(line: bytes) -> Any:
    """The value that a line spells; NaN and infinity are taken as Python writes them.

    Raises:
        ValueError: it spells none; says why.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:  # Python's own reader takes what Python's own writer writes: NaN, and halves of surrogate pairs.
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1}, 0x{line[error.start]:02x}, is not UTF-8 text") from error
    except (RecursionError, ValueError) as error:
        raise ValueError(f"the JSON is broken or ends too early ({error})") from error
