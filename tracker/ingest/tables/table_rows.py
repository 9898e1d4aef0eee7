"""Rows of a table that are read: those of the chosen splits, without summaries."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError, NotFoundError
from tracker.ingest.files.tabular.cells import factorize, read_strings
from tracker.ingest.files.tabular.table import FileTable
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.tables.names.column_headings import find_part_summaries, find_summary_rows, is_side_heading
from tracker.ingest.tables.names.name_shapes import name_kind
from tracker.name_lists import join_names

MAX_NAMES = 5
FILLING = ("worst", "impute")
"""Policies whose scores `suffrage export scores` marks in the column filled_by."""
SETTING = re.compile(r"^\W*(?:\d+|zero|one|few)[\s\-]?shots?\b|^\W*(?:CoT|pass@\d+|maj@\d+)\W*$", re.I)
"""Cells that state how a task was evaluated."""
PART = re.compile(r"^\s*[-–—+└↳•]+\s+")
"""Begins the name of a row that belongs to the title above it."""


def select_rows(table: FileTable, rows: NDArray[np.bool_]) -> FileTable:
    """Return some rows of a table; their places in the file remain known."""
    import pyarrow as pa

    if rows.all():
        return table
    return FileTable(table.path, table.arrow.filter(pa.array(rows)), None, table.lines[rows], table.has_lines)


def select_splits(table: FileTable, roles: Mapping[str, str], options: ReadOptions, *, is_single: bool) -> FileTable:
    """Return the rows of the chosen splits.

    Args:
        table: the table.
        roles: column of each role.
        options: with the chosen splits; empty for all.
        is_single: whether the measurements cannot hold several splits.

    Raises:
        NotFoundError: the table has no such split.
        BadInputError: the table has several splits, and only one can be read.
    """
    if "split" not in roles:
        if options.splits:
            raise BadInputError(table.path, "has no column split.", advice="Name it with --map split=COLUMN.")
        return table
    coded = factorize(table, roles["split"])
    names = [name for name in coded.names if name]
    for split in options.splits:
        if split not in names:
            raise NotFoundError("split", split, names)
    if options.splits:
        return select_rows(table, np.isin(coded.rows, [coded.names.index(split) for split in options.splits]))
    if is_single and len(coded.names) > 1:
        path = shlex.quote(str(table.path))
        commands = [f"  suffrage ingest {path} --split {shlex.quote(name)}" for name in names[:MAX_NAMES]]
        raise BadInputError(
            table.path,
            f"column {roles['split']!r} has several splits: {join_names(names, MAX_NAMES)}. Task scores have one.",
            advice="\n".join(["Choose one:", *commands]),
        )
    return table


def drop_filled(table: FileTable, roles: Mapping[str, str]) -> tuple[FileTable, int]:
    """Return a table without scores that an export put in place of missing ones, and their number.

    Args:
        table: the table.
        roles: column of each role.
    """
    if "filled_by" not in roles:
        return table, 0
    coded = factorize(table, roles["filled_by"])
    is_filled = np.array([name in FILLING for name in coded.names], dtype=np.bool_)[coded.rows]
    return select_rows(table, ~is_filled), int(is_filled.sum())


def describe_filled(n: int, roles: Mapping[str, str]) -> str:
    """Return the warning about scores that `drop_filled` left out."""
    scores = "score that is" if n == 1 else "scores that are"
    return f"left out {n:,} {scores} not measured (column {roles['filled_by']!r})"


def drop_summaries(table: FileTable, column: str) -> tuple[FileTable, list[str]]:
    """Return a table without rows that summarize the others, such as an average, and the names of these rows."""
    names = read_strings(table, column)
    summaries = find_summary_rows(names)
    if len(summaries) in (0, len(names)):
        return table, []
    is_kept = np.ones(len(names), dtype=bool)
    is_kept[summaries] = False
    return select_rows(table, is_kept), names.take(summaries).to_pylist()


def drop_side_rows(table: FileTable, column: str) -> tuple[FileTable, list[str], list[str]]:
    """Return a table of tasks without rows that summarize some tasks or describe the models, and the names of both."""
    names = [str(name or "") for name in read_strings(table, column).to_pylist()]
    summaries = find_part_summaries(names)
    sides = [name for name in names if name not in summaries and name_kind(name) != "task" and is_side_heading(name)]
    is_dropped = np.array([bool(name) and (name in summaries or name in sides) for name in names], dtype=bool)
    if is_dropped.all() or not is_dropped.any():
        return table, [], []
    return (
        select_rows(table, ~is_dropped),
        [name for name in names if name in summaries],
        [name for name in sides if name],
    )


def drop_titles(table: FileTable, column: str, has_scores: NDArray[np.bool_]) -> tuple[FileTable, list[str]]:
    """Return a table without rows that have no scores, such as the titles of groups, and the names of these rows.

    A name such as ``- with CoT`` below a title gets the title: ``Llama with CoT``.

    Args:
        table: the table.
        column: column that names the rows.
        has_scores: ``(n_rows,)``, whether a row has a score.
    """
    import pyarrow as pa

    names = [str(name or "") for name in read_strings(table, column).to_pylist()]
    titles, title = [], ""
    for row, name in enumerate(names):
        part = PART.match(name)
        if not has_scores[row]:
            title = name
            titles.append(name)
        elif part is None:
            title = ""
        elif title:
            names[row] = f"{title.strip('*_ ')} {name[part.end() :]}"
    place = table.names.index(column)
    renamed = table.arrow.set_column(place, table.arrow.field(place).name, pa.array(names, pa.large_string()))
    return select_rows(FileTable(table.path, renamed, None, table.lines, table.has_lines), has_scores), titles


def drop_settings(table: FileTable, columns: Sequence[str]) -> tuple[FileTable, list[str]]:
    """Return a table without rows that state the setting of each column, such as ``25-shot``, and where they are."""
    import pyarrow as pa

    texts = [name for name in columns if "string" in str(table.arrow[name].type)]
    if not texts or not isinstance(table.arrow[texts[0]], pa.ChunkedArray):
        return table, []
    first = [row for row, cell in enumerate(table.arrow[texts[0]].to_pylist()) if cell and SETTING.match(cell)]
    chosen = [row for row in first if all(SETTING.match(table.arrow[name][row].as_py() or "0-shot") for name in texts)]
    if not chosen or len(texts) < len(columns) or len(chosen) == len(table):
        return table, []
    is_kept = np.ones(len(table), dtype=bool)
    is_kept[chosen] = False
    return select_rows(table, is_kept), [table.place(row) for row in chosen]


def describe_rows(names: Sequence[str]) -> str:
    """Return names of rows for a message."""
    return join_names(map(repr, dict.fromkeys(names)), MAX_NAMES)
