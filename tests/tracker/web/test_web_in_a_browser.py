"""The pages in a real browser: no error, no request elsewhere, nothing that a screen reader stumbles over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from browser import chromium
from browser_visitor import Visitor
from web_server import HOSTILE

PAGES = (
    "/", "/search?q=question", "/benchmark/1", "/benchmark/1/verdict", "/benchmark/1/tasks", "/benchmark/1/runs",
    "/benchmark/1/prompts", "/benchmark/1/compare", "/prompt/1", "/model/1", "/run/1", "/findings", "/finding/1",
    "/finding/1/table/models", "/sql?statement=select+*+from+leaderboard", "/benchmark/99",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.mark.parametrize(
    "screen", ["phone", *(pytest.param(name, marks=pytest.mark.soak) for name in ("light", "dark"))]
)
def test_pages_load_without_errors_and_fit_the_screen(browser: Any, site: str, screen: str) -> None:
    visitor = Visitor(browser, site, screen)
    for path in PAGES:
        page = visitor.open(path)
        assert page.title() != "acted"
        assert visitor.measure_overflow() <= 0, path
    visitor.page.wait_for_load_state("networkidle")
    expected = ["Failed to load resource: the server responded with a status of 404 (Not Found)"]
    assert visitor.problems == expected


@pytest.mark.soak
@pytest.mark.parametrize("screen", ["light", "dark"])
def test_nothing_serious_hinders_a_screen_reader(browser: Any, site: str, screen: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    visitor = Visitor(browser, site, screen)
    for path in PAGES:
        visitor.open(path)
        visitor.wait_until_computed()
        serious = visitor.find_barriers(axe.Axe())
        assert serious == [], path


def test_figures_are_dimmed_on_a_dark_screen(browser: Any, site: str) -> None:
    for screen, expected in (("light", "none"), ("dark", "brightness(0.88)")):
        page = Visitor(browser, site, screen).open("/finding/1")
        assert page.locator("main img").first.evaluate("image => getComputedStyle(image).filter") == expected


def test_a_wide_figure_scrolls_in_its_box_on_a_phone(browser: Any, site: str) -> None:
    visitor = Visitor(browser, site, "phone")
    figure = visitor.open("/finding/1").locator("main figure .scroll").first
    image = figure.locator("img")
    image.scroll_into_view_if_needed()
    expected = min(704, image.evaluate("image => image.decode().then(() => image.naturalWidth)"))
    assert image.evaluate("image => image.clientWidth") == expected
    figure.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.wait_for_timeout(300)
    assert (figure.evaluate("box => box.scrollLeft") > 0) == (expected > figure.evaluate("box => box.clientWidth"))
    assert visitor.measure_overflow() <= 0


def test_questions_are_answered_in_few_clicks(browser: Any, site: str) -> None:
    visitor = Visitor(browser, site, "light")
    page = visitor.open("/")
    page.get_by_role("link", name=f"{HOSTILE[0]}@1", exact=True).first.click()
    # "Is number one safe?": one click from the first page.
    assert "first by" in page.locator("main p.lead").first.inner_text()
    page.locator("#verdict table").wait_for(timeout=60_000)
    # "Is the new one better?": two clicks.
    page.get_by_role("link", name="Compare models").click()
    assert "better" in page.locator("main p.lead").first.inner_text()
    # "Which prompts flipped, and what did both answer?": three clicks.
    page.locator("table a[href^='/prompt/']").first.click()
    assert page.get_by_role("heading", name="Responses").is_visible()
    page.go_back()
    assert "compare" in page.url
    assert visitor.problems == []


def test_keys_reach_the_search_and_the_next_part_of_a_list(browser: Any, site: str) -> None:
    page = Visitor(browser, site, "light").open("/benchmark/1/prompts")
    page.keyboard.press("n")
    page.wait_for_url("**page=2")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.type("question 7")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=question+7")
    rows = requests.get(f"{site}/search.json?q=question+7", timeout=60).json()["rows"]
    page.locator("ul.found li").nth(len(rows) - 1).wait_for()
    assert page.locator("ul.found li").count() == len(rows) >= 11


CONTROLS = """() => [...document.querySelectorAll(
  'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]'
)].filter((element) => element.checkVisibility())"""
FOCUS = f"""() => {{
  const element = document.activeElement, style = getComputedStyle(element);
  const isShown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return [({CONTROLS})().indexOf(element), isShown, element.outerHTML.slice(0, 120)];
}}"""


@pytest.mark.soak
@pytest.mark.parametrize("screen", ["light", "phone"])
def test_every_control_is_reached_with_the_keyboard_and_shows_its_focus(browser: Any, site: str, screen: str) -> None:
    visitor = Visitor(browser, site, screen)
    for path in PAGES:
        page = visitor.open(path)
        visitor.wait_until_computed()
        n_controls = page.evaluate(f"({CONTROLS})().length")
        reached = set()
        for _ in range(n_controls + 20):
            page.keyboard.press("Tab")
            place, is_shown, text = page.evaluate(FOCUS)
            reached.add(place)
            assert is_shown or place < 0, (path, text)
        assert reached >= set(range(n_controls)), (path, sorted(set(range(n_controls)) - reached))
