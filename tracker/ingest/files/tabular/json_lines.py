"""JSON Lines as a table: one object per line, with fields as columns of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import HEAD_BYTES, MAX_HEAD_ROWS, check_text, read_bytes
from tracker.ingest.files.json_values import first_bytes
from tracker.ingest.files.tabular.table import FileTable, read_table
from tracker.ingest.files.tabular.table_head import TableHead, read_head
from tracker.ingest.resolve.prompt_texts import make_storable


def is_json_lines(path: Path) -> bool:
    """Return whether the name is that of a JSON Lines file."""
    return path.name.lower().removesuffix(".gz").endswith(".jsonl")


def read_rows_head(path: Path) -> TableHead | str:
    """Return the first rows of a table in CSV, Parquet or JSON Lines, or why it has none; reads at most 1 MB."""
    if not is_json_lines(path):
        return read_head(path)
    data = first_bytes(path, HEAD_BYTES)
    if isinstance(data, str):
        return data
    lines = data.decode("utf-8", errors="replace").split("\n")
    cut = len(data) == HEAD_BYTES
    rows: list[dict[str, Any]] = []
    for line in (line for line in (lines[:-1] if cut and len(lines) > 1 else lines) if line.strip()):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            if rows:
                break
            return "its first line is not a JSON object"
        rows.append(row)
        if len(rows) == MAX_HEAD_ROWS:
            break
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    texts = tuple(tuple(_text(row.get(name)) for name in names) for row in rows)
    names = tuple(make_storable(name) for name in names)
    return TableHead(names, texts, not cut and len(rows) < MAX_HEAD_ROWS)


def read_rows(path: Path) -> FileTable:
    """Read a table in CSV, Parquet or JSON Lines; see `read_table` and `read_json_lines`."""
    return read_json_lines(path) if is_json_lines(path) else read_table(path)


def read_json_lines(path: Path) -> FileTable:
    """Read a file of one JSON object per line, gzipped or not; missing and null fields are empty cells.

    Raises:
        BadInputError: the file is unreadable, or a line is not an object.
    """
    import pyarrow as pa

    data = read_bytes(path)
    check_text(path, data)
    rows: list[dict[str, Any]] = []
    problems = []
    # Python's splitlines would also break lines at other characters inside texts.
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
            problems.append(f"line {number}: is not a JSON object")
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
