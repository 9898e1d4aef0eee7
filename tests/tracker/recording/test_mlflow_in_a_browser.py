"""What a person sees in MLflow's own pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from browser import chromium
from mlflow_pages import PATIENCE, find_experiments, open_comparison, post, serve_pages

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
