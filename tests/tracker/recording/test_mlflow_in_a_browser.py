"""What a person sees in MLflow's own pages (docs/how-to/mlflow.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from browser import chromium
from mlflow_pages import PATIENCE, find_experiments, open_comparison, post, serve_pages

from tracker.api.store import open_store
from tracker.database import transaction
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.recording.mlflow.publishing import publish_missing
from tracker.recording.pipeline import run_analysis


@pytest.fixture
def address(tracking_uri: str) -> Iterator[str]:
    """Where `suffrage ui` serves the pages."""
    with serve_pages(tracking_uri) as served:
        yield served


@pytest.mark.soak
@pytest.mark.usefixtures("toys")
def test_runs_are_listed_by_name_and_findings_stand_side_by_side_with_their_pictures(
    filled_file: sa.Engine, tracking_uri: str, request: pytest.FixtureRequest
) -> None:
    with chromium() as browser:
        for threshold in (0.25, 0.75):
            run_analysis(filled_file, "toy", Selection(benchmark="arithmetic"), {"threshold": threshold})
        publish_missing(filled_file, tracking_uri)
        address: str = request.getfixturevalue("address")
        experiment = find_experiments(address)["suffrage/runs/arithmetic"]
        models = post(address, "runs/search", experiment_ids=[experiment])["runs"]
        page = browser.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(PATIENCE * 1000)
        broken: list[str] = []
        page.on("pageerror", lambda error: broken.append(str(error)))

        page.goto(f"{address}/#/experiments/{experiment}/runs")
        for run in models:
            page.get_by_role("link", name=run["info"]["run_name"], exact=True).first.wait_for()

        findings = open_comparison(page, address, "suffrage/toy")
        assert len(findings) == 2
        for run in findings:
            page.get_by_text(run["info"]["run_name"], exact=True).first.wait_for()
        text = page.inner_text("body")
        assert {"mean", "spread", "n_prompts"} <= set(text.split())
        page.get_by_text("draws.png").first.dispatch_event("click")  # MLflow lays a panel over it
        page.wait_for_function("[...document.images].filter(i => i.naturalWidth > 100).length >= 2")
        assert broken == []


N_MODELS = 48


@pytest.fixture
def many_models(sqlite_url: str, tmp_path: Path) -> Iterator[sa.Engine]:
    """A store with 48 models, stored in no order of their means."""
    names = [f"model-{n * 29 % N_MODELS:02}" for n in range(N_MODELS)]
    rows = [[f"t{p % 3}", f"p{p}", *(int(p < int(name[-2:])) for name in names)] for p in range(N_MODELS)]
    lines = [",".join(map(str, row)) for row in [["task", "prompt", *names], *rows]]
    (tmp_path / "many.csv").write_text("\n".join(lines))
    with open_store(sqlite_url) as store:
        store.ingest(tmp_path / "many.csv", benchmark="many", metric="accuracy")
        yield store.engine


@pytest.mark.soak
def test_the_address_of_suffrage_ui_opens_a_chart_of_all_models_in_the_order_of_their_means(
    many_models: sa.Engine, tracking_uri: str, tmp_path: Path
) -> None:
    publish_missing(many_models, tracking_uri)
    with chromium() as browser, serve_pages(tracking_uri, tmp_path / "printed.txt"):
        name, address = (tmp_path / "printed.txt").read_text().splitlines()[0].split(": ", 1)
        assert name == "many"
        with transaction(many_models, write=False) as session:
            expected = [row.mean for row in load_leaderboard(session, Selection(benchmark="many")).rows]
        assert len(expected) == N_MODELS
        page = browser.new_page(viewport={"width": 1500, "height": 1400})
        page.set_default_timeout(PATIENCE * 1000)
        broken: list[str] = []
        page.on("pageerror", lambda error: broken.append(str(error)))

        page.goto(address)  # 0 clicks
        page.wait_for_function(f"document.querySelectorAll('.trace.bars .point').length == {N_MODELS}")
        assert len(page.query_selector_all(".js-plotly-plot")) == 1
        bars = page.evaluate(
            """() => [...document.querySelectorAll(".trace.bars .point")]
                .map(bar => [bar.querySelector("path").getBoundingClientRect(), Number(bar.textContent)])
                .sort((a, b) => a[0].top - b[0].top).map(([box, mean]) => [mean, box.width])"""
        )
        assert [mean for mean, _ in bars] == pytest.approx(expected, abs=0.0051)  # two digits are shown
        widths = [width for _, width in bars]
        assert widths == sorted(widths, reverse=True)
        assert widths[0] > 5 * widths[-1]

        link = page.get_by_role("link", name="Benchmark in suffrage serve").first
        assert link.get_attribute("href") == "http://127.0.0.1:8000/benchmark/1"
        page.get_by_role("link", name=f"model-{N_MODELS - 1}", exact=True).first.click()
        link = page.get_by_role("link", name="All models by mean").first
        assert link.get_attribute("href") == address.rpartition("/#")[2].join(["#", ""])
        with page.expect_popup() as tab:
            link.click()
        tab.value.wait_for_function(
            f"document.querySelectorAll('.trace.bars .point').length == {N_MODELS}", timeout=30_000
        )
        assert broken == []
