"""MLflow's own pages, served by `suffrage ui`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60
"""Seconds until a server or a page that does not appear is an error."""


@contextmanager
def serve_pages(tracking_uri: str, printed: Path = Path(os.devnull)) -> Iterator[str]:
    """Yield the address where `suffrage ui` serves the pages; what it prints goes to a file."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tracker.cli", "ui", "--tracking-uri", tracking_uri, "--port", str(port)]
    with printed.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
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


def find_experiments(address: str) -> dict[str, str]:
    """Return the keys of the experiments by name."""
    experiments = post(address, "experiments/search", max_results=50)["experiments"]
    return {item["name"]: item["experiment_id"] for item in experiments}


def open_comparison(page: Any, address: str, experiment: str) -> list[Any]:
    """Open the page that compares all runs of an experiment, and return the runs."""
    key = find_experiments(address)[experiment]
    runs = post(address, "runs/search", experiment_ids=[key])["runs"]
    chosen = json.dumps([run["info"]["run_id"] for run in runs])
    page.goto(f"{address}/#/compare-runs?runs={chosen}&experiments={json.dumps([key])}")
    page.get_by_text(f"Comparing {len(runs)} Runs from 1 Experiment").wait_for()
    return list(runs)
