"""Draw the pictures of the documentation that need a browser, an encoder or many minutes: `make picture-NAME`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from doc_folders import FOLDERS
from doc_programs import ROOT, run_line, working_folder

from tracker.database import connect, transaction
from tracker.queries.findings.finding_records import load_artifact
from tracker.report.images import shrink_picture

sys.path += [str(ROOT / "tests/tracker"), str(ROOT / "tests/tracker/web")]

SHARED = Path(os.environ.get("SUFFRAGE_SHARED", ROOT.parent / "shared"))
FIGURES = ROOT / "docs/figures"
SCORES = "suffrage ingest prompts.parquet scores_wide.csv.gz --benchmark mmlu_pro --metric accuracy --no-mlflow"

NOT_IN_THE_PAPER = frozenset({"helm_efficiency", "heim_black_out"})
"""Leaderboards that the authors published and did not use: many scores are missing or equal."""


def _run(*commands: str) -> None:
    """Run command lines in the current folder; what they print shows that the texts beside a picture are true."""
    for command in commands:
        print(f"$ {command}\n{run_line(command)}", flush=True)


def load_figure(finding: int, name: str, store: Path = Path("suffrage.db")) -> bytes:
    """Return a figure of a finding as pages show it.

    Args:
        finding: its ID.
        name: of the file.
        store: the database.
    """
    engine = connect(f"sqlite:///{store}", create=False)
    try:
        with transaction(engine, write=False) as session:
            return shrink_picture(load_artifact(session, finding, name))
    finally:
        engine.dispose()


def _tradeoff() -> bytes:
    """Diversity and sensitivity of the leaderboards of Zhang & Hardt 2024, of MMLU-Pro divided, and simulated."""
    for name in ("leaderboards", "mmlu-pro"):
        FOLDERS[name](Path(), SHARED)
    for path in sorted([*Path().glob("cardinal_*.csv"), *Path().glob("ordinal_*.csv")]):
        system, _, benchmark = path.stem.partition("_")
        if benchmark in NOT_IN_THE_PAPER:
            continue
        options = " --higher-is-better" if "↓" in path.read_text().partition("\n")[0] else ""  # signs are reversed
        options += " --bounds -100 100" if benchmark == "heim_quality_auto" else ""  # its tasks have several scales
        _run(
            f"suffrage ingest {path.name} --benchmark {benchmark}{options} --no-mlflow",
            f"suffrage analyze social-choice {benchmark} --system {system} --time-limit 60 --no-mlflow",
        )
    _run(
        SCORES,
        "suffrage simulate constant --no-mlflow",
        "suffrage simulate random --no-mlflow",
        "suffrage simulate split mmlu_pro --tasks 20 --system cardinal --no-mlflow",
        "suffrage tradeoff --no-mlflow --output tradeoff.png",
    )
    return shrink_picture(Path("tradeoff.png").read_bytes())


def _screenshot_report(first: str, last: str) -> bytes:
    """A part of the report on MMLU-Pro.

    Args:
        first: CSS selector of the element that the picture begins with.
        last: of the one that it ends with.
    """
    from browser import chromium

    FOLDERS["mmlu-pro"](Path(), SHARED)
    _run(
        SCORES,
        "suffrage analyze rank-intervals mmlu_pro --no-mlflow",
        "suffrage report mmlu_pro --output report.html --no-mlflow",
    )
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1100, "height": 950})
        page.goto(Path("report.html").resolve().as_uri())
        page.click("#open-all")
        page.wait_for_selector("[data-chart=agreement].drawn-now", timeout=60_000)
        page.evaluate("scrollTo(0, 0)")
        top, end = page.locator(first).bounding_box(), page.locator(last).bounding_box()
        clip = {"x": 0, "y": top["y"], "width": 1100, "height": end["y"] + end["height"] - top["y"]}
        return shrink_picture(page.screenshot(full_page=True, clip=clip))


def _report() -> bytes:
    return _screenshot_report("body", ".choices")


def _report_differences() -> bytes:
    return _screenshot_report("#differences", "[data-chart=tasks]")


def _mlflow() -> bytes:
    """Two findings of prompt-correlation, compared in MLflow's pages."""
    from browser import chromium
    from mlflow_pages import PATIENCE, open_comparison, serve_pages

    FOLDERS["mmlu-pro"](Path(), SHARED)
    command = "suffrage analyze prompt-correlation mmlu_pro_1200 --n-permutations 200"
    _run(
        "suffrage ingest scores_1200x12.csv --benchmark mmlu_pro_1200 --metric accuracy",
        command,
        f"{command} --null margins",
    )
    with serve_pages(f"sqlite:///{Path('mlflow.db').resolve()}") as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1500, "height": 1300})
        page.set_default_timeout(PATIENCE * 1000)
        open_comparison(page, address, "suffrage/prompt-correlation")
        return shrink_picture(page.screenshot(clip=_arrange_comparison(page)))


def _arrange_comparison(page: Any) -> dict[str, float]:
    """Show what differs between two runs, and a figure of both; return the part of the page that holds it."""
    click = "click"  # MLflow lays a panel over some of these elements, so they get the event itself
    page.get_by_text("observed_and_permuted.png").first.dispatch_event(click)
    page.wait_for_function("[...document.images].filter(i => i.naturalWidth > 100).length >= 2")
    for section in ("Visualizations", "Run details"):
        page.get_by_text(section, exact=True).first.dispatch_event(click)
    for label in ("Close", "Parameters - Show diff only", "Metrics - Show diff only"):
        page.get_by_label(label).first.dispatch_event(click)
    page.wait_for_timeout(2000)  # sections close slowly
    title = page.get_by_text("Comparing 2 Runs from 1 Experiment").bounding_box()
    boxes = filter(None, (image.bounding_box() for image in page.locator("img").all()))
    bottom = max(box["y"] + box["height"] for box in boxes)
    return {"x": title["x"] - 10, "y": title["y"] - 2, "width": 1280, "height": bottom - title["y"] + 12}


def _by_meaning() -> bytes:
    """Scores of pairs of prompts by their similarity in meaning."""
    FOLDERS["mmlu-pro"](Path(), SHARED)
    _run(SCORES, "suffrage embed mmlu_pro", "suffrage analyze semantic-similarity mmlu_pro --no-mlflow --format json")
    return load_figure(_latest(), "performance_by_meaning.png")


def _path() -> bytes:
    """Thresholds of the step *similar* of SMART filtering."""
    FOLDERS["mmlu-pro"](Path(), SHARED)
    command = "suffrage analyze smart-filtering mmlu_pro --without-confidence --no-mlflow"
    _run(SCORES, "suffrage models import models.csv", "suffrage embed mmlu_pro", command)
    return load_figure(_latest(), "path.png")


def _screenshot_pages(path: str, *, dark: bool = False, width: int = 1200, height: int = 900) -> bytes:
    """A page of MMLU-Pro in the browser.

    Args:
        path: address of the page.
        dark: whether the reader prefers dark pages.
        width, height: of the window; a narrow one has two pixels per point, as phones have.
    """
    from browser import chromium
    from web_server import serving

    FOLDERS["mmlu-pro"](Path(), SHARED)
    _run(SCORES)
    engine = connect("sqlite:///suffrage.db", create=False)
    with serving(engine) as address, chromium() as browser:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            device_scale_factor=2 if width < 600 else 1,
        )
        page = context.new_page()
        page.goto(address + path, wait_until="networkidle")
        if page.locator("#verdict").count():
            page.locator("#verdict table").wait_for(timeout=300_000)
        return shrink_picture(page.screenshot())


def _latest() -> int:
    """The ID of the finding recorded last."""
    return int(run_line('suffrage sql "SELECT max(id) AS id FROM finding" --format csv').split()[-1])


PICTURES: Mapping[str, Callable[[], bytes]] = MappingProxyType(
    {
        "leaderboards_tradeoff": _tradeoff,
        "mlflow_compare": _mlflow,
        "mmlu_pro_by_meaning": _by_meaning,
        "mmlu_pro_path": _path,
        "report_mmlu_pro": _report,
        "report_mmlu_pro_differences": _report_differences,
        "serve_mmlu_pro": partial(_screenshot_pages, "/benchmark/1", height=1250),
        "serve_mmlu_pro_phone": partial(_screenshot_pages, "/prompt/100", width=420, height=800),
        "serve_mmlu_pro_tasks": partial(_screenshot_pages, "/benchmark/1/tasks", dark=True, height=860),
    }
)
"""What draws a picture in an empty folder, by the name of its file."""


def main() -> None:
    """Draw the pictures named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"pictures to draw: {', '.join(PICTURES)}  [default: all]")
    parser.add_argument("--store", type=Path, help="a store to begin with: `embed` skips prompts that have vectors")
    options = parser.parse_args()
    store = options.store and options.store.resolve()
    for name in options.names or PICTURES:
        with tempfile.TemporaryDirectory() as folder, working_folder(Path(folder)):
            if store is not None:
                shutil.copy(store, "suffrage.db")
            (FIGURES / f"{name}.png").write_bytes(PICTURES[name]())


if __name__ == "__main__":
    main()
