"""Side columns of a leaderboard as details of its models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from tracker.ingest.files.tabular.cells import is_missing, read_strings
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
