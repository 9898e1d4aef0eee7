"""Side columns of a leaderboard as details of its models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any

from tracker.ingest.files.tabular.cells import is_missing, is_number, read_strings
from tracker.ingest.files.tabular.headings import normalize_heading
from tracker.ingest.files.tabular.model_facts import parse_parameters, parse_release_date
from tracker.ingest.files.tabular.number_cells import MEDALS
from tracker.ingest.files.tabular.table import FileTable
from tracker.ingest.tables.names.column_headings import clean_heading

LINK = re.compile(r"^<a\b[^>]*>(?P<html>[^<]+)</a>$", re.I)
INNER_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?:[^()]|\([^()]*\))*\)")
ORNAMENTS = re.compile(rf"^[\s*{MEDALS}\ufe0f]+|[\s*{MEDALS}\ufe0f]+$")
PARAMETERS = re.compile(
    r"^#?\s*(?:num(?:ber)?[\s_](?:of[\s_])?)?param(?:eter)?s?\s*(?:\((?P<unit>[kmbt])\w*\)|[\s_](?P<word>[kmbt]))?$",
    re.I,
)
ORGANIZATIONS = ("organization", "organisation", "org", "developer", "provider", "company", "creator", "vendor")
RELEASES = ("released", "release_date", "release", "date_released")
MAX_LENGTH = 200
DATE = re.compile(r"\d{4}[-/_.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|https?://")


def clean_model_name(name: str) -> str:
    """Return the name of a model without medals, bold print and link."""
    plain = INNER_LINK.sub(r"\g<text>", ORNAMENTS.sub("", name))
    match = LINK.match(plain)
    return ORNAMENTS.sub("", match["html"] if match is not None else plain)


def read_model_details(table: FileTable, columns: Sequence[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the facts and the further details of the model in each row.

    Args:
        table: the table.
        columns: its side columns.
    """
    facts: list[dict[str, Any]] = [{} for _ in range(len(table))]
    details: list[dict[str, Any]] = [{} for _ in range(len(table))]
    for name in columns:
        heading = clean_heading(name) or "(unnamed)"
        fact = _fact_of(heading)
        for row, cell in enumerate(read_strings(table, name).to_pylist()):
            if is_missing(cell):
                continue
            details[row][heading] = cell if len(cell) <= MAX_LENGTH else cell[: MAX_LENGTH - 1] + "…"
            value = None if fact is None else _parse_fact(fact, heading, cell)
            if fact is not None and value is not None:
                facts[row][fact] = value
    return facts, details


def name_variants(table: FileTable, key: str, details: Sequence[str]) -> tuple[FileTable, str, list[str]]:
    """Return a table in which models that share a name are distinguished by a side column, such as their sizes.

    Args:
        table: the table.
        key: column of the models.
        details: its side columns.

    Returns:
        The table, the column, and the new names; '' and no names if no column distinguishes all of them.
    """
    import pyarrow as pa

    names = [str(name or "") for name in read_strings(table, key).to_pylist()]
    counts = Counter(names)
    rows = [row for row, name in enumerate(names) if name and counts[name] > 1]
    columns = [(column, _read_cells(table, column)) for column in details] if rows else []
    for column, cells in [*columns, *((column, _fill_spans(cells)) for column, cells in columns)]:
        if not _is_kind(column, cells) or len({(names[row], cells[row]) for row in rows}) < len(rows):
            continue
        match = PARAMETERS.match(clean_heading(column))
        unit = (match["unit"] or match["word"] or "").upper() if match is not None else ""
        for row in rows:
            cell = cells[row]
            suffix = f" ({cell}{unit if cell[-1:].isdigit() else ''})" if cell else ""
            names[row] = f"{clean_model_name(names[row])}{suffix}"
        place = table.names.index(key)
        renamed = table.arrow.set_column(place, table.arrow.field(place).name, pa.array(names, pa.large_string()))
        variants = FileTable(table.path, renamed, None, table.lines, table.has_lines)
        return variants, column, [names[row] for row in rows]
    return table, "", []


def _read_cells(table: FileTable, column: str) -> list[str | None]:
    return [None if is_missing(cell) else str(cell) for cell in read_strings(table, column).to_pylist()]


def _fill_spans(cells: Sequence[str | None]) -> list[str | None]:
    """Return cells with the one above for each missing one, as in a table whose cells span several rows."""
    filled: list[str | None] = []
    for cell in cells:
        filled.append(cell if cell is not None or not filled else filled[-1])
    return filled


def _is_kind(column: str, cells: Sequence[str | None]) -> bool:
    """Return whether a column is of parameters, or has texts of which some occur more than once."""
    if PARAMETERS.match(clean_heading(column)):
        return True
    present = [cell for cell in cells if cell is not None]
    has_numbers = any(is_number(cell) or DATE.search(cell) for cell in present)
    return bool(present) and not has_numbers and len(set(present)) < len(present)


def _fact_of(heading: str) -> str | None:
    plain = normalize_heading(heading)
    if PARAMETERS.match(heading):
        return "parameters"
    return "organization" if plain in ORGANIZATIONS else "released" if plain in RELEASES else None


def _parse_fact(fact: str, heading: str, cell: str) -> str | int | date | None:
    if fact == "organization":
        return cell
    if fact == "released":
        return parse_release_date(cell)
    match = PARAMETERS.match(heading)
    unit = (match["unit"] or match["word"] or "") if match is not None else ""
    has_unit = cell[-1:].lower() in "kmbt" and not cell[-1:].isdigit()
    return parse_parameters(cell if has_unit else f"{cell}{unit}")
