"""A page: its data, as HTML, JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.responses import Response

from tracker.exporting.text_rows import FORMULA
from tracker.web.templates_environment import render_template

FORMATS = ("html", "json", "csv")
"""Formats of a page, by suffix of its address; without one it is HTML."""
BYTE_ORDER_MARK = "\ufeff"
"""Makes a spreadsheet read UTF-8."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page shows; every format has the same data.

    Attributes:
        title: of the window and the page.
        template: name of its HTML template.
        data: its data by name, of types that JSON knows.
        table: name of the list of records in ``data`` that CSV has.
        trail: names and addresses of the pages above it.
        status: HTTP status.
    """

    title: str
    template: str
    data: Mapping[str, Any]
    table: str = ""
    trail: Sequence[tuple[str, str]] = field(default=())
    status: int = 200

    def respond(self, format_name: str, address: str, *, for_spreadsheets: bool = False) -> Response:
        """Return the page in one format.

        Args:
            format_name: one of `FORMATS`.
            address: path of the page without suffix, with its query.
            for_spreadsheets: of CSV, whether texts that look like a formula get a leading apostrophe.
        """
        if format_name == "json":
            return Response(_to_json({"title": self.title, **self.data}), self.status, media_type="application/json")
        if format_name == "csv":
            rows = _to_csv(self.data[self.table], for_spreadsheets)
            return Response(rows, self.status, media_type="text/csv; charset=utf-8")
        return Response(self.render(address), self.status, media_type="text/html; charset=utf-8")

    def render(self, address: str, *, is_static: bool = False) -> str:
        """Return the page as HTML.

        Args:
            address: path of the page without suffix, with its query.
            is_static: whether it becomes a file of an export, without a server behind it.
        """
        values = {"page": self, "address": address, "is_static": is_static, **self.data}
        return render_template(self.template, values)


def _to_json(data: Mapping[str, Any]) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2, default=str)


def _to_csv(rows: Sequence[Mapping[str, Any]], for_spreadsheets: bool) -> bytes:
    """Return records as CSV; a value that is not a number or text is JSON."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_to_cell(name, for_spreadsheets) for name in columns])
    for row in rows:
        writer.writerow([_to_cell(row.get(name), for_spreadsheets) for name in columns])
    return (BYTE_ORDER_MARK if for_spreadsheets else "").encode() + out.getvalue().encode()


def _to_cell(value: Any, for_spreadsheets: bool) -> Any:
    if isinstance(value, list | tuple | dict):
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str).decode()
    return f"'{value}" if for_spreadsheets and isinstance(value, str) and value.startswith(FORMULA) else value
