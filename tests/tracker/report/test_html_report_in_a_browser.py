"""The report as a person sees it: in a real Chromium, from the disk, without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium
from hostile_benchmark import BENCHMARK, MODELS, TASKS, ingest_into

import tracker

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    """The report on a benchmark whose every name and text tries to act."""
    folder = tmp_path_factory.mktemp("report")
    shutil.copy(sqlite_template, folder / "store.db")
    with tracker.open(f"sqlite:///{folder / 'store.db'}") as store:
        ingest_into(store, folder)
        store.analyze("rank-intervals", BENCHMARK, n_resamples=50)
        return store.report(BENCHMARK, folder / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


class Seen:
    """A page that was opened without a network, and everything that happened meanwhile."""

    def __init__(self, browser: Any, file: Path, size: dict[str, int], **more: Any) -> None:
        self.context = browser.new_context(viewport=size, offline=True, **more)
        self.page = self.context.new_page()
        self.logged: list[str] = []
        self.requested: list[str] = []
        self.page.on("console", lambda message: self.logged.append(message.text))
        self.page.on("pageerror", lambda error: self.logged.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.goto(file.as_uri())

    def drawn(self) -> Seen:
        """Open all details, and wait for their charts."""
        self.page.click("#open-all")
        n_charts = self.page.locator("[data-chart]").count()
        self.page.wait_for_selector(f"html[data-drawn='{n_charts}']", state="attached", timeout=60_000)
        return self


@pytest.fixture(scope="module")
def wide(browser: Any, file: Path) -> Iterator[Seen]:
    seen = Seen(browser, file, WIDE).drawn()
    yield seen
    seen.context.close()


class TestOffline:
    def test_every_picture_is_drawn(self, wide: Seen) -> None:
        names = [item.get_attribute("data-chart") for item in wide.page.query_selector_all("[data-chart]")]
        assert names == ["means", "ranks", "tasks", "difficulty", "agreement"]
        for name in names:
            assert wide.page.query_selector_all(f"[data-chart={name}] svg.main-svg")
        assert len(wide.page.query_selector_all("[data-chart=means] .scatterlayer .point")) == len(MODELS)
        assert wide.page.query_selector_all("[data-chart=agreement] .heatmaplayer image")

    def test_nothing_is_requested_and_nothing_is_logged(self, wide: Seen, file: Path) -> None:
        outside = [url for url in wide.requested if not url.startswith(("data:", "blob:"))]
        assert outside == [file.as_uri()]
        assert wide.logged == []

    def test_pictures_of_findings_are_there(self, wide: Seen) -> None:
        sizes = wide.page.evaluate(
            "Promise.all([...document.images].map(async one => "
            "{ one.loading = 'eager'; await one.decode(); return one.naturalWidth; }))"
        )
        assert len(sizes) == 2
        assert min(sizes) > 100


class TestNothingActs:
    def test_no_name_or_text_has_become_part_of_the_page(self, wide: Seen) -> None:
        assert wide.page.evaluate("window.attacked") is None
        assert wide.page.query_selector_all("[onerror], [onload], main a[href^=javascript]") == []
        assert wide.page.evaluate("document.title").startswith(BENCHMARK)

    def test_pictures_spell_names_as_they_are(self, wide: Seen) -> None:
        labels = wide.page.eval_on_selector_all(
            "[data-chart=means] .ytick text", "found => found.map(one => one.textContent)"
        )
        assert len(labels) == len(MODELS)
        begin = {name[:12] for name in MODELS}
        assert {label[:12] for label in labels} == begin
        columns = wide.page.eval_on_selector_all(
            "[data-chart=tasks] .xtick text", "found => found.map(one => one.textContent)"
        )
        assert {label[:10] for label in columns} == {name[:10] for name in TASKS}

    def test_what_the_mouse_brings_up_spells_names_as_they_are(self, wide: Seen) -> None:
        rows = wide.page.evaluate("JSON.parse(document.getElementById('charts').textContent).tasks.rows")
        wide.page.query_selector("[data-chart=tasks]").scroll_into_view_if_needed()
        box = wide.page.query_selector("[data-chart=tasks] .heatmaplayer image").bounding_box()
        for place, row in enumerate(rows):
            wide.page.mouse.move(box["x"] + 8, box["y"] + (place + 0.5) * box["height"] / len(rows))
            output = "document.querySelector('[data-chart=tasks] .hoverlayer').textContent"
            wide.page.wait_for_function(f"told => {output}.startsWith(told)", arg=row, timeout=10_000)
        assert wide.page.evaluate("window.attacked") is None

    def test_even_a_script_that_got_in_would_not_run(self, wide: Seen) -> None:
        wide.page.evaluate(
            "() => { const one = document.createElement('script'); one.textContent = 'window.attacked = 1';"
            "document.body.append(one);"
            "const two = document.createElement('img'); two.setAttribute('onerror', 'window.attacked = 1');"
            "two.src = 'data:image/png;base64,AA'; document.body.append(two); }"
        )
        wide.page.wait_for_timeout(200)
        assert wide.page.evaluate("window.attacked") is None
        assert wide.logged  # the browser says what it has refused
        wide.logged.clear()


class TestForPeople:
    def test_tables_sort_by_keyboard_and_keep_those_without_a_number_last(self, wide: Seen) -> None:
        head = wide.page.query_selector("table.board th:has-text('rank') button")
        column = "[...document.querySelector('table.board').tBodies[0].rows].map(row => row.cells[0].textContent)"
        for expected in (["1", "2.5", "2.5", "4", "5"], ["5", "4", "2.5", "2.5", "1"]):
            head.focus()
            wide.page.keyboard.press("Enter")
            assert wide.page.evaluate(column) == expected
        assert wide.page.get_attribute("table.board th:has-text('rank')", "aria-sort") == "descending"

    def test_details_are_closed_until_a_link_or_the_button_opens_them(self, browser: Any, file: Path) -> None:
        seen = Seen(browser, file, WIDE)
        count = "document.querySelectorAll('details[open]').length"
        assert seen.page.evaluate(count) == 0
        assert seen.page.locator("[data-chart]").first.is_hidden()
        finding = seen.page.evaluate("document.querySelector('details.finding').id")
        seen.page.goto(f"{file.as_uri()}#{finding}")
        seen.page.wait_for_selector(f"#{finding}[open]")
        seen.page.click("#open-all")
        assert seen.page.evaluate(count) == seen.page.locator("details").count()
        seen.page.click("#open-all")
        assert seen.page.evaluate(count) == 0
        seen.context.close()

    def test_charts_follow_light_and_dark(self, browser: Any, file: Path) -> None:
        seen = Seen(browser, file, WIDE, color_scheme="light").drawn()
        charts = seen.page.locator("[data-chart] .main-svg:first-child").all()
        assert {svg.evaluate("svg => svg.style.background") for svg in charts} == {"rgb(255, 255, 255)"}
        seen.page.emulate_media(color_scheme="dark")
        seen.page.wait_for_selector("[data-chart=agreement] .main-svg[style*='rgb(15, 19, 24)']")
        ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert {svg.evaluate("svg => svg.style.background") for svg in charts} == {ground}
        seen.context.close()

    def test_a_phone_shows_it_without_scrolling_sideways(self, browser: Any, file: Path) -> None:
        seen = Seen(browser, file, PHONE).drawn()
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert seen.logged == []
        seen.context.close()

    def test_without_scripts_tables_and_texts_are_there_and_pictures_explain_their_absence(
        self, browser: Any, file: Path
    ) -> None:
        seen = Seen(browser, file, WIDE, java_script_enabled=False)
        assert seen.page.locator("table.board tbody tr").count() == len(MODELS)
        seen.page.click("#all-models > summary")
        assert seen.page.locator(".wait").first.is_visible()
        assert "needs JavaScript, which did not run" in seen.page.locator(".wait").first.text_content()
        assert seen.logged == []
        seen.context.close()

    def test_a_browser_that_cannot_unpack_the_drawing_program_shows_a_message(self, browser: Any, file: Path) -> None:
        context = browser.new_context(viewport=WIDE, offline=True)
        context.add_init_script("delete window.DecompressionStream")
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(file.as_uri())
        page.wait_for_function("document.querySelector('.wait').textContent.includes('too old')")
        assert errors == []
        context.close()
