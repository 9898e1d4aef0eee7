"""Every kind of page and link, in a real browser: simulated results, real ones, and hostile texts everywhere."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin

import pytest
import requests
from browser import chromium
from browser_visitor import STRUCTURE, Visitor
from click.testing import CliRunner
from hostile_store import fill_hostile_everywhere
from web_server import serving

from tracker.cli import suffrage
from tracker.database import connect

MAX_WITH_PARAMETERS, MAX_WITHOUT = 15, 100
"""Addresses of one kind that are requested."""
MAX_OPENED = 8
"""Addresses of one kind of page without parameters that are opened in the browser; one with parameters."""


class Links(HTMLParser):
    """The addresses that a page leads to, without those of its look."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [
            value
            for name, value in attributes
            if name in ("href", "src", "action", "hx-get", "data-href") and value and not value.startswith("#")
        ]


def kind_of(address: str) -> str:
    """An address without its keys and the values of its parameters."""
    path, _, query = address.partition("?")
    path = re.sub(r"/(table|figure)/.*?(\.json|\.csv|\.png|$)", r"/\1/NAME\2", re.sub(r"\d+", "N", path))
    return f"{path}?{','.join(sorted(name for name, _ in parse_qsl(query, keep_blank_values=True)))}"


def crawl(site: str) -> tuple[dict[str, list[str]], list[str]]:
    """Request every kind of address that pages lead to; return the addresses of each kind, and what is wrong.

    Every response has to be 200, and every JSON and CSV the same rows.
    """
    problems: list[str] = []
    kinds: dict[str, list[str]] = defaultdict(list)
    seen, queue = {"/"}, ["/"]
    with requests.Session() as session:
        while queue:
            address = queue.pop(0)
            kind = kind_of(address)
            if len(kinds[kind]) >= (MAX_WITHOUT if kind.endswith("?") else MAX_WITH_PARAMETERS):
                continue
            kinds[kind].append(address)
            response = session.get(site + address, timeout=120)
            if response.status_code != 200:
                problems.append(f"{address[:300]}: {response.status_code} {response.text[-600:]}")
            if not response.headers["content-type"].startswith("text/html"):
                continue
            links = [urljoin(address, place) for place in Links(response.text).addresses]
            problems += [
                f"{address}: leads to {place}" for place in links if not place.startswith("/") or place.startswith("//")
            ]
            queue += [place for place in dict.fromkeys(links) if place not in seen]
            seen |= set(links)
        for kind, addresses in kinds.items():
            if ".csv" in kind and "for_spreadsheets" not in kind:
                problems += [
                    f"{address[:300]}: JSON and CSV differ"
                    for address in dict.fromkeys((addresses[0], addresses[-1]))
                    if not have_same_rows(session, site, address)
                ]
    return dict(kinds), problems


def have_same_rows(session: requests.Session, site: str, address: str) -> bool:
    """Whether JSON and CSV of a page have as many rows, with the same columns."""
    path, _, query = address.partition("?")
    text = "computing"
    while '"computing"' in text or text == "computing":  # JSON of a finished computation is compared
        text = session.get(f"{site}{path.removesuffix('.csv')}.json?{query}", timeout=120).text
    data = json.loads(text)
    rows = list(csv.reader(io.StringIO(session.get(site + address, timeout=120).text, newline="")))
    columns, rows = (rows[0], rows[1:]) if rows else ([], [])
    lists = [value for value in data.values() if isinstance(value, list) and len(value) == len(rows)]
    matches = [{name for row in value for name in row} == set(columns) for value in lists if value != []]
    return {len(row) for row in rows} <= {len(columns)} and (any(matches) or not rows)


def sample(kinds: Mapping[str, Sequence[str]]) -> dict[str, bool]:
    """Some addresses of every kind that is a page, and whether each is the first of a page, whatever its parameters."""
    chosen: dict[str, bool] = {}
    paths = set()
    for kind, addresses in kinds.items():
        path, _, parameters = kind.partition("?")
        if not re.search(r"\.(json|csv|png|css|js|svg)$", path):
            places = addresses[-1:] if parameters else addresses[:: -(-len(addresses) // MAX_OPENED)]
            chosen |= dict.fromkeys(places, False)
            chosen[places[0]] = path not in paths
            paths.add(path)
    return chosen


def look(browser: Any, site: str, addresses: Mapping[str, bool]) -> list[str]:
    """Open pages and return what is wrong with them, for a reader with light, dark, a phone or a screen reader.

    Contrast and what hinders a screen reader are examined on the first address of each page.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    visitor, problems, before = Visitor(browser, site, "light"), [], ""
    axe = axe.Axe()
    for address, is_first in addresses.items():
        page = visitor.open(address)
        visitor.wait_until_computed()
        wrong = list(page.evaluate(STRUCTURE))
        if is_first:
            wrong += visitor.find_barriers(axe)
            page.emulate_media(color_scheme="dark")
            wrong += [f"dark: {text}" for text in visitor.find_barriers(axe, "color-contrast")]
            page.emulate_media(color_scheme="light")
        wrong += [f"{visitor.measure_overflow()} pixels too wide"] * (visitor.measure_overflow() > 0)
        page.set_viewport_size({"width": 390, "height": 844})
        wrong += [f"phone: {visitor.measure_overflow()} pixels too wide"] * (visitor.measure_overflow() > 0)
        page.set_viewport_size({"width": 1280, "height": 900})
        if before and is_first:
            page.go_back(wait_until="load")
            wrong += [f"back leads to {page.url[:200]}"] * (page.url != before)
            page.go_forward(wait_until="load")
            visitor.wait_until_computed()
        before = page.url
        problems += [f"{address[:120]}: {text}" for text in (*wrong, *visitor.take_problems())]
    return problems


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def check(browser: Any, store: Path) -> None:
    engine = connect(f"sqlite:///{store}", create=False)
    with serving(engine) as site:
        kinds, problems = crawl(site)
        assert {"/benchmark/N?", "/model/N?", "/run/N?", "/prompt/N?", "/sql?statement", "/findings?"} <= set(kinds)
        assert [*problems, *look(browser, site, sample(kinds))] == []
    engine.dispose()


def run(*words: str) -> None:
    result = CliRunner().invoke(suffrage, [*words, "--no-mlflow"])
    assert result.exit_code == 0, result.output


@pytest.mark.soak
def test_simulated_results(browser: Any, full_figures: None, tmp_path: Path) -> None:
    run("demo", "--folder", str(tmp_path / "demo"))
    check(browser, tmp_path / "demo/suffrage.db")


@pytest.mark.soak
def test_real_results(browser: Any, full_figures: None, shared: Path, tmp_path: Path) -> None:
    data, store = shared / "data/mmlu_pro", tmp_path / "store.db"
    files = [str(data / name) for name in ("prompts.parquet", "scores_wide.csv.gz")]
    options = ("--database", f"sqlite:///{store}")
    run("ingest", *files, "--benchmark", "mmlu_pro", "--metric", "accuracy", *options)
    run("analyze", "rank-intervals", "mmlu_pro", *options)
    check(browser, store)


@pytest.mark.soak
def test_hostile_texts(browser: Any, sqlite_template: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    shutil.copy(sqlite_template, store)
    engine = connect(f"sqlite:///{store}")
    fill_hostile_everywhere(engine)
    engine.dispose()
    check(browser, store)
