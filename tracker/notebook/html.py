"""A result as HTML for notebooks, in the colours of the notebook, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 25
"""Rows in the HTML; data frames have all."""
MAX_COLUMNS = 14
MAX_TEXT = 120
CLASS = ".suffrage-result"
STYLE = "\n".join(
    (
        f"{CLASS}, {CLASS} table {{ color: inherit; background: transparent; border-collapse: collapse }}",
        f"{CLASS} th, {CLASS} td {{ text-align: left; padding: .15em .6em; color: inherit; background: transparent }}",
        f"{CLASS} th, {CLASS} td {{ border: 0; border-bottom: 1px solid }}",
        f"{CLASS} .number {{ text-align: right }}",
        f"{CLASS} > div {{ overflow-x: auto }}",
    )
)
"""No colours: the text has that of the notebook, light or dark, and so have the lines."""


def render_result(headline: str, details: Sequence[str], table: pa.Table) -> str:
    """Return a result as HTML without scripts or colours; every text is escaped.

    Args:
        headline: the verdict; it is the first line.
        details: further sentences.
        table: its first rows follow.
    """
    items = "".join(f"<li>{escape(detail)}</li>" for detail in details if detail)
    parts = [
        '<div class="suffrage-result">',
        f"<p><strong>{escape(headline)}</strong></p>",
        f"<ul>{items}</ul>" if items else "",
        _render_table(table) if table.num_rows else "",
        f"<style>{STYLE}</style>",
        "</div>",
    ]
    return "\n".join(part for part in parts if part)


def _render_table(table: pa.Table) -> str:
    columns = {
        place: table.column(place).slice(0, MAX_ROWS).to_pylist()
        for place in range(table.num_columns)
        if any(value not in (None, "") for value in table.column(place).slice(0, MAX_ROWS).to_pylist())
    }
    places = [*columns][:MAX_COLUMNS]
    classes = [' class="number"' if _is_numeric(columns[place]) else "" for place in places]
    titles = "".join(
        f"<th{kind}>{escape(table.column_names[place])}</th>" for place, kind in zip(places, classes, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(_format_cell(value))}</td>" for value, kind in zip(row, classes, strict=True))
        + "</tr>\n"
        for row in zip(*(columns[place] for place in places), strict=True)
    )
    omitted = []
    if table.num_rows > MAX_ROWS:
        omitted.append(f"{table.num_rows - MAX_ROWS:,} more rows")
    if len(columns) > MAX_COLUMNS:
        omitted.append(f"{len(columns) - MAX_COLUMNS:,} more columns")
    more = f"<p>and {' and '.join(omitted)}: <code>.to_pandas()</code></p>" if omitted else ""
    return f"<div><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>{more}"


def _is_numeric(values: Sequence[Any]) -> bool:
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _format_cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) >= 1000 or 0 < abs(value) < 1e-3 else f"{value:.4f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
