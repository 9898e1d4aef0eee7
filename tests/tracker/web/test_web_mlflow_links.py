"""Pages link to the MLflow runs that show the same (docs/how-to/mlflow.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from tracker.cli import suffrage
from tracker.database import transaction
from tracker.recording.mlflow.links import MlflowLinks, make_links
from tracker.recording.mlflow.publishing import list_charts
from tracker.schema import Publication
from tracker.web.access import Access
from tracker.web.application import create_application

STORE, RUN = "http://mlflow:5000", "0123456789abcdef"


@pytest.fixture
def published(filled_file: sa.Engine) -> sa.Engine:
    """A store of which MLflow shows runs 1 and 2."""
    with transaction(filled_file) as session:
        for key in (1, 2):
            session.add(
                Publication(tracking_uri="http://mlflow:5000", kind="run", ref_id=key, mlflow_run_id=f"{RUN}{key}")
            )
    return filled_file


def read(engine: sa.Engine, path: str, mlflow: MlflowLinks | None) -> str:
    client = TestClient(create_application(engine, Access(), mlflow), base_url="http://127.0.0.1")
    return str(client.get(path).text)


def test_published_runs_and_benchmarks_link_to_mlflow(published: sa.Engine) -> None:
    mlflow = MlflowLinks(interface="https://mlflow.example/team", tracking_uri=STORE)
    address = f"https://mlflow.example/team/#/runs/{RUN}"
    assert f'<a href="{address}1">this run in MLflow</a>' in read(published, "/run/1", mlflow)
    assert f'"mlflow": "{address}2"' in read(published, "/run/2.json", mlflow)
    assert f'<a href="{address}2">MLflow</a>' in read(published, "/benchmark/1", mlflow)
    assert "MLflow" not in read(published, "/run/3", mlflow)  # not published
    assert "MLflow" not in read(published, "/run/1", None)
    elsewhere = MlflowLinks(interface="https://mlflow.example", tracking_uri="sqlite:////elsewhere.db")
    assert "MLflow" not in read(published, "/run/1", elsewhere)


def test_a_benchmark_links_to_the_chart_of_its_models(filled_file: sa.Engine, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    url = filled_file.url.render_as_string(hide_password=False)
    links = make_links(uri)
    assert links is not None
    assert "MLflow" not in read(filled_file, "/benchmark/1", links)
    assert not (tmp_path / "mlflow.db").exists()
    result = CliRunner().invoke(suffrage, ["publish", "--database", url, "--tracking-uri", uri])
    assert result.exit_code == 0, result.output
    [chart] = list_charts(uri).values()
    assert f'"mlflow": "http://127.0.0.1:5000/{chart}"' in read(filled_file, "/benchmark/1.json", links)
    (tmp_path / "mlflow.db").rename(tmp_path / "elsewhere.db")
    assert '"mlflow": "http://127.0.0.1:5000/#/runs/' in read(filled_file, "/benchmark/1.json", links)
    assert not (tmp_path / "mlflow.db").exists()


class TestAddress:
    def test_a_server_is_its_own_interface_without_its_user(self) -> None:
        links = make_links("https://me:secret@mlflow.example:5000/team/")
        assert links == MlflowLinks(
            interface="https://mlflow.example:5000/team", tracking_uri="https://me:***@mlflow.example:5000/team"
        )
        assert "secret" not in repr(make_links("postgresql://me:secret@mlflow.example/mlflow"))

    def test_the_interface_of_a_file_is_that_of_suffrage_ui(self, tmp_path: Path) -> None:
        uri = f"sqlite:///{tmp_path}/mlflow.db"
        assert make_links(uri) == MlflowLinks(interface="http://127.0.0.1:5000", tracking_uri=uri, database=uri)
        assert make_links(uri, "http://here:1/") == MlflowLinks(
            interface="http://here:1", tracking_uri=uri, database=uri
        )

    @pytest.mark.parametrize(("uri", "interface"), [("sqlite:///mlflow.db", ""), ("nonsense", None)])
    def test_no_address_or_no_store_means_no_links(self, uri: str, interface: str | None) -> None:
        assert make_links(uri, interface) is None

    @pytest.mark.parametrize("url", ["javascript:alert(1)", "mlflow.example", "http://", "data:text/html,x"])
    def test_other_addresses_are_rejected(self, url: str, sqlite_url: str) -> None:
        result = CliRunner().invoke(suffrage, ["serve", "--mlflow-url", url, "--database", sqlite_url])
        assert result.exit_code == 2
        assert "is not the address of a web server. It must begin with http:// or https://." in result.output
