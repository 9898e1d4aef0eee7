"""How commands print: data on stdout as table, JSON or CSV; everything else on stderr."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.values.terminal_text import echo, echo_message, make_cell, make_printable
from tracker.queries.findings.grouped_metrics import NamedNumber, group_metrics
from tracker.queries.findings.summary import Summary

if TYPE_CHECKING:
    from tracker.exporting.document_tables import DocumentFormat
    from tracker.recording.pipeline import RecordedFinding

MAX_TEXT_WIDTH = 100
"""Columns that text is wrapped at, on terminals that are wider."""


def inform(text: str) -> None:
    """Print progress or a hint on stderr."""
    echo_message(text)


def warn(text: str) -> None:
    """Print a warning on stderr: yellow on a terminal, unless NO_COLOR is set."""
    label = "Warning:" if os.environ.get("NO_COLOR") else click.style("Warning:", fg="yellow", bold=True)
    echo_message(text, f"{label} ")


def join_lines(text: str | None, longest: int = 100) -> str | None:
    """Join the lines of a text, replace what is not printable, and cut it to a length."""
    if text is None:
        return None
    line = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def print_rows(
    rows: Iterable[Any],
    output_format: str,
    *,
    columns: Sequence[str] | None = None,
    drop_order: Sequence[str] = (),
    if_empty: str = "The result has no rows.",
) -> None:
    """Print rows.

    Args:
        rows: dataclasses, mappings, or sequences (which need ``columns``).
        output_format: table, json or csv.
        columns: names of the columns; by default the fields of the first row.
        drop_order: columns that a table on a narrow terminal omits, the least important first.
        if_empty: message in place of a table without rows.
    """
    records = [_record(row, columns) for row in rows]
    names = list(columns or (records[0] if records else ()))
    if output_format == "json":
        echo(json.dumps([{n: _plain(r[n]) for n in names} for r in records], indent=2, ensure_ascii=False))
    elif output_format == "csv":
        from tracker.exporting.table_files import write_csv

        clean = make_printable if sys.stdout.isatty() else str  # programs get every character
        write_csv(sys.stdout, [names, *([clean(_text(r[n], full=True)) for n in names] for r in records)])
    elif not records:
        inform(if_empty)
    else:
        from tracker.cli.text_table import format_text_table

        cells, numeric = _format_cells(records, names)
        printed, omitted = format_text_table(
            names, cells, numeric=numeric, width=terminal_width(), drop_order=drop_order
        )
        echo(printed)
        if omitted:
            inform(f"Columns omitted to fit the terminal: {', '.join(omitted)}. Add --format csv to see all.")


def print_document(rows: Sequence[Mapping[str, Any]], output_format: DocumentFormat, caption: Sequence[str]) -> None:
    """Print rows as a table for a paper or a web page.

    Args:
        rows: at least one, all with the same names.
        output_format: latex or markdown.
        caption: sentences that say what the table shows, the verdict first.
    """
    from tracker.exporting.document_tables import format_document_table

    names = list(rows[0])
    cells, numeric = _format_cells(rows, names)
    echo(format_document_table(names, cells, output_format, caption=caption, numeric=numeric))


def _format_cells(records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[list[list[str]], set[str]]:
    """Return the cells of each record as texts, and the names of the columns of numbers."""
    numeric = {n for n in names if all(isinstance(r[n], (int, float, Decimal)) or r[n] is None for r in records)}
    return [[make_cell(_text(r[n])) for n in names] for r in records], numeric


def terminal_width() -> int | None:
    """Return the columns of the terminal; None if stdout is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_record(record: Mapping[str, Any], output_format: str) -> None:
    """Print one thing: as JSON, or as a table of names and values."""
    if output_format == "json":
        echo(json.dumps({k: _plain(v) for k, v in record.items()}, indent=2, ensure_ascii=False))
    else:
        print_rows([{"name": k, "value": _text(v, full=True)} for k, v in record.items()], output_format)


def print_summary(summary: Summary) -> None:
    """Print the headline of a finding, a bullet for each piece of evidence, the caveats, then its looks."""
    width = min(MAX_TEXT_WIDTH, shutil.get_terminal_size((MAX_TEXT_WIDTH, 24)).columns)
    paragraphs = [("", summary.headline)]
    paragraphs += [("  - ", item) for item in summary.evidence]
    paragraphs += [("  Caveat: ", item) for item in summary.caveats]
    paragraphs += [("  ", summary.looks)] if summary.looks else []
    for prefix, text in paragraphs:
        indent = "    " if prefix else ""
        echo(textwrap.fill(text, width, initial_indent=prefix, subsequent_indent=indent, break_long_words=False))


def print_numbers(numbers: Sequence[NamedNumber]) -> None:
    """Print the headline numbers of a finding for reading: plain ones, then statistics with what belongs to them."""
    groups = group_metrics(numbers)
    if groups.plain:
        reasons = any(n.reason for n in groups.plain)
        rows = [{"number": n.name, "value": _whole(n.value), "reason": n.reason or ""} for n in groups.plain]
        print_rows(rows, "table", columns=("number", "value", "reason")[: 3 if reasons else 2])
    if groups.plain and groups.statistics:
        echo()
    if groups.statistics:
        rows = [
            {
                "statistic": statistic.number.name,
                "value": statistic.number.value,
                **statistic.beside,
                "reason": statistic.reason or ("discrete" if statistic.is_discrete else ""),
            }
            for statistic in groups.statistics
        ]
        print_rows(rows, "table", columns=list(rows[0])[: None if any(r["reason"] for r in rows) else -1])


def _whole(value: float | None) -> float | int | None:
    return int(value) if value is not None and value.is_integer() else value


def format_value(value: Any) -> str:
    """Format a value for reading: lists with commas, names before their values."""
    return _text(value)


def _record(row: Any, columns: Sequence[str] | None) -> Mapping[str, Any]:
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    if isinstance(row, Mapping):
        return row
    if columns is None:
        raise TypeError("rows that are plain sequences need column names")
    return dict(zip(columns, row, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if hasattr(value, "item"):
        return _plain(value.item())
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _text(value: Any, *, full: bool = False) -> str:
    if isinstance(value, datetime) and not full:
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, Decimal) and value.is_finite() and not full:
        number = _plain(value)
        return str(number) if isinstance(number, int) else f"{number:g}"
    value = _plain(value)
    if value is None:
        return "" if full else "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return (
            repr(value) if full else f"{value:.4g}" if abs(value) >= 1000 or 0 < abs(value) < 1e-3 else f"{value:.4f}"
        )
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(v, full=full) for v in value)
    if isinstance(value, dict):
        if full:
            return json.dumps(value, ensure_ascii=False)
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    return value if isinstance(value, str) else str(value)


def print_recorded(recorded: RecordedFinding) -> None:
    """Print which finding was recorded, and why it was not published."""
    inform(f"Recorded as finding {recorded.finding_id}: `suffrage show {recorded.finding_id}` prints it.")
    if recorded.publishing_problem:
        warn(recorded.publishing_problem)
