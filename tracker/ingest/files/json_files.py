"""JSON files of harnesses, with one value in the file or one per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import UTF16, check_text, open_file, read_bytes
from tracker.ingest.files.json_stream import measure_depth
from tracker.settings.input_limits import InputLimits, current_limits, explain_limit

NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
LARGE_BYTES = 8 << 20
MAX_LINES = 1_000_000
"""Largest number of lines of a packed file, beyond one for each of its bytes."""
MAX_PARTS = 3_000_000
"""Largest number of commas and brackets of a JSON value of more than 8 MB, beyond one for each byte of its file."""


def read_json(path: Path) -> Any:
    """Return the value of a JSON file, gzipped or not. NaN and infinity are accepted, as Python writes them.

    Raises:
        BadInputError: the file is unreadable, not UTF-8, or invalid JSON, with line and column.
    """
    data = read_bytes(path)
    check_text(path, data)
    return parse_json(path, data.removeprefix(b"\xef\xbb\xbf"), n_free=path.stat().st_size)


def parse_json(path: Path, data: bytes, where: str = "", *, n_free: int = 0) -> Any:
    """Parse a JSON value.

    Args:
        path: the file, for messages.
        data: UTF-8 text.
        where: part of the file for messages, such as a member of an archive.
        n_free: number of values beyond the limit that the size of the file justifies.

    Raises:
        BadInputError: the data are not JSON, nested too deeply, or hold too many values for memory.
    """
    place = f"{where}, " if where else ""
    if problem := find_excess(data, current_limits(), n_free):
        raise BadInputError(path, place + problem)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:  # json accepts what Python writes: NaN and lone surrogates.
        return json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        text = f"{place}line {error.lineno}, column {error.colno}: the JSON is invalid or truncated ({error.msg})."
        raise BadInputError(path, text) from error
    except (RecursionError, MemoryError, ValueError) as error:
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
        BadInputError: the file is unreadable or UTF-16, or a line is too long or nested too deeply.
    """
    limits = current_limits()
    longest = limits.value
    most = MAX_LINES + path.stat().st_size if path.is_file() else 0
    with open_file(path) as file:
        number = 0
        while line := file.readline(longest + 1):
            number += 1
            if number > most:
                raise BadInputError(path, explain_limit("expansion", f"expands to more than {most:,} lines"))
            if number == 1:
                if line.startswith(UTF16):
                    raise BadInputError(path, "is UTF-16 text; save it as UTF-8.")
                line = line.removeprefix(b"\xef\xbb\xbf")
            if len(line) > longest:
                raise BadInputError(path, explain_limit("value", f"line {number}: is longer than {longest:,} bytes"))
            if line.isspace():
                continue
            if problem := find_excess(line, limits):
                raise BadInputError(path, f"line {number}: {problem}")
            yield number, line


def find_excess(data: bytes, limits: InputLimits, n_free: int = 0) -> str | None:
    """Return why a JSON value is nested too deeply or has too many parts; None if neither.

    Args:
        data: the value.
        limits: the limits.
        n_free: number of parts beyond the limit.
    """
    if _opens_more(data, limits.nesting) and _is_deep(data, limits.nesting):
        return explain_limit("nesting", f"the JSON has more than {limits.nesting} levels of nesting")
    if len(data) > LARGE_BYTES and sum(map(data.count, (b"[", b"{", b","))) > MAX_PARTS + n_free:
        return explain_limit("expansion", f"the JSON has more than {MAX_PARTS + n_free:,} values, too many for memory")
    return None


def _opens_more(data: bytes, most: int) -> bool:
    """Return whether more lists and objects begin than ``most``; bytes.count takes many times as long on long lines."""
    n_left = most
    for bracket in (b"{", b"["):
        position = data.find(bracket)
        while position >= 0:
            if not n_left:
                return True
            n_left -= 1
            position = data.find(bracket, position + 1)
    return False


def _is_deep(data: bytes, deepest: int) -> bool:
    """Return whether brackets outside texts are nested more deeply."""
    brackets = data.translate(None, NO_BRACKETS)
    for _ in range(deepest // 2):  # a round removes one or two levels, and ends here if no text holds brackets
        shorter = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not shorter:
            return False
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    return measure_depth(data) > deepest


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
