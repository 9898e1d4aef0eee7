"""`suffrage report`: where the file goes, what is refused, and what MLflow keeps."""

from __future__ import annotations

import html
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hostile_benchmark import ingest_into
from mlflow import MlflowClient

import tracker
from tracker.api.store import Store
from tracker.cli import suffrage
from tracker.errors import NotFoundError, OutputError, PublishingError


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("command")
    shutil.copy(sqlite_template, folder / "store.db")
    with tracker.open(f"sqlite:///{folder / 'store.db'}") as opened:
        ingest_into(opened, folder, benchmark="quiz")
        yield opened


def query(store: Store, *arguments: str) -> Result:
    url = store.engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(suffrage, ["report", *arguments, "--database", url])
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


class TestFile:
    def test_it_is_written_once_and_replaced_only_by_force(self, store: Store, tmp_path: Path) -> None:
        done = query(store, "quiz", "-o", "r.html", "--no-mlflow")
        assert "Wrote r.html (2.0 MB)" in done.stderr
        first = Path("r.html").read_bytes()
        with pytest.raises(OutputError, match="exists already"):
            query(store, "quiz", "-o", "r.html", "--no-mlflow")
        query(store, "quiz", "-o", "r.html", "--no-mlflow", "--force")
        assert Path("r.html").read_bytes() == first
        assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html"]  # nothing was made beside it

    @pytest.mark.parametrize("name", ["r.pdf", "r.csv", "r"])
    def test_a_name_of_another_kind_of_file_is_refused(self, store: Store, name: str) -> None:
        refused = query(store, "quiz", "-o", name, "--no-mlflow")
        assert refused.exit_code == 2
        assert "a report is an HTML file: give a name that ends in .html" in refused.stderr
        assert not Path(name).exists()

    def test_a_choice_of_data_is_printed(self, store: Store) -> None:
        query(store, "quiz", "-o", "r.html", "--no-mlflow", "--missing", "worst", "--cluster", "none")
        message = Path("r.html").read_text()
        assert "Selection: cluster none; missing worst." in message
        assert "Intervals are about these tasks, and about other prompts like these." in message

    def test_an_unknown_benchmark_is_an_error_that_lists_the_known_ones(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="Did you mean 'quiz'"):
            query(store, "quix", "--no-mlflow")
        assert not Path("report.html").exists()


class TestMlflow:
    def test_mlflow_keeps_the_same_file_once_under_a_name_that_people_can_read(
        self, store: Store, tracking_uri: str
    ) -> None:
        for _ in range(2):
            query(store, "quiz", "-o", "r.html", "--force", "--tracking-uri", tracking_uri)
        client = MlflowClient(tracking_uri)
        experiment = client.get_experiment_by_name("suffrage/reports/quiz")
        assert experiment is not None
        (run,) = client.search_runs([experiment.experiment_id])
        assert run.info.run_name.startswith("quiz report, accuracy, data as of 20")
        assert run.data.metrics["models"] == 5
        assert run.data.tags["suffrage.verdict"] in html.unescape(Path("r.html").read_text())
        assert run.data.tags["suffrage.verdict.changes.voting_rule"] in ("yes", "maybe", "no")
        kept = client.download_artifacts(run.info.run_id, "report.html")
        assert Path(kept).read_bytes() == Path("r.html").read_bytes()

    def test_the_file_is_written_though_mlflow_is_away_but_not_where_it_can_never_be(self, store: Store) -> None:
        with pytest.raises(PublishingError, match="not an MLflow tracking URI"):
            query(store, "quiz", "-o", "r.html", "--tracking-uri", "nowhere")
        assert not Path("r.html").exists()
        Path("broken.db").write_text("no database, but words enough to be mistaken for one" * 20)
        done = query(store, "quiz", "-o", "r.html", "--tracking-uri", f"sqlite:///{Path('broken.db').absolute()}")
        assert "Warning: MLflow" in done.stderr
        assert Path("r.html").exists()
