"""Long lists as data: rows in parts, and the columns by which a script sorts and filters them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import orjson

from tracker.web.export.addresses import LIST_FILTERS, Target
from tracker.web.export.markup import Start, Token, find_elements

ROWS_PER_PART = 1_000
SORT_COLUMNS = {"prompt": "id"}
"""Columns of sort keys with another name."""


@dataclass(frozen=True, kw_only=True)
class FoundList:
    """The list of a page.

    Attributes:
        start: place of the start tag of the element whose children are the rows.
        rows: begin and end of each row.
    """

    start: int
    rows: Sequence[tuple[int, int]]


def write_compressed(path: Path, data: Any) -> int:
    """Write data as compressed JSON, the same bytes for the same data; return their number."""
    content = gzip.compress(orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS, default=str), compresslevel=6, mtime=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return len(content)


def find_list(tokens: Sequence[Token]) -> FoundList | None:
    """Return the list of a page: the table before its paging, or the results of a search; None without one."""
    parts = list(find_elements(tokens, "ul", {"class": "found"}))
    child = "li"
    if paging := list(find_elements(tokens, "p", {"class": "pages"})):
        parts, child = list(find_elements(tokens[: paging[-1][0]], "tbody", {})), "tr"
    if not parts:
        return None
    begin, end = parts[-1]
    rows = [(begin + 1 + low, begin + 1 + high) for low, high in find_elements(tokens[begin + 1 : end], child, {})]
    return FoundList(start=begin, rows=rows)


def split_rows(text: str) -> tuple[str, list[str]]:
    """Return the HTML of a page before the rows of its list, and that of each row; the list is that of `find_list`."""
    paging = text.rfind('<p class="pages">')
    start, end, tag = ("<tbody>", "</tbody>", "tr") if paging >= 0 else ('<ul class="found">', "</ul>", "li")
    stop = text.rfind(end, 0, paging if paging >= 0 else len(text))
    begin = text.rfind(start, 0, max(stop, 0))
    if begin < 0:
        return text, []
    return text[:begin], re.findall(rf"<{tag}\b.*?</{tag}>", text[begin + len(start) : stop], re.DOTALL)


def list_sort_keys(tokens: Sequence[Token]) -> list[str]:
    """Return the keys by which the heads of a list sort it."""
    keys: dict[str, None] = {}
    for token in tokens:
        if isinstance(token, Start) and "sort=" in (address := token.attributes.get("href") or ""):
            keys |= dict.fromkeys(value for name, value in parse_qsl(address.partition("?")[2]) if name == "sort")
    return list(keys)


class ListWriter:
    """Writes the rows of a list in parts.

    Args:
        folder: of the export.
        target: file of the page.
    """

    def __init__(self, folder: Path, target: Target) -> None:
        self.stem = target.file.removesuffix(".html")
        self._folder, self._target = folder, target
        self._rows: list[Any] = []
        self._texts: list[str] = []
        self._columns: dict[str, list[Any]] = {}
        self.n_rows = self.n_parts = 0

    def add(
        self, records: Sequence[Mapping[str, Any]], rows: Sequence[Any], keys: Sequence[str], texts: Sequence[str] = ()
    ) -> None:
        """Add rows.

        Args:
            records: data of the rows.
            rows: their encoded tokens.
            keys: sort keys.
            texts: what a search for a text looks at.
        """
        assert self._target.route is not None
        filters = LIST_FILTERS[self._target.route.path].values()
        for name in dict.fromkeys([*keys, *(filter(None, (rule.column for rule in filters)))]):
            column = SORT_COLUMNS.get(name, name)
            if all(column in record for record in records):
                self._columns.setdefault(name, []).extend(record[column] for record in records)
        for number, row in enumerate(rows):
            self._rows.append(row)
            self._texts += [texts[number]] if texts else []
            if len(self._rows) == ROWS_PER_PART:
                self._write_part()
        self.n_rows += len(rows)

    def finish(self, **options: Any) -> None:
        """Write the last part and the columns."""
        if self._rows:
            self._write_part()
        assert self._target.route is not None
        filters = {name: rule.as_record() for name, rule in LIST_FILTERS[self._target.route.path].items()}
        data = {"columns": self._columns, "filters": filters, **options}
        write_compressed(self._folder / f"{self.stem}-columns.json.gz", data)

    def _write_part(self) -> None:
        data = {"rows": self._rows} | ({"texts": self._texts} if self._texts else {})
        write_compressed(self._folder / f"{self.stem}-rows-{self.n_parts}.json.gz", data)
        self._rows, self._texts = [], []
        self.n_parts += 1

    def attributes(self, rows_per_page: int) -> dict[str, str]:
        """Return the attributes of the list's element that the script reads."""
        return {
            "data-list": self.stem.rpartition("/")[2], "data-rows": str(self.n_rows),
            "data-part": str(ROWS_PER_PART), "data-page": str(rows_per_page),
        }  # fmt: skip
