"""A window of a browser that records everything that goes wrong in it, and looks at pages as readers do."""

from __future__ import annotations

import time
from typing import Any

SCREENS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
STRUCTURE = """() => {
  const problems = [];
  const headings = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((h) => Number(h.tagName[1]));
  if (headings.filter((level) => level === 1).length !== 1 || headings[0] !== 1) problems.push("not one h1 at the top");
  headings.forEach((level, i) => { if (i && level > headings[i - 1] + 1) problems.push("a heading skips a level"); });
  for (const mark of ["main", "header", "footer", "nav"])
    if (!document.querySelector(mark)) problems.push(`no ${mark}`);
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption?.textContent.trim() && !table.closest("[role=region][aria-label]")?.getAttribute("aria-label"))
      problems.push("a table without a name");
    for (const cell of table.querySelectorAll("th")) if (!cell.scope) problems.push("a th without scope");
  }
  for (const link of document.querySelectorAll("a[href]"))
    if (!link.textContent.trim() && !link.getAttribute("aria-label") && !link.querySelector("img[alt]"))
      problems.push(`a link without a text: ${link.getAttribute("href").slice(0, 80)}`);
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  if (new Set(ids).size !== ids.length) problems.push("an id occurs twice");
  if (document.querySelector("[style]") || document.querySelectorAll("script").length !== 2) problems.push("a script");
  if (window.acted || document.title === "acted") problems.push("data acted");
  return problems;
}"""
IS_COMPUTED = "() => !document.querySelector('[hx-get][hx-trigger^=load]') && !document.querySelector('.htmx-request')"
"""No part of the page is being computed."""
PATIENCE = 180


class Visitor:
    """A window of the browser, and everything that went wrong in it.

    Attributes:
        page: Playwright's page.
        problems: what went wrong since the last call of `take_problems`.
    """

    def __init__(self, browser: Any, address: str, screen: str) -> None:
        self.address, self.problems = address, []  # type: str, list[str]
        self.page = browser.new_context(**SCREENS[screen]).new_page()
        self.page.on("console", self._check_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error {error}"))
        self.page.on("request", self._check_request)
        self.page.on("dialog", self._check_dialog)

    def _check_console(self, line: Any) -> None:
        if line.type in ("error", "warning"):
            self.problems.append(line.text)

    def _check_request(self, request: Any) -> None:
        if not request.url.startswith((f"{self.address}/", "data:")):
            self.problems.append(f"a request to {request.url}")

    def _check_dialog(self, dialog: Any) -> None:
        self.problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: str) -> Any:
        """Open a page of the site, and return the browser's page."""
        self.page.goto(self.address + path, wait_until="load")
        return self.page

    def wait_until_computed(self) -> None:
        """Wait until every part of the page has been computed; the policy of the pages forbids `wait_for_function`."""
        deadline = time.monotonic() + PATIENCE
        while not self.page.evaluate(IS_COMPUTED):
            if time.monotonic() > deadline:
                self.problems.append(f"computed for longer than {PATIENCE} s")
                break
            self.page.wait_for_timeout(100)

    def measure_overflow(self) -> int:
        """Return by how many pixels the page is wider than the screen."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def find_barriers(self, axe: Any, *rules: str) -> list[str]:
        """Return what axe-core considers serious or critical; with rules, by these alone."""
        options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else None
        violations = axe.run(self.page, options=options).response["violations"]
        return [
            f"{violation['id']}: {[node['html'][:200] for node in violation['nodes']][:3]}"
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ]

    def take_problems(self) -> list[str]:
        """Return what went wrong, and forget it."""
        problems, self.problems = self.problems, []
        return problems
