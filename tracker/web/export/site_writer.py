"""The files of an export: the pages that the first page leads to, and what their scripts load."""

from __future__ import annotations

import dataclasses
import shutil
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import orjson
from starlette.responses import Response

from tracker.errors import SuffrageError
from tracker.web.application import STATIC_FOLDER, make_error_page
from tracker.web.export.addresses import PROMPT, PROMPT_FILE, Addresses, Target
from tracker.web.export.immediate import ExportCache, ImmediateTasks
from tracker.web.export.links import drop_server_forms, insert_sections, make_links_relative
from tracker.web.export.lists import ROWS_PER_PART, ListWriter, find_list, list_sort_keys, split_rows
from tracker.web.export.markup import Start, Token, encode_tokens, parse_html, write_html
from tracker.web.export.prompt_parts import list_prompt_ids, load_prompt_texts, write_prompt_parts
from tracker.web.export.scope import Scope
from tracker.web.export.search_list import list_search_rows
from tracker.web.page import Page
from tracker.web.query import ROWS_PER_PAGE, Query
from tracker.web.store_cache import Snapshot, StoreCache

STARTS = ("/", "/search", "/findings")
WITHOUT_DATA = frozenset({"compare.html", "prompts.html", "search.html"})
"""Templates of pages whose data only their lists have: as files they would be most of an export."""
MAX_DATA_FILE = 4_000_000
"""Bytes of the largest file of a page's data as JSON or CSV; larger ones are left out."""
N_LEADERS = 5
"""Models of the top of a leaderboard that are compared each with each."""
N_NEIGHBOURS = 50
"""Models of the top of a leaderboard that are compared with the next one."""
PAGE_STEPS = 20
"""Steps of progress of a page, where a prompt is one."""
UNLIMITED = 10**9
MAX_ENCODED_ROWS = 50_000

Progress = Callable[[int, int], None]


class SiteWriter:
    """Writes the files of an export.

    Args:
        cache: of the store.
        snapshot: the state of the store to export.
        scope: benchmarks to export.
        folder: an empty folder.
        progress: takes the done and the total amount.
    """

    def __init__(
        self, cache: StoreCache, snapshot: Snapshot, scope: Scope, folder: Path, progress: Progress | None
    ) -> None:
        self._engine, self._snapshot, self._scope, self._folder = cache.engine, snapshot, scope, folder
        self._progress = progress
        self._cache = ExportCache(cache, snapshot.version)
        self._background = ImmediateTasks(self._cache)
        self._addresses = Addresses()
        self._queue: deque[Target] = deque()
        self._known: set[str] = set()
        self._targets: dict[str, Target] = {}
        self._encoded_rows: dict[tuple[PurePosixPath, str], orjson.Fragment] = {}
        self._data_files: set[str] = set()
        self._models: dict[int, str] = {}
        self._done = 0
        with self._query().session() as session:
            self._prompts = {key: list_prompt_ids(session, key) for key in scope.benchmarks.values()}
        self._prompt_ids = {key for keys in self._prompts.values() for key in keys}

    def write(self) -> int:
        """Write all files; return the number of prompts."""
        shutil.copytree(STATIC_FOLDER, self._folder / "static", ignore=shutil.ignore_patterns("htmx*"))
        for address in STARTS:
            self._resolve(address)
        while self._queue:
            self._write_target(self._queue.popleft())
            self._advance(PAGE_STEPS)
        self._write_search()
        size = write_prompt_parts(
            self._folder, self._query(), self._prompts,
            lambda tokens, page_file: make_links_relative(tokens, page_file, self._resolve), self._advance,
        )  # fmt: skip
        shell = Page(title="Prompt", template="static_prompt.html", data={"part_size": size})
        self._write_page(Target(file=PROMPT_FILE), parse_html(shell.render("/", is_static=True)))
        return len(self._prompt_ids)

    def _query(self, target: Target | None = None, rows_per_page: int = ROWS_PER_PAGE, **more: str) -> Query:
        return Query(
            engine=self._engine,
            snapshot=self._snapshot,
            cache=self._cache,
            background=self._background,
            key=0 if target is None else target.key,
            name="" if target is None else target.name,
            parameters=more if target is None else {**target.parameters, **more},
            rows_per_page=rows_per_page,
            excluded=self._scope.excluded,
        )

    def _resolve(self, address: str) -> Target | None:
        """Return the file of an address, and have it written; None if the export has none."""
        target = self._targets.get(address)
        if target is None:
            target = self._addresses.find(address)
            if target is None or not self._scope.covers(target):
                return None
            self._targets[address] = target
        if target.route is not None and target.route.path == PROMPT:
            return target if target.key in self._prompt_ids else None
        if target.suffix != "html":
            return target if target.file in self._data_files else None
        if target.route is not None and target.file not in self._known:
            self._known.add(target.file)
            self._queue.append(target)
        return target

    def _advance(self, steps: int) -> None:
        self._done += steps
        if self._progress is not None:
            waiting = PAGE_STEPS * len(self._queue)
            n_pages = PAGE_STEPS * (len(self._known) - len(self._queue))
            total = max(n_pages + waiting + len(self._prompt_ids), self._done)
            self._progress(self._done, total)

    def _show(self, target: Target, rows_per_page: int = ROWS_PER_PAGE, **more: str) -> Page | Response:
        """Return the page of the server; that of the error if there is one."""
        assert target.route is not None
        if self._scope.excluded and not target.is_list:
            rows_per_page = UNLIMITED  # paging follows the restriction
        try:
            page = target.route.show(self._query(target, rows_per_page, **more))
        except SuffrageError as error:
            return make_error_page(error)
        if isinstance(page, Response):
            return page
        if pairs := self._list_comparisons(target, page):
            page = dataclasses.replace(page, data={**page.data, "exported_pairs": pairs})
        return self._scope.restrict(page)

    def _list_comparisons(self, target: Target, page: Page) -> list[tuple[str, str]]:
        """Return the pairs of models that are compared, and have their pages written; none for another page."""
        ranked = page.data.get("available", ()) if page.template == "compare.html" else ()
        pairs = list(dict.fromkeys([*combinations(ranked[:N_LEADERS], 2), *pairwise(ranked[:N_NEIGHBOURS])]))
        for pair in pairs:
            self._addresses.allow_comparison(pair)
        return pairs

    def _write_target(self, target: Target) -> None:
        """Write the files of a page."""
        page = self._show(target)
        if isinstance(page, Response):
            self._write_file(target.file, bytes(page.body))
            return
        if page.template == "model.html":
            self._models[target.key] = page.data["model"]["name"]
        if page.template == "search.html":
            return  # at the end, when all models are known
        writer = ListWriter(self._folder, target) if target.is_list and "paging" in page.data else None
        complete = page if writer is None else self._write_list(target, page, writer)
        if not self._write_data(target, complete):
            page = dataclasses.replace(page, table="")
        tokens = insert_sections(parse_html(page.render(target.address, is_static=True)), self._load_section)
        if writer is not None:
            mark_list(tokens, writer)
        self._write_page(target, tokens)

    def _load_section(self, address: str) -> Sequence[Token] | None:
        """Return the page that has a section which the server would send later."""
        target = self._resolve(address)
        page = None if target is None else self._show(target)
        if target is None or not isinstance(page, Page):
            return None
        return parse_html(page.render(target.address, is_static=True))

    def _write_list(self, target: Target, page: Page, writer: ListWriter) -> Page:
        """Write all rows of a list; return the page with all records."""
        assert target.route is not None
        records: list[Mapping[str, Any]] = []
        n_parts = -(-page.data["paging"]["n_rows"] // ROWS_PER_PART)
        for number in range(1, n_parts + 1):
            part = self._show(target, ROWS_PER_PART, page=str(number))
            assert isinstance(part, Page)
            self._add_rows(writer, target, part, self._load_texts(part))
            records += part.data[part.table]
        writer.finish()
        paging = {"page": 1, "n_pages": 1, "first": min(1, len(records)), "last": len(records), "n_rows": len(records)}
        return dataclasses.replace(page, data={**page.data, page.table: records, "paging": paging})

    def _load_texts(self, part: Page) -> Sequence[str]:
        """Return the questions of a part of a list of prompts; none for another list."""
        if part.template != "prompts.html":
            return ()
        with self._query().session() as session:
            return load_prompt_texts(session, [record["id"] for record in part.data[part.table]])

    def _add_rows(
        self, writer: ListWriter, target: Target, part: Page, texts: Sequence[str], columns: Sequence[str] = ()
    ) -> None:
        """Add the rows of a page, as its template writes them, to a list."""
        head, rows = split_rows(part.render(target.address, is_static=True))
        records = part.data[part.table]
        if len(rows) != len(records):
            raise ValueError(f"{part.template} shows {len(rows)} of {len(records)} rows")
        encoded = [self._encode_row(row, target.file) for row in rows]
        writer.add(records, encoded, [*columns, *list_sort_keys(parse_html(head))], texts)

    def _encode_row(self, row: str, page_file: str) -> orjson.Fragment:
        """Return the JSON of a row's tokens; comparisons share most of their rows."""
        key = (PurePosixPath(page_file).parent, row)
        if key not in self._encoded_rows:
            if len(self._encoded_rows) >= MAX_ENCODED_ROWS:
                self._encoded_rows.clear()
            tokens = make_links_relative(parse_html(row), page_file, self._resolve)
            self._encoded_rows[key] = orjson.Fragment(orjson.dumps(encode_tokens(tokens)))
        return self._encoded_rows[key]

    def _write_search(self) -> None:
        """Write the search: names and questions as one list, of which the script shows what contains a text."""
        target = self._addresses.find("/search")
        assert target is not None
        shell = self._show(target)
        assert isinstance(shell, Page)
        page = dataclasses.replace(shell, table="")
        writer = ListWriter(self._folder, target)
        for rows, texts in list_search_rows(self._query(), self._scope.benchmarks, self._models, self._prompts):
            # with a text, as those of results: without one the template shows no list
            page = dataclasses.replace(shell, data={**shell.data, "q": " ", "rows": rows}, table="rows")
            self._add_rows(writer, target, page, texts, ["kind"])
        writer.finish(per_kind=shell.data["max_found"])
        tokens = parse_html(dataclasses.replace(page, table="").render("/search", is_static=True))
        mark_list(tokens, writer, keep_rows=False)
        self._write_page(target, tokens)

    def _write_data(self, target: Target, page: Page) -> bool:
        """Write the data of a page as JSON and CSV; return False, and write none, if that is too large."""
        if not page.table or page.template in WITHOUT_DATA:
            return False
        contents = {suffix: bytes(page.respond(suffix, "").body) for suffix in ("json", "csv")}
        if max(map(len, contents.values())) > MAX_DATA_FILE:
            return False
        for suffix, content in contents.items():
            file = f"{target.file.removesuffix('.html')}.{suffix}"
            self._write_file(file, content)
            self._data_files.add(file)
        return True

    def _write_page(self, target: Target, tokens: Sequence[Token]) -> None:
        complete = make_links_relative(drop_server_forms(tokens, self._resolve), target.file, self._resolve)
        self._write_file(target.file, f"<!doctype html>\n{write_html(complete)}".encode())

    def _write_file(self, name: str, content: bytes) -> None:
        place = self._folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def mark_list(tokens: list[Token], writer: ListWriter, *, keep_rows: bool = True) -> None:
    """Name the data of a list in its element."""
    rows_list = find_list(tokens)
    if rows_list is None:
        return
    start = tokens[rows_list.start]
    assert isinstance(start, Start)
    start.attributes |= writer.attributes(ROWS_PER_PAGE)
    if not keep_rows:
        del tokens[rows_list.rows[0][0] : rows_list.rows[-1][1]]
