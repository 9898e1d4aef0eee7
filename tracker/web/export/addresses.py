"""Which file stands for which address of the server.

Names of files have fixed words, keys and numbers, never names in the data.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from tracker.web.application import PAGES, PageRoute

PROMPT = "/prompt/{key}"
PROMPT_FILE = "prompt.html"
SEARCH = "/search"
NEED_STORE = frozenset({"/sql", "/run/{key}/responses"})
"""Routes whose pages only a server has."""
STATIC_VARIANTS = frozenset({"metric", "benchmark", "analysis", *"abcde"})
"""Query parameters with a file for each value that the pages link to."""
DROPPED: Mapping[str, Collection[str]] = {"/benchmark/{key}/history": ("model",)}
"""Query parameters without which a page shows more, by route: links lead to the larger page."""
SORTED = frozenset({"sort", "order"})
STATIC = "/static/"
CONVERTOR = re.compile(r"{(\w+):\w+}")
"""A part of a route's path with the type of its value; the paths of this module have parts without types."""


@dataclass(frozen=True, kw_only=True)
class ColumnFilter:
    """How the script applies a query parameter to a list.

    Attributes:
        kind: ``contains``, ``equals``, ``least``, ``most``, or ``text`` for the text of a row.
        column: of the list's columns.
    """

    kind: str
    column: str = ""

    def as_record(self) -> dict[str, str]:
        """Return what the script reads."""
        return {"kind": self.kind, "column": self.column}


LIST_FILTERS: Mapping[str, Mapping[str, ColumnFilter]] = {
    "/benchmark/{key}": {
        "model": ColumnFilter(kind="contains", column="model"),
        "family": ColumnFilter(kind="equals", column="family"),
    },
    "/benchmark/{key}/prompts": {
        "q": ColumnFilter(kind="text"),
        "task": ColumnFilter(kind="equals", column="task"),
        "from": ColumnFilter(kind="least", column="mean"),
        "to": ColumnFilter(kind="most", column="mean"),
        "disagreement": ColumnFilter(kind="least", column="spread"),
        "decision": ColumnFilter(kind="equals", column="decision"),
    },
    "/benchmark/{key}/compare": {},
    "/finding/{key}/table/{name}": {},
    SEARCH: {"q": ColumnFilter(kind="text")},
}
"""Filters of the lists that a script sorts, filters and divides into pages, by route."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A file that stands for an address.

    Attributes:
        file: its path in the export.
        route: of the page; None for a file that is no page.
        key, name, parameters: of the request for the page.
        suffix: ``html``, ``json`` or ``csv``.
        query: query parameters that the script of the page reads.
    """

    file: str
    route: PageRoute | None = None
    key: int = 0
    name: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    suffix: str = "html"
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_list(self) -> bool:
        """Whether a script sorts, filters and divides its list."""
        return self.route is not None and self.route.path in LIST_FILTERS

    @property
    def address(self) -> str:
        """The server's address of the page."""
        assert self.route is not None
        path = self.route.path.replace("{key}", str(self.key)).replace("{name}", quote(self.name, safe=""))
        return f"{path}?{urlencode(self.parameters)}" if self.parameters else path


class Addresses:
    """The files of an export, by the addresses of the server that they stand for.

    Args:
        routes: of the server.
    """

    def __init__(self, routes: Sequence[PageRoute] = PAGES) -> None:
        plain = [dataclasses.replace(route, path=CONVERTOR.sub(r"{\1}", route.path)) for route in routes]
        self._patterns = [(_compile(route.path), route) for route in plain if route.path not in NEED_STORE]
        self._numbers: dict[str, dict[Any, int]] = {}
        self._comparisons: set[tuple[str, ...]] = set()

    def allow_comparison(self, models: Sequence[str]) -> None:
        """Let a comparison of models have a file; without that, links to it lead nowhere."""
        self._comparisons.add(tuple(models))

    def find(self, address: str) -> Target | None:
        """Return the file that stands for an address; None if only the server has the page."""
        path, _, query = address.partition("?")
        if path.startswith(STATIC):
            return Target(file=path.removeprefix("/"))
        parameters = {name: value for name, value in parse_qsl(query) if value}
        for suffix in ("json", "csv", "html"):
            place = path if suffix == "html" else path.removesuffix(f".{suffix}")
            if suffix != "html" and place == path:
                continue
            place = "/" if place == "/index" else place
            for pattern, route in self._patterns:
                if (match := pattern.fullmatch(place)) and (suffix == "html" or route.has_formats):
                    return self._make_target(route, match.groupdict(), parameters, suffix)
        return None

    def _make_target(
        self, route: PageRoute, parts: Mapping[str, str], parameters: dict[str, str], suffix: str
    ) -> Target | None:
        key, name = int(parts.get("key", 0)), unquote(parts.get("name", ""))
        if route.path == PROMPT:
            is_page = suffix == "html" and not parameters
            return Target(file=PROMPT_FILE, route=route, key=key, query={"id": str(key)}) if is_page else None
        is_list = route.path in LIST_FILTERS
        in_script = {*LIST_FILTERS.get(route.path, ()), "page"} | (SORTED & set(route.options)) if is_list else set()
        read = {name: value for name, value in parameters.items() if name in in_script}
        unused = {*in_script, *DROPPED.get(route.path, ())}
        fixed = {name: value for name, value in parameters.items() if name not in unused}
        if not is_list and fixed.get("page") == "1":
            del fixed["page"]
        if not set(fixed) <= STATIC_VARIANTS | {"page"} or not set(fixed) <= set(route.options):
            return None
        models = tuple(fixed[letter] for letter in "abcde" if letter in fixed)
        if models and models not in self._comparisons:
            return None
        return Target(
            file=self._name_file(route, key, name, fixed, suffix), route=route, key=key, name=name,
            parameters=fixed, suffix=suffix, query=read if suffix == "html" else {},
        )  # fmt: skip

    def _name_file(self, route: PageRoute, key: int, name: str, fixed: Mapping[str, str], suffix: str) -> str:
        """Return the path of a file: that of the address, with a number for each name and each set of parameters."""
        path = route.path.replace("{key}", str(key))
        if "{name}" in path:
            path = path.replace("/{name}", f"-{self._number(path, name)}")
        stem, dot, ending = path.removeprefix("/").partition(".")
        number = self._number(f"{stem}?", tuple(sorted(fixed.items()))) if fixed else 1
        stem = (stem or "index") + (f"-{number}" if number > 1 else "")
        return f"{stem}.{ending if dot else suffix}"

    def _number(self, place: str, value: Any) -> int:
        known = self._numbers.setdefault(place, {(): 1} if place.endswith("?") else {})
        return known.setdefault(value, len(known) + 1)


def link_to(target: Target, page_file: str) -> str:
    """Return the relative address of a file, as seen from another file."""
    place = _relate(target.file, posixpath.dirname(page_file) or ".")
    return f"{place}?{urlencode(target.query)}" if target.query else place


@lru_cache(maxsize=10_000)
def _relate(file: str, folder: str) -> str:
    return posixpath.relpath(file, folder)


def list_parameters(route: PageRoute) -> Collection[str]:
    """Return the query parameters that the script of a page reads; none for a page without a list."""
    if route.path not in LIST_FILTERS:
        return ()
    return {*LIST_FILTERS[route.path], *(SORTED & set(route.options))}


def _compile(path: str) -> re.Pattern[str]:
    expression = re.escape(path).replace(re.escape("{key}"), r"(?P<key>[0-9]{1,18})")
    return re.compile(expression.replace(re.escape("{name}"), "(?P<name>[^/]+)"))
