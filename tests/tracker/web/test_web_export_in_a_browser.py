"""An export in a real browser, from a file server under a path: no error, no request elsewhere, the store's data."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from browser import chromium
from web_server import HOSTILE, N_PROMPTS

from tracker.database import transaction
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.selection import Selection
from tracker.web.export.site import export_site
from tracker.web.templates_environment import make_visible

pytestmark = pytest.mark.soak

PAGES = (
    "index.html", "search.html", "search.html?q=question+7", "benchmark/1.html", "benchmark/1.html?sort=mean",
    "benchmark/1/verdict.html", "benchmark/1/tasks.html", "benchmark/1/runs.html", "benchmark/1/prompts.html",
    "benchmark/1/prompts.html?sort=spread&page=2", "benchmark/1/compare.html", "benchmark/1/compare-2.html",
    "prompt.html?id=1", "prompt.html", "model/1.html", "run/1.html", "findings.html", "finding/1.html",
    "finding/1/table-1.html",
)  # fmt: skip
SCREENS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}


class QuietHandler(SimpleHTTPRequestHandler):
    """Sends files, as ``python -m http.server`` does."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def scores(hostile_store: sa.Engine) -> PerformanceMatrix:
    with transaction(hostile_store, write=False) as session:
        return load_performance_matrix(session, Selection(benchmark=f"{HOSTILE[0]}@1"))


@pytest.fixture(scope="module")
def address(hostile_store: sa.Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an export, under a path of a server of files."""
    root = tmp_path_factory.mktemp("files")
    (root / "results").mkdir()
    export_site(hostile_store, root / "results/site")
    with serving_files(root) as place:
        yield f"{place}/results/site/"


@contextmanager
def serving_files(folder: Path) -> Iterator[str]:
    """Serve a folder; yield the address of the server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


class Visitor:
    """A window of the browser, and everything that went wrong in it."""

    def __init__(self, browser: Any, address: str, screen: str = "light") -> None:
        self.address, self.problems = address, []  # type: str, list[str]
        self.page = browser.new_context(**SCREENS[screen]).new_page()
        self.page.on("console", lambda text: self.problems.append(text.text) if text.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", self._check)

    def _check(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:")):
            self.problems.append(f"a request to {request.url}")

    def open(self, path: str) -> Any:
        self.page.goto(self.address + path, wait_until="networkidle")
        return self.page


@pytest.mark.parametrize("screen", SCREENS)
def test_pages_load_without_errors_and_fit_the_screen(browser: Any, address: str, screen: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    visitor = Visitor(browser, address, screen)
    for path in PAGES:
        page = visitor.open(path)
        assert page.title() != "acted"
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{path} is {overflow} pixels wider than the screen"
        violations = axe.Axe().run(page).response["violations"]
        assert [entry["id"] for entry in violations if entry["impact"] in ("serious", "critical")] == [], path
    assert visitor.problems == []


def test_every_prompt_shows_what_the_store_has(browser: Any, address: str, scores: PerformanceMatrix) -> None:
    visitor = Visitor(browser, address)
    for path, number in (("prompt.html?id=5", 5), ("prompt.html#prompt=105", 105)):
        page = visitor.open(path)
        assert page.locator("blockquote").inner_text().startswith(f"Question {number - 1}: ")
        rows = page.locator("main table tbody tr")
        displayed = {}
        for row in rows.all():
            cells = row.locator("th, td").all_inner_texts()
            displayed[cells[0].split("\n")[0]] = (float(cells[1].rpartition(" ")[2]), cells[2].strip())
        place = int(np.flatnonzero(scores.prompt_ids == number)[0])
        values = zip(scores.models, scores.Q[place], strict=True)
        assert displayed == {make_visible(name): (value, HOSTILE[1]) for name, value in values}
    page.evaluate("location.hash = '#prompt=7'")
    page.get_by_text("Question 6:").wait_for()
    page.go_back()
    page.get_by_text("Question 104:").wait_for()
    visitor.open("prompt.html?id=999999999999")
    assert page.get_by_role("status").inner_text() == "This export has no prompt 999999999999."
    assert len(visitor.problems) == 1  # the part of that number does not exist
    assert "404" in visitor.problems[0]


def test_lists_are_sorted_filtered_and_divided_as_by_the_server(
    browser: Any, address: str, scores: PerformanceMatrix
) -> None:
    visitor = Visitor(browser, address)
    page = visitor.open("benchmark/1/prompts.html")
    page.get_by_role("link", name="mean", exact=True).click()
    page.locator("th[aria-sort=ascending]").wait_for()
    page.get_by_role("link", name="mean", exact=True).click()
    page.wait_for_url("**sort=mean&order=descending")
    page.locator("th[aria-sort=descending]").wait_for()
    expected = sorted(scores.Q.mean(axis=1).round(3), reverse=True)
    column = page.locator("main tbody td:nth-child(4)")
    assert [float(text) for text in column.all_inner_texts()] == pytest.approx(expected[:100], abs=0.0011)
    page.keyboard.press("n")
    page.wait_for_url("**page=2")
    page.get_by_text(f"101–{N_PROMPTS} of {N_PROMPTS} prompts.").wait_for()
    assert [float(text) for text in column.all_inner_texts()] == pytest.approx(expected[100:], abs=0.0011)
    page.go_back()
    page.get_by_text(f"1–100 of {N_PROMPTS} prompts.").wait_for()
    page.get_by_label("text").fill("QUESTION 7")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("11 prompts.").wait_for()
    assert page.locator("th[aria-sort=descending]").count() == 1
    assert page.get_by_label("text").input_value() == "QUESTION 7"
    page.locator("main tbody a").first.click()
    page.locator("blockquote").wait_for()
    page = visitor.open("benchmark/1.html?model=DROP")
    assert page.locator("table.board tbody th").all_inner_texts() == [HOSTILE[5]]
    page = visitor.open("benchmark/1/prompts.html?from=0.2&to=0.4&task=nothing")
    assert page.locator("p.pages").inner_text() == "No prompt matches."
    assert visitor.problems == []


def test_the_search_lists_names_and_questions(browser: Any, address: str) -> None:
    visitor = Visitor(browser, address)
    page = visitor.open("benchmark/1.html")
    page.keyboard.press("/")
    page.keyboard.type("question 7")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=question+7")
    page.locator("ul.found li").nth(10).wait_for()
    assert page.locator("ul.found li").count() == 11
    page = visitor.open("search.html?q=<script>")
    assert page.locator("main h1").inner_text() == "Search: <script>"
    assert page.locator("ul.found li").count() == 22  # a benchmark, a model, and the questions that have it
    page = visitor.open("search.html?q=nothing+has+this")
    assert "contains “nothing has this”" in page.get_by_role("status").inner_text()
    assert visitor.problems == []
