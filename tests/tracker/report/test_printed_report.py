"""The report on real scores, printed: the first page alone, and with all details."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium

import tracker

FINDINGS = {
    "rank-intervals": {},
    "voting-rules": {},
    "weight-robustness": {},
    "prompt-weighting": {},
    "social-choice": {},
    "task-subsets": {},
    "benchmark-growth": {},
    "prompt-correlation": {"n_permutations": 50},
}


@pytest.fixture(scope="module")
def opened(shared: Path, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Any]:
    """The report on MMLU-Pro with eight findings, in Chromium."""
    folder = tmp_path_factory.mktemp("printed")
    shutil.copy(sqlite_template, folder / "store.db")
    with tracker.open(f"sqlite:///{folder / 'store.db'}") as store:
        store.ingest(shared / "data/mmlu_pro/prompts.parquet", benchmark="mmlu_pro")
        store.ingest(shared / "data/mmlu_pro/scores_wide.csv.gz", benchmark="mmlu_pro")
        for name, options in FINDINGS.items():
            store.analyze(name, "mmlu_pro", **options)
        file = store.report("mmlu_pro", folder / "report.html")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(file.as_uri())
        yield page


def count_sheets(page: Any) -> int:
    """Return the number of A4 sheets that a page prints on."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", prefer_css_page_size=False)))


@pytest.mark.soak
def test_the_first_page_is_complete_and_prints_on_two_sheets_and_with_details_on_eight(opened: Any) -> None:
    assert "is first by" in opened.locator(".verdict").text_content()
    assert opened.locator("table.board").first.locator("tbody tr").count() == 10
    assert opened.locator(".picture svg g").count() == 28
    assert opened.locator(".choices tbody tr").count() >= 6
    assert opened.locator("details.finding").count() == len(FINDINGS)
    n_alone = count_sheets(opened)
    opened.click("#open-all")
    opened.wait_for_selector("[data-chart=agreement].drawn-now", timeout=60_000)
    n_open = count_sheets(opened)
    print(f"sheets: {n_alone} without details, {n_open} with them")
    assert n_alone <= 2
    assert n_alone < n_open <= 8
