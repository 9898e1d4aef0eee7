"""JSON files of harnesses, with one value in the file or one per line."""

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
    """Return the value of a JSON file, gzipped or not. NaN and infinity are accepted, as Python writes them.

    Raises:
        BadInputError: the file is unreadable, not UTF-8, or invalid JSON, with line and column.
    """
    data = read_bytes(path)
    check_text(path, data)
    return parse_json(path, data.removeprefix(b"\xef\xbb\xbf"))


def parse_json(path: Path, data: bytes, where: str = "") -> Any:
    """Parse a JSON value.

    Args:
        path: the file, for messages.
        data: UTF-8 text.
        where: part of the file for messages, such as a member of an archive.

    Raises:
        BadInputError: the data are not JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    place = f"{where}, " if where else ""
    try:  # json accepts what Python writes: NaN and lone surrogates.
        return json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        text = f"{place}line {error.lineno}, column {error.colno}: the JSON is invalid or truncated ({error.msg})."
        raise BadInputError(path, text) from error
    except (RecursionError, ValueError) as error:
        raise BadInputError(path, f"{place}the JSON cannot be read ({error}).") from error


def iterate_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield number (from 1) and value of each non-empty line.

    Raises:
        BadInputError: a line is not JSON; raised after the lines before it.
    """
    for number, line in read_lines(path):
        try:
            yield number, parse_line(line)
        except ValueError as error:
            raise BadInputError(path, f"line {number}: {error}.") from error


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and bytes of each non-empty line.

    Raises:
        BadInputError: the file is unreadable or UTF-16, or a line is too long.
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
    """Parse a line of JSON. NaN and infinity are accepted, as Python writes them.

    Raises:
        ValueError: the line is not JSON.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:  # json accepts what Python writes: NaN and lone surrogates.
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1}, 0x{line[error.start]:02x}, is not UTF-8 text") from error
    except (RecursionError, ValueError) as error:
        raise ValueError(f"the JSON is invalid or truncated ({error})") from error
