"""MLflow's server is stopped, or answers nothing: nothing is lost, nothing is published twice."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import sqlalchemy as sa
from mlflow import MlflowClient

from tracker.database import transaction
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.mlflow.mlflow_logging import SETTINGS, quiet_environment
from tracker.recording.mlflow.publishing import publish_missing
from tracker.recording.pipeline import run_analysis

ROOT = Path(__file__).parents[3]
TEAM_PAGE = ROOT / "docs/how-to/postgresql.md"

ARITHMETIC = Selection(benchmark="arithmetic")

STOPPING = '''
"""What if MLflow's server stops while we compute?"""
import os
import signal
import socket
import time
from dataclasses import dataclass
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, Report, Summary, analysis

@dataclass(frozen=True, kw_only=True)
class Stopped(Finding):
    mean: float

@analysis
def analyze(scores: PerformanceMatrix, *, process: int, port: int) -> Report:
    os.kill(process, signal.SIGTERM)
    def is_open():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    while is_open():
        time.sleep(0.05)
    return Report(Stopped(mean=float(scores.Q.mean())), summary=Summary("It was stopped."))
'''


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(*command: str, folder: Path) -> subprocess.Popen[bytes]:
    """A program that leads a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=SETTINGS | dict(os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def fetch(server: subprocess.Popen[bytes], address: str) -> bytes:
    """What a server says, once it has started."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended"
        with contextlib.suppress(URLError, ConnectionError), urlopen(address, timeout=30) as answer:
            return bytes(answer.read())
        time.sleep(0.2)
    raise TimeoutError(address)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(60)


def test_suffrage_ui_serves_findings_and_if_it_is_stopped_while_an_analysis_computes_nothing_is_lost(
    filled_file: sa.Engine, tracking_uri: str, tmp_path: Path, toys: None, install
) -> None:
    assert "$ suffrage ui\n" in (ROOT / "README.md").read_text()
    install("stopping", {"stop": STOPPING})
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    displayed = run_analysis(filled_file, "toy", ARITHMETIC, publish_to=tracking_uri).mlflow_run_id
    server = start("tracker.cli", "ui", "--tracking-uri", tracking_uri, "--port", str(port), folder=tmp_path)
    try:
        answer = json.loads(fetch(server, f"{address}/api/2.0/mlflow/runs/get?run_id={displayed}"))
        assert answer["run"]["info"]["run_name"].startswith("arithmetic plain ")
        figure = fetch(server, f"{address}/get-artifact?path=draws.png&run_uuid={displayed}")
        assert figure.startswith(b"\x89PNG")
        assert b"<html" in fetch(server, address).lower()

        assert publish_missing(filled_file, address).n_new == 5  # the finding is there already
        recorded = run_analysis(
            filled_file, "stop", ARITHMETIC, {"process": server.pid, "port": port}, publish_to=address
        )
        assert recorded.mlflow_run_id is None
        assert recorded.publishing_problem is not None
        assert recorded.publishing_problem.startswith(f"MLflow at {address} rejected the request (")
        assert recorded.publishing_problem.endswith("with `suffrage publish`.")
        with transaction(filled_file, write=False) as session:
            last = sa.select(tables.finding.c.headline).order_by(tables.finding.c.id.desc()).limit(1)
            assert session.scalar(last) == "It was stopped."
        stop(server)

        program, *words = shlex.split(re.findall(r"^mlflow server .+$", TEAM_PAGE.read_text(), re.M)[0])
        options = dict(zip(words[1::2], words[2::2], strict=True)) | {"--port": str(port), "--workers": "1"}
        options |= {"--host": "127.0.0.1", "--backend-store-uri": tracking_uri}
        options |= {"--artifacts-destination": str(tmp_path / "served")}
        assert len(options) == len(words) // 2 + 1, "the page has exactly the options that are replaced"
        server = start(program, words[0], *(part for item in options.items() for part in item), folder=tmp_path)
        fetch(server, f"{address}/health")
        assert publish_missing(filled_file, address).n_new == 1
        assert publish_missing(filled_file, address).n_new == 0
        client = MlflowClient(tracking_uri=address)
        [experiment] = client.search_experiments(filter_string="name = 'suffrage/stop'")
        [run] = client.search_runs([experiment.experiment_id])
        assert run.data.metrics == {"mean": pytest.approx(recorded.report.finding.metrics["mean"])}
        assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["metrics.csv"]
        [models] = client.search_experiments(filter_string="name = 'suffrage/runs/arithmetic'")
        assert len(client.search_runs([models.experiment_id])) == 5
    finally:
        stop(server)
    assert not (tmp_path / "mlruns").exists()


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.usefixtures("toys")
def test_a_server_that_never_answers_ends_in_a_sentence(
    filled_file: sa.Engine, silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    recorded = run_analysis(filled_file, "toy", ARITHMETIC, publish_to=silent_server)
    assert recorded.mlflow_run_id is None
    assert "\n" not in (recorded.publishing_problem or "\n")
    with transaction(filled_file, write=False) as session:
        assert session.scalar(sa.select(sa.func.count()).select_from(tables.finding)) == 1


def test_our_time_limits_hold_where_the_user_set_none_and_are_gone_afterwards(
    filled_file: sa.Engine, tracking_uri: str
) -> None:
    with quiet_environment():
        assert float(os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"]) <= 20
        assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "0"
        assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    publish_missing(filled_file, tracking_uri)
    assert not set(SETTINGS) & set(os.environ)
