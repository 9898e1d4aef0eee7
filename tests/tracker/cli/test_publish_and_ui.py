"""`suffrage publish` and `suffrage ui`."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from mlflow import MlflowClient

from tracker.cli import suffrage
from tracker.errors import PublishingError
from tracker.queries.selection import Selection
from tracker.recording.mlflow.publishing import publish_missing
from tracker.recording.pipeline import run_analysis


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(suffrage, arguments)
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


class TestPublish:
    @pytest.mark.usefixtures("toys")
    def test_it_counts_published_and_new_runs(self, filled_file: sa.Engine, tracking_uri: str) -> None:
        run_analysis(filled_file, "toy", Selection(benchmark="arithmetic"))
        arguments = ("publish", "--database", str(filled_file.url), "--tracking-uri", tracking_uri)
        first, second = call(*arguments), call(*arguments)
        assert first.stdout == ""
        assert first.stderr == f"{tracking_uri} shows 5 runs and 1 finding; 6 of them are new.\n"
        assert second.stderr == f"{tracking_uri} shows 5 runs and 1 finding; none of them are new.\n"

    def test_an_empty_store_names_the_next_command(self, sqlite_url: str, tracking_uri: str) -> None:
        text = call("publish", "--database", sqlite_url, "--tracking-uri", tracking_uri).stderr
        assert text == "The store has no runs or findings. Import results: suffrage ingest PATH\n"

    def test_an_mlflow_that_is_away_is_an_error(self, filled_file: sa.Engine) -> None:
        with pytest.raises(PublishingError, match="with `suffrage publish`"):
            call("publish", "--database", str(filled_file.url), "--tracking-uri", "http://127.0.0.1:9")

    def test_results_ingested_while_mlflow_is_away_are_stored_with_a_warning(
        self, sqlite_url: str, tmp_path: Path, tracking_uri: str
    ) -> None:
        (tmp_path / "wide.csv").write_text("prompt,a,b\np1,0,1\np2,1,1\n")
        arguments = ("--benchmark", "small", "--metric", "accuracy", "--database", sqlite_url)
        result = call("ingest", str(tmp_path / "wide.csv"), *arguments, "--tracking-uri", "http://127.0.0.1:9")
        assert result.exit_code == 0
        assert "Warning: MLflow at http://127.0.0.1:9 rejected the request (Connection refused)." in result.stderr
        text = call("publish", "--database", sqlite_url, "--tracking-uri", tracking_uri).stderr
        assert text == f"{tracking_uri} shows 2 runs and 0 findings; 2 of them are new.\n"


class TestUi:
    def test_a_server_that_is_away_is_named_with_a_warning(self) -> None:
        result = call("ui", "--tracking-uri", "http://me:secret@127.0.0.1:9/")
        assert result.stdout == "http://me:***@127.0.0.1:9\n"
        assert "Warning: MLflow at http://me:***@127.0.0.1:9 rejected the request (Connection refused)" in result.stderr

    def test_it_prints_the_address_of_each_chart_and_starts_the_server(
        self, filled_file: sa.Engine, tracking_uri: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish_missing(filled_file, tracking_uri)
        started: list[list[str]] = []

        def run_server(command: list[str], _: dict[str, str]) -> int:
            started.append(command)
            return 0

        monkeypatch.setattr("tracker.cli.process.child_server.run_server", run_server)
        result = call("ui", "--tracking-uri", tracking_uri, "--port", "5987")
        key = MlflowClient(tracking_uri).get_experiment_by_name("suffrage/runs/arithmetic").experiment_id
        assert result.stdout == (
            f"arithmetic: http://127.0.0.1:5987/#/experiments/{key}/runs"
            "?viewStateShareKey=suffrage-means&compareRunsMode=CHART&workflowType=machine_learning\n"
        )
        assert started[0][1:6] == ["-m", "mlflow", "server", "--host", "127.0.0.1"]

    def test_a_port_in_use_is_a_clear_error(self, tracking_uri: str) -> None:
        with socket.socket() as another:
            another.bind(("127.0.0.1", 0))
            another.listen()
            port = another.getsockname()[1]
            with pytest.raises(PublishingError, match=f"Port {port} is in use .* --port {port + 1}"):
                call("ui", "--tracking-uri", tracking_uri, "--port", str(port))
