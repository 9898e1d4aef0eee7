"""From the store to a real MLflow."""

from __future__ import annotations

import math
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from forked_process import fork
from mlflow import MlflowClient
from mlflow.entities import Run as MlflowRun
from mlflow.entities import ViewType

from tracker.cli import main
from tracker.connections.schema_versions import known_versions
from tracker.database import connect, transaction
from tracker.errors import NotFoundError, PublishingError
from tracker.queries.prompts import load_prompts
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.artifacts import decode_table
from tracker.recording.mlflow.publishing import publish_finding, publish_missing, publish_runs
from tracker.recording.pipeline import run_analysis

ARITHMETIC = Selection(benchmark="arithmetic")


def mlflow_runs(tracking_uri: str, view: int = ViewType.ACTIVE_ONLY) -> list[MlflowRun]:
    client = MlflowClient(tracking_uri=tracking_uri)
    experiments = [experiment.experiment_id for experiment in client.search_experiments(view_type=ViewType.ALL)]
    return sorted(client.search_runs(experiments, run_view_type=view), key=lambda run: run.info.run_name)


def files_of(tracking_uri: str, run: MlflowRun, folder: Path) -> dict[str, bytes]:
    existing = folder / run.info.run_id
    existing.mkdir(parents=True)
    MlflowClient(tracking_uri=tracking_uri).download_artifacts(run.info.run_id, "", str(existing))
    return {path.relative_to(existing).as_posix(): path.read_bytes() for path in existing.rglob("*") if path.is_file()}


def published_content(tracking_uri: str, folder: Path) -> dict[str, object]:
    """Everything a person sees in MLflow, by name of the run; the key of an experiment in links differs."""
    seen: dict[str, object] = {}
    for run in mlflow_runs(tracking_uri):
        seen[run.info.run_name] = (
            run.data.params,
            run.data.metrics,
            {name: re.sub("#/experiments/[0-9]+/", "", value) for name, value in run.data.tags.items()},
            files_of(tracking_uri, run, folder),
            (run.info.status, run.info.start_time, run.info.end_time),
        )
    return seen


def publications(engine: sa.Engine) -> list[tuple[str, str, int, str]]:
    row = tables.publication.c
    with transaction(engine, write=False) as session:
        result = session.execute(
            sa.select(row.tracking_uri, row.kind, row.ref_id, row.mlflow_run_id).order_by(*row)
        ).all()
    return [tuple(item) for item in result]


@pytest.mark.usefixtures("toys")
class TestFinding:
    def test_a_finding_is_an_mlflow_run_with_all_that_belongs_to_it(
        self, filled: sa.Engine, tracking_uri: str, tmp_path: Path
    ) -> None:
        recorded = run_analysis(filled, "toy", ARITHMETIC, {"method": "fancy", "seed": 5}, publish_to=tracking_uri)
        assert recorded.publishing_problem is None
        [run] = mlflow_runs(tracking_uri)
        assert run.info.run_id == recorded.mlflow_run_id
        assert run.info.status == "FINISHED"
        assert MlflowClient(tracking_uri=tracking_uri).get_experiment(run.info.experiment_id).name == "suffrage/toy"
        date = run.info.run_name.split()[2]
        assert run.info.run_name == f"arithmetic fancy {date} #{recorded.finding_id}"
        assert run.data.params == {
            "n_blocks": "8",
            "method": "fancy",
            "quantiles": "0.25, 0.75",
            "threshold": "null",
            "verbose": "false",
            "label": "",
            "seed": "5",
            "selection.benchmark": "arithmetic",
            "selection.condition": "full",
            "selection.missing": "common",
            "selection.min_coverage": "0.95",
        }
        assert set(run.data.metrics) == {"mean", "spread", "n_prompts"}
        assert all(math.isfinite(value) for value in run.data.metrics.values())
        tags = run.data.tags
        with transaction(filled, write=False) as session:
            [analysis] = session.execute(sa.select(tables.finding)).all()
            database = session.scalar(sa.select(tables.database.c.id))
        assert tags["suffrage.benchmark"] == "arithmetic"
        assert tags["suffrage.database_id"] == database
        assert tags["suffrage.finding_id"] == str(recorded.finding_id)
        assert tags["suffrage.input_digest"] == analysis.input_digest
        assert tags["suffrage.seed"] == "5"
        assert tags["suffrage.version"] == analysis.code_version
        assert tags["suffrage.schema"] == known_versions()[-1]
        assert tags["suffrage.undefined"] == (
            "undefined: not a number; boundless: infinite; untested: invariant under this null"
        )
        assert tags["mlflow.note.content"].startswith("**On 40 prompts the mean score is")
        assert "`untested`: invariant under this null" in tags["mlflow.note.content"]
        files = files_of(tracking_uri, run, tmp_path)
        assert set(files) == {
            "metrics.csv",
            "draws.png",
            "data/arrays.parquet",
            "data/quantiles.parquet",
            "data/prompt_values.parquet",
            "data/task_values.parquet",
            "data/rankings.parquet",
        }
        values = decode_table(files["data/prompt_values.parquet"]).to_pydict()
        assert set(values) == {"prompt_id", "task", "key", "weight.toy"}
        assert len(values["key"]) == 39  # the first has no number
        assert (values["prompt_id"][0], values["task"][0], values["key"][0]) == (2, "task 1", "p1")
        assert "undefined,,not a number" in files["metrics.csv"].decode()

    def test_prompts_have_the_names_of_the_tables_of_a_finding(
        self, filled_file: sa.Engine, tracking_uri: str, tmp_path: Path
    ) -> None:
        with transaction(filled_file) as session:
            for item in session.execute(sa.select(tables.prompt_alias)).all():
                another = {**item._mapping, "namespace": "lm_eval", "key": f"a hash of {item.key}"}
                session.execute(sa.insert(tables.prompt_alias).values(another))
        run_analysis(filled_file, "toy", ARITHMETIC, publish_to=tracking_uri)
        [run] = mlflow_runs(tracking_uri)
        values = decode_table(files_of(tracking_uri, run, tmp_path)["data/prompt_values.parquet"]).to_pydict()
        with transaction(filled_file, write=False) as session:
            prompt_name = load_prompts(session, ARITHMETIC)
        assert values["key"] == [prompt_name.names[row] for row in prompt_name.find_rows(np.array(values["prompt_id"]))]

    def test_more_than_fifty_headline_numbers_are_cut_and_all_are_in_a_file(
        self, filled_file: sa.Engine, tracking_uri: str, tmp_path: Path, install
    ) -> None:
        install("many", {"many": MANY})
        run_analysis(filled_file, "many", ARITHMETIC, publish_to=tracking_uri)
        [run] = mlflow_runs(tracking_uri)
        assert len(run.data.metrics) == 50
        assert run.data.tags["suffrage.metrics"] == "50 of 120 are shown; metrics.csv has them all"
        files = files_of(tracking_uri, run, tmp_path)
        assert len(files["metrics.csv"].splitlines()) == 121
        assert files["names.json"].decode().count("p<0.05") == 50

    def test_an_unknown_finding_is_refused(self, filled_file: sa.Engine, tracking_uri: str) -> None:
        with pytest.raises(NotFoundError, match="No analysis '12'"):
            publish_finding(filled_file, 12, tracking_uri)


MANY = '''
"""Many numbers?"""
from dataclasses import dataclass
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, Report, Summary, analysis

@dataclass(frozen=True, kw_only=True)
class Many(Finding):
    n: int

    @property
    def metrics(self):
        return {f"p<0.05, {i}": float(i) for i in range(self.n)}

@analysis
def analyze(scores: PerformanceMatrix) -> Report:
    return Report(Many(n=120), summary=Summary("many"))
'''


class TestRuns:
    def test_the_runs_of_a_benchmark_are_compared_in_one_experiment(
        self, filled: sa.Engine, tracking_uri: str, tmp_path: Path
    ) -> None:
        printed: list[tuple[int, int]] = []
        published = publish_runs(filled, [1, 2, 3, 4, 5], tracking_uri, lambda *progress: printed.append(progress))
        assert published.n_new == 5
        assert printed == [(number, 5) for number in range(1, 6)]
        runs = mlflow_runs(tracking_uri)
        assert [run.info.run_name for run in runs] == [f"arithmetic/model {number}" for number in range(5)]
        [experiment] = {run.info.experiment_id for run in runs}
        result = MlflowClient(tracking_uri=tracking_uri).get_experiment(experiment)
        assert result.name == "suffrage/runs/arithmetic"
        assert result.tags["mlflow.experiment.primaryMetric.name"] == "accuracy of arithmetic"
        assert result.tags["mlflow.experiment.primaryMetric.greaterIsBetter"] == "True"
        with transaction(filled, write=False) as session:
            means = session.execute(sa.text("SELECT run_id, mean FROM leaderboard ORDER BY run_id")).all()
        name = "accuracy of arithmetic"
        for run, (run_id, mean) in zip(runs, means, strict=True):
            metrics = run.data.metrics
            assert run.data.tags["suffrage.run_id"] == str(run_id)
            assert metrics[name] == pytest.approx(mean)
            assert (metrics[f"{name}.n"], metrics[f"{name}.coverage"]) == (40, 1)
            by_task = [metrics[f"{name}: task {number}"] for number in range(3)]
            assert sum(w * m for w, m in zip((14, 13, 13), by_task, strict=True)) / 40 == pytest.approx(mean)
            assert run.data.params["settings.temperature"] == "0.5"
            assert run.data.params["settings.nested.a"] == "1, 2"
            assert run.data.params["settings.nested.long"].endswith("xx... (7,000 characters; the store has them all)")
        assert b"x" * 7000 in files_of(tracking_uri, runs[0], tmp_path)["settings.json"]

    def test_scores_that_are_missing_lower_the_coverage(self, filled_file: sa.Engine, tracking_uri: str) -> None:
        with transaction(filled_file) as session:
            session.execute(sa.delete(tables.score).where(tables.score.c.run_id == 1, tables.score.c.prompt_id > 30))
        publish_runs(filled_file, [1], tracking_uri)
        [run] = mlflow_runs(tracking_uri)
        assert run.data.metrics["accuracy of arithmetic.n"] == 30
        assert run.data.metrics["accuracy of arithmetic.coverage"] == 0.75

    def test_with_more_than_fifty_numbers_a_tag_names_those_left_out(
        self, sqlite_url: str, tracking_uri: str, more
    ) -> None:
        engine = connect(sqlite_url)
        publish_runs(engine, more(engine, n_models=1, n_tasks=60)[:1], tracking_uri)
        [run] = mlflow_runs(tracking_uri)
        assert len(run.data.metrics) == 43  # 40 prompts lie in 40 of the 60 tasks
        more(engine, "many", n_models=1, n_tasks=40)
        with transaction(engine) as session:
            session.execute(
                sa.insert(tables.task_score),
                [{"run_id": 1, "metric_id": 2, "task_id": task, "value": 0.5} for task in range(1, 61)],
            )
        publish_missing(engine, tracking_uri)
        [run] = [run for run in mlflow_runs(tracking_uri) if run.data.tags["suffrage.run_id"] == "1"]
        assert len(run.data.metrics) == 50
        assert run.data.tags["suffrage.left_out"].startswith("56 of 106 metrics are only in the store: ['")

    def test_partial_runs_are_left_out(self, filled_file: sa.Engine, tracking_uri: str) -> None:
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == 2).values(status="partial"))
        assert publish_runs(filled_file, [1, 2], tracking_uri).n_new == 1


@pytest.mark.usefixtures("toys")
class TestNeverTwice:
    def test_publishing_again_changes_nothing(self, filled: sa.Engine, tracking_uri: str) -> None:
        recorded = run_analysis(filled, "toy", ARITHMETIC, publish_to=tracking_uri)
        assert publish_finding(filled, recorded.finding_id, tracking_uri) == recorded.mlflow_run_id
        assert publish_missing(filled, tracking_uri).n_new == 5
        before = publications(filled)
        assert publish_missing(filled, tracking_uri).n_new == 0
        assert len(mlflow_runs(tracking_uri)) == 6
        assert publications(filled) == before
        assert {item[0] for item in before} == {tracking_uri}

    def test_a_crash_before_the_publication_is_saved_publishes_nothing_twice(
        self, filled_file: sa.Engine, tracking_uri: str
    ) -> None:
        publish_missing(filled_file, tracking_uri)
        noted = publications(filled_file)
        with transaction(filled_file) as session:
            session.execute(sa.delete(tables.publication))
        assert publish_missing(filled_file, tracking_uri).n_new == 0
        assert publications(filled_file) == noted

    def test_what_a_crash_left_unfinished_is_made_anew(self, filled_file: sa.Engine, tracking_uri: str) -> None:
        publish_runs(filled_file, [1, 2], tracking_uri)
        client = MlflowClient(tracking_uri=tracking_uri)
        left = mlflow_runs(tracking_uri)[0]
        client.update_run(left.info.run_id, status="RUNNING")
        assert publish_runs(filled_file, [1, 2], tracking_uri).n_new == 1
        runs = mlflow_runs(tracking_uri)
        assert len(runs) == 2
        assert left.info.run_id not in {run.info.run_id for run in runs}
        assert {run.info.status for run in runs} == {"FINISHED"}

    def test_a_run_that_has_changed_replaces_what_was_shown(self, filled_file: sa.Engine, tracking_uri: str) -> None:
        publish_runs(filled_file, [1, 2], tracking_uri)
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == 1).values(checksum="f" * 32))
            session.execute(sa.update(tables.score).where(tables.score.c.run_id == 1).values(value=1.0))
        assert publish_missing(filled_file, tracking_uri).n_new == 4  # runs 3 to 5 as well
        runs = mlflow_runs(tracking_uri)
        assert len(runs) == 5
        assert runs[0].data.metrics["accuracy of arithmetic"] == 1.0

    def test_a_benchmark_that_grows_changes_the_coverage_shown(self, filled_file: sa.Engine, tracking_uri: str) -> None:
        publish_runs(filled_file, [1], tracking_uri)
        with transaction(filled_file) as session:
            prompts = [{"task_id": 1, "occurrence": 0, "content_hash": f"new {i}"} for i in range(40)]
            session.execute(sa.insert(tables.prompt), prompts)
        assert publish_runs(filled_file, [1], tracking_uri).n_new == 1
        assert mlflow_runs(tracking_uri)[0].data.metrics["accuracy of arithmetic.coverage"] == 0.5

    def test_what_people_deleted_in_mlflow_stays_deleted(self, filled_file: sa.Engine, tracking_uri: str) -> None:
        publish_runs(filled_file, [1, 2], tracking_uri)
        MlflowClient(tracking_uri=tracking_uri).delete_run(mlflow_runs(tracking_uri)[0].info.run_id)
        assert publish_runs(filled_file, [1, 2], tracking_uri).n_new == 0
        assert len(mlflow_runs(tracking_uri)) == 1

    def test_an_experiment_deleted_in_mlflow_comes_back_with_the_next_finding(
        self, filled_file: sa.Engine, tracking_uri: str
    ) -> None:
        recorded = run_analysis(filled_file, "toy", ARITHMETIC, publish_to=tracking_uri)
        client = MlflowClient(tracking_uri=tracking_uri)
        client.delete_experiment(client.get_run(recorded.mlflow_run_id or "").info.experiment_id)
        again = run_analysis(filled_file, "toy", ARITHMETIC, publish_to=tracking_uri)
        assert again.publishing_problem is None
        assert again.mlflow_run_id in {run.info.run_id for run in mlflow_runs(tracking_uri)}

    def test_the_store_alone_rebuilds_what_mlflow_showed(
        self, filled: sa.Engine, tracking_uri: str, mlflow_template: Path, tmp_path: Path
    ) -> None:
        run_analysis(filled, "toy", ARITHMETIC, {"seed": 1}, publish_to=tracking_uri)
        publish_missing(filled, tracking_uri)
        before = published_content(tracking_uri, tmp_path / "before")
        another = tmp_path / "other"
        another.mkdir()
        shutil.copy(mlflow_template, another / "mlflow.db")
        shutil.rmtree(tmp_path / "mlartifacts")
        (tmp_path / "mlflow.db").unlink()
        assert publish_missing(filled, f"sqlite:///{another / 'mlflow.db'}").n_new == 6
        after = published_content(f"sqlite:///{another / 'mlflow.db'}", tmp_path / "after")
        assert len(before) == 6
        assert after == before

    @pytest.mark.parametrize("n", [3, pytest.param(8, marks=pytest.mark.soak)])
    def test_processes_at_once_share_a_fresh_store(self, filled_file: sa.Engine, tmp_path: Path, more, n: int) -> None:
        second = connect(f"sqlite:///{tmp_path / 'second.db'}")
        more(second, "second")
        fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
        urls = [str(engine.url) for engine in (filled_file, second)]
        filled_file.dispose()
        second.dispose()
        processes = [
            fork(partial(main, ["publish", "--tracking-uri", fresh, "--database", url]), tmp_path / f"output{i}")
            for i, url in enumerate(urls * (n // 2) + urls[: n % 2])
        ]
        text = [process.wait() for process in processes]
        assert [process.returncode for process in processes] == [0] * n, text
        assert all(output.count("\n") == 1 and "shows 5 runs" in output for output in text), text
        assert len(mlflow_runs(fresh)) == 10
        assert not (tmp_path / "mlruns").exists()


class TestErrors:
    @pytest.mark.parametrize(
        ("uri", "words"),
        [
            ("file:///tmp/mlruns", "no longer supports plain folders"),
            ("./mlruns", "is not an MLflow tracking URI"),
            ("oracle://me@host/db", "begins with oracle:"),
            ("sqlite://", "does not name a file"),
            ("sqlite:///:memory:", "does not name a file"),
            ("sqlite:////no/such/folder/mlflow.db", "The folder /no/such/folder for MLflow's file does not exist"),
        ],
    )
    def test_uris_that_can_never_work_are_refused(self, filled_file: sa.Engine, uri: str, words: str) -> None:
        with pytest.raises(PublishingError, match=words):
            publish_missing(filled_file, uri)

    @pytest.mark.parametrize(
        "uri",
        [
            "postgresql://me:hunter2@host:abc/x", "postgresql://me:hunter2@host:99999/x", "http://me:hunter2@host:0",
            "postgresql://me:hun/hunter2@host/x", "postgresql://me:hun@hunter2@host/x", "http://me:hunter2@[::1",
        ],
    )  # fmt: skip
    def test_a_wrong_port_or_host_is_one_sentence_without_the_password(self, filled_file: sa.Engine, uri: str) -> None:
        with pytest.raises(PublishingError, match="host or port in the MLflow tracking URI is not valid") as caught:
            publish_missing(filled_file, uri)
        assert "hunter2" not in str(caught.value)

    def test_our_own_store_is_no_place_for_mlflow(self, filled_file: sa.Engine) -> None:
        with pytest.raises(PublishingError, match="is the Suffrage store itself"):
            publish_missing(filled_file, str(filled_file.url))

    def test_a_file_that_is_no_database_is_one_sentence(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        (tmp_path / "broken.db").write_bytes(b"not a database" * 100)
        with pytest.raises(PublishingError, match=r"file is not a database.*with `suffrage publish`"):
            publish_missing(filled_file, f"sqlite:///{tmp_path / 'broken.db'}")

    def test_a_store_that_cannot_be_reached_is_one_sentence_without_its_password(self, filled_file: sa.Engine) -> None:
        with pytest.raises(PublishingError) as caught:
            publish_missing(filled_file, "http://me:hunter2@127.0.0.1:9/")
        assert "hunter2" not in str(caught.value)
        assert "http://me:***@127.0.0.1:9" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_database_server_that_is_away_is_one_sentence_without_its_password(self, filled_file: sa.Engine) -> None:
        with pytest.raises(PublishingError) as caught:
            publish_missing(filled_file, "postgresql://me:hunter2@127.0.0.1:9/mlflow?connect_timeout=2")
        assert "hunter2" not in str(caught.value)
        assert "\n" not in str(caught.value)
