"""JSON Lines as a table: an object a line, its fields the columns, every cell a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.contents import check_text, read_bytes
from tracker.ingest.tables import Table


def read_json_lines(path: Path) -> Table:
    """A file of one JSON object in each line, gzipped or not; a field that is absent or null is an empty cell.

    Raises:
        BadInputError: it cannot be read, or a line is no object.
    """
    import pyarrow as pa

    data = read_bytes(path)
    check_text(path, data)
    rows: list[dict[str, Any]] = []
    problems = []
    for number, line in enumerate(data.decode("utf-8-sig").splitlines(), start=1):
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
    columns = {name: pa.array([_text(row.get(name)) for row in rows], pa.large_string()) for name in names}
    return Table(path, pa.table(columns), None)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
