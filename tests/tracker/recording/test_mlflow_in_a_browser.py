"""What a person sees in MLflow's own pages."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from browser import chromium

from tracker.queries.selection import Selection
from tracker.recording.mlflow.publishing import publish_missing
from tracker.recording.pipeline import run_analysis

PATIENCE = 60


@pytest.fixture
def address(tracking_uri: str) -> Iterator[str]:
    """Where `suffrage ui` serves the pages."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tracker.cli", "ui", "--tracking-uri", tracking_uri, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "the server ended"
                assert time.monotonic() < until, "the server did not start"
                time.sleep(0.3)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def post(address: str, label: str, **body: Any) -> Any:
    """What MLflow's own interface answers."""
    request = urllib.request.Request(
        f"{address}/api/2.0/mlflow/{label}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.usefixtures("toys")
def test_runs_are_listed_by_name_and_findings_stand_side_by_side_with_their_pictures(
    filled_file: sa.Engine, tracking_uri: str, request: pytest.FixtureRequest
) -> None:
    with chromium() as browser:
        for threshold in (0.25, 0.75):
            run_analysis(filled_file, "toy", Selection(benchmark="arithmetic"), {"threshold": threshold})
        publish_missing(filled_file, tracking_uri)
        address: str = request.getfixturevalue("address")
        known = post(address, "experiments/search", max_results=50)["experiments"]
        experiments = {item["name"]: item["experiment_id"] for item in known}
        findings = post(address, "runs/search", experiment_ids=[experiments["suffrage/toy"]])["runs"]
        models = post(address, "runs/search", experiment_ids=[experiments["suffrage/runs/arithmetic"]])["runs"]
        page = browser.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(PATIENCE * 1000)
        broken: list[str] = []
        page.on("pageerror", lambda error: broken.append(str(error)))

        page.goto(f"{address}/#/experiments/{experiments['suffrage/runs/arithmetic']}/runs")
        for run in models:
            page.get_by_role("link", name=run["info"]["run_name"], exact=True).first.wait_for()

        chosen = json.dumps([run["info"]["run_id"] for run in findings])
        page.goto(f"{address}/#/compare-runs?runs={chosen}&experiments={json.dumps([experiments['suffrage/toy']])}")
        page.get_by_text("Comparing 2 Runs from 1 Experiment").wait_for()
        for run in findings:
            page.get_by_text(run["info"]["run_name"], exact=True).first.wait_for()
        text = page.inner_text("body")
        assert {"mean", "spread", "n_prompts"} <= set(text.split())
        page.get_by_text("draws.png").first.dispatch_event("click")  # MLflow lays a panel over it
        page.wait_for_function("[...document.images].filter(i => i.naturalWidth > 100).length >= 2")
        assert broken == []
