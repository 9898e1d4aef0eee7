"""JSON Lines as a table: an object a line, its fields the columns, every cell a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import HEAD_BYTES, check_text, read_bytes
from tracker.ingest.files.json_values import first_bytes
from tracker.ingest.files.tabular.table import FileTable, read_table
from tracker.ingest.resolve.prompt_texts import make_storable


def is_json_lines(path: Path) -> bool:
    """Whether the name says that a file is JSON Lines."""
    return path.name.lower().removesuffix(".gz").endswith(".jsonl")


def first_names(path: Path) -> list[str] | str:
    """The fields of the first object of a file, or why there are none; reads at most a megabyte."""
    data = first_bytes(path, HEAD_BYTES)
    if isinstance(data, str):
        return data
    try:
        row = json.loads(data.lstrip().partition(b"\n")[0].decode("utf-8-sig"))
    except (ValueError, RecursionError):
        row = None
    return list(row) if isinstance(row, dict) else "its first line is no JSON object"


def read_rows(path: Path) -> FileTable:
    """A table in whatever of its formats: CSV, Parquet or JSON Lines; see `read_table` and `read_json_lines`."""
    return read_json_lines(path) if is_json_lines(path) else read_table(path)


def read_json_lines(path: Path) -> FileTable:
    """A file of one JSON object in each line, gzipped or not; a field that is absent or null is an empty cell.

    Raises:
        BadInputError: it cannot be read, or a line is no object.
    """
    import pyarrow as pa

    data = read_bytes(path)
    check_text(path, data)
    rows: list[dict[str, Any]] = []
    problems = []
    # Texts may hold other characters at which Python would break lines.
    for number, line in enumerate(data.decode("utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            problems.append(f"line {number}: is no JSON object")
    if problems:
        raise BadInputError(path, problems)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {
        make_storable(name): pa.array([_text(row.get(name)) for row in rows], pa.large_string()) for name in names
    }
    return FileTable(path, pa.table(columns), None)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else make_storable(value)
    return make_storable(json.dumps(value, ensure_ascii=False))
