"""Previews of the readings of an ambiguous table, with the command for each."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from tracker.ingest.tables.evidence import COLUMNS, ROWS, CrossReading
from tracker.ingest.tables.layout import MAX_PREVIEW, Orientation, TableRejection
from tracker.ingest.tables.table_columns import TableColumns
from tracker.name_lists import join_names


def reading_options(reading: CrossReading) -> list[str]:
    """Return the options that select a reading."""
    column = reading.key
    if reading.orientation == "leaderboard":
        return ["--format", "leaderboard-table", "--model-column", column]
    part = {"prompts": "prompt", "models": "model", "tasks": "task"}[reading.orientation]
    part_options = ["--model-column", column] if part == "model" else ["--map", f"{part}={column}"]
    return ["--orient", reading.orientation, *(part_options if column else [])]


def preview_reading(table: TableColumns, orientation: Orientation, key: str, values: Sequence[str]) -> list[str]:
    """Return two lines with the first names of the rows and columns of a reading."""
    rows = list(dict.fromkeys(table.columns[key].cells))
    headings = [table.columns[name].heading for name in values]
    return [
        f"rows are {ROWS[orientation]}s: {join_names(rows, MAX_PREVIEW)}",
        f"columns are {COLUMNS[orientation]}s: {join_names(headings, MAX_PREVIEW)}",
    ]


def reject_ambiguous(path: Path, table: TableColumns, readings: Sequence[CrossReading]) -> TableRejection:
    """Return why a table is ambiguous, with a preview and the command of each reading."""
    lines = []
    for reading in readings:
        first, second = preview_reading(table, reading.orientation, reading.key, reading.values)
        command = shlex.join(["suffrage", "ingest", str(path), *reading_options(reading)])
        lines += [f"  {first};\n    {second}", f"    {command}"]
    return TableRejection(
        "it is unclear what the rows and columns are. Nothing was stored.",
        "\n".join(["Choose a reading:", *lines]),
        "wide-table",
        0.9,
        is_final=True,
    )
