"""JSON as harnesses write it: one value in a file, or one in each line; what is broken is told with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tracker.errors import BadInputError
from tracker.ingest.contents import check_text, opened, read_bytes


def read_json(path: Path) -> Any:
    """The one value of a file, gzipped or not; NaN and infinity are taken as Python writes them.

    Raises:
        BadInputError: it cannot be read, is no UTF-8, or its JSON is broken, with line and column.
    """
    data = read_bytes(path)
    check_text(path, data)
    return parsed(path, data.removeprefix(b"\xef\xbb\xbf"))


def parsed(path: Path, data: bytes, where: str = "") -> Any:
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


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Number (from 1) and value of each line that is not empty, read as a stream.

    Raises:
        BadInputError: at the first line that is no JSON, after the lines before it have been yielded.
    """
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not line.strip():
                continue
            try:
                yield number, orjson.loads(line)
                continue
            except orjson.JSONDecodeError:
                pass
            try:
                value = json.loads(line.decode("utf-8"))
            except (RecursionError, ValueError) as error:
                problem = f"line {number}: the JSON is broken or ends too early ({error})."
                raise BadInputError(path, problem) from error
            yield number, value
