"""The layout of a table that a format reads, and messages about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.tables.evidence import COLUMNS, ROWS
from tracker.ingest.tables.find_layout import find_layout
from tracker.ingest.tables.layout import TableLayout, TableRejection
from tracker.ingest.tables.names.column_headings import is_summary_heading, mentions_summary
from tracker.ingest.tables.table_columns import list_names
from tracker.name_lists import join_names

MAX_NAMES = 5
MAX_SKIPPED = 8


def require_layout(path: Path, options: ReadOptions, format: str) -> TableLayout:
    """Return the layout of a table that is read by a format.

    Raises:
        BadInputError: the table has no layout of this format.
    """
    layout = _find(path, options, format)
    if isinstance(layout, TableLayout):
        return layout
    if isinstance(layout, TableRejection):
        raise BadInputError(path, _sentence(layout.problem), advice=layout.advice)
    raise BadInputError(path, _sentence(layout))


def _find(path: Path, options: ReadOptions, format: str) -> TableLayout | TableRejection | str:
    """Return the detected layout if it is of the format, else the layout that the format imposes."""
    detected = find_layout(path, options)
    if isinstance(detected, TableLayout) and detected.format == format:
        return detected
    return find_layout(path, options, format)


def describe_layout(path: Path, options: ReadOptions, format: str) -> str | None:
    """Return how a table is read, in one line; None if it cannot be read."""
    layout = _find(path, options, format)
    if not isinstance(layout, TableLayout):
        return None
    parts = [f"{role} = {column or '(unnamed)'}" for role, column in layout.roles.items()]
    if layout.orientation == "long":
        parts = [f"each row is a score; {', '.join(parts)}"]
        parts += [f"scores = {list_names(layout.values, MAX_NAMES)}"] if "score" not in layout.roles else []
    elif layout.format == "prompt-table":
        parts = [f"each row is a prompt; {', '.join(parts)}"]
    else:
        rows, columns = ROWS[layout.orientation], COLUMNS[layout.orientation]
        parts = [
            f"each row is a {rows} (column {layout.key or '(unnamed)'})",
            f"{columns}s = {list_names(layout.values, MAX_NAMES)}",
        ]
    if layout.stderr:
        parts.append(f"standard errors = {list_names(list(layout.stderr.values()), MAX_NAMES)}")
    if layout.details:
        parts.append(f"details = {list_names(layout.details, MAX_NAMES)}")
    if layout.skipped:
        parts.append(f"skipped = {list_names(layout.skipped, MAX_NAMES)}")
    return "; ".join(parts)


def warn_of_columns(layout: TableLayout) -> Iterator[str]:
    """Yield which columns were not read, or only as details."""
    averages = [name for name in layout.skipped if is_summary_heading(name) or mentions_summary(name)]
    if averages:
        yield f"skipped averages: {_join(averages)} (--task-columns stores them)"
    if empty := [name for name in layout.skipped if name not in averages]:
        yield f"skipped columns without scores: {_join(empty)}"
    if layout.details and layout.orientation == "leaderboard":
        yield f"stored as details of the models, not as tasks: {_join(layout.details)}"


def _join(names: Sequence[str]) -> str:
    return join_names((name or "(unnamed)" for name in names), MAX_SKIPPED)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
