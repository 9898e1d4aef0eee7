"""Analyses on a Dask cluster: the same bytes as alone, whatever happens to the workers.

The commands of docs/how-to/cluster.md are tested too.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pytest
import sqlalchemy as sa
from analysis_options import SCORES_ONLY
from click.testing import CliRunner
from distributed import Client, LocalCluster
from filled_stores import N_SIMULATED, add_simulated_benchmark

from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import ClusterError, SelectionError
from tracker.queries.selection import Selection
from tracker.recording.declaration import Declaration, load_declaration
from tracker.recording.finding import Report
from tracker.recording.inputs import workers
from tracker.recording.inputs.loading import load_inputs
from tracker.recording.inputs.workers import use_workers
from tracker.recording.pipeline import run_analysis
from tracker.recording.registry import discover_analyses
from tracker.statistics.cluster import backend
from tracker.statistics.cluster.backend import BlockError, ClusterBackend
from tracker.statistics.parallel.blocks import map_blocks

BLOCKS = SCORES_ONLY | {
    "n_permutations": 9,
    "n_resamples": 150,
    "n_draws": 1100,
    "n_subsets": 70,
    "n_orders": 11,
    "model_a": "maker 8/model",
    "model_b": "maker 2/model",
}
"""Few draws, and enough for two blocks or more."""
MANY_PERMUTATIONS = ("prompt-correlation", "semantic-similarity")
WITHOUT_DRAWS = ("social-choice",)
"""Its seed is that of searches that one process runs."""
DRAWING = [
    name
    for name in discover_analyses()
    if load_declaration(name).is_of_one_benchmark
    and any(parameter.name == "seed" for parameter in load_declaration(name).parameters)
    and name not in WITHOUT_DRAWS
]
QUICK = ("prompt-correlation", "rank-intervals")
"""Checked in every run, the rest in the soak: permutations with data of several calls, and a bootstrap."""


@pytest.fixture(autouse=True)
def _lasting_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is started again starts in the folder of this process, which must be there after the test."""
    monkeypatch.chdir(Path(__file__).parent)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A scheduler with two workers."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as started:
        yield started


@pytest.fixture(scope="module")
def store(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """A store with scores, vectors and a filter."""
    path = tmp_path_factory.mktemp("cluster") / "store.db"
    shutil.copy(sqlite_template, path)
    engine = connect(f"sqlite:///{path}")
    add_simulated_benchmark(engine, np.ones(N_SIMULATED, dtype=np.bool_))
    run_analysis(
        engine, "smart-filtering", Selection(benchmark="b"), choose_options(load_declaration("smart-filtering"))
    )
    yield engine
    engine.dispose()


def choose_options(declaration: Declaration) -> dict[str, Any]:
    options = dict(BLOCKS)
    if declaration.name in MANY_PERMUTATIONS:
        options["n_permutations"] = 101
    return {
        parameter.name: options[parameter.name] for parameter in declaration.parameters if parameter.name in options
    }


def contents(report: Report) -> tuple[dict[str, bytes], str]:
    """Every number of a finding, to the last bit."""
    finding = report.finding
    return {name: np.asarray(array).tobytes() for name, array in finding.arrays.items()}, repr(finding.metrics)


def assert_same_bytes(
    store: sa.Engine, address: str, name: str, after_block: Callable[[int, int], None] = lambda done, n_blocks: None
) -> None:
    """Run an analysis on a cluster and alone; at least two of its blocks were computed on the cluster."""

    def progress(*amount: int) -> None:
        done.append(amount)
        after_block(*amount)

    declaration, done = load_declaration(name), []
    selection = Selection(benchmark="b", encoder="random" if declaration.has_option("encoder") else None)
    inputs = load_inputs(store, declaration, selection, choose_options(declaration))
    assert contents(inputs.compute(address, progress)) == contents(inputs.compute(1))
    assert max(n_blocks for _, n_blocks in done) > 1
    assert done[-1][0] == done[-1][1]


@pytest.fixture
def other_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A function from whose call on this process has a Python that no worker has."""

    def change() -> None:
        monkeypatch.setattr(backend, "platform", SimpleNamespace(python_version=lambda: "3.0.0"))
        backend.list_versions.cache_clear()

    yield change
    monkeypatch.undo()
    backend.list_versions.cache_clear()


class TestLaws:
    @pytest.mark.parametrize(
        "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.soak) for name in DRAWING]
    )
    def test_every_drawing_analysis_gives_the_same_bytes_on_two_workers(self, store, cluster, name):
        assert_same_bytes(store, cluster.scheduler_address, name)

    @pytest.mark.soak
    @pytest.mark.parametrize("n_workers", [1, 4])
    def test_every_drawing_analysis_gives_the_same_bytes_on_any_number_of_workers(self, store, n_workers):
        with LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as started:
            for name in DRAWING:
                assert_same_bytes(store, started.scheduler_address, name)

    @pytest.mark.soak
    @pytest.mark.parametrize("name", DRAWING)
    def test_every_drawing_analysis_gives_the_same_bytes_after_a_worker_is_killed(self, store, cluster, name):
        with Client(cluster, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            victims = [min(client.run(os.getpid).values())]

        def kill(*_: int) -> None:
            if victims:
                os.kill(victims.pop(), signal.SIGKILL)

        assert_same_bytes(store, cluster.scheduler_address, name, kill)
        assert not victims

    def test_a_worker_that_dies_in_a_block_costs_only_time(self, cluster, tmp_path):
        table, marker = np.arange(20_000.0), tmp_path / "died"

        def square_or_die(block):
            if block == 3 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return float(table[block]) ** 2

        with use_workers(cluster.scheduler_address):
            assert map_blocks(square_or_die, 20) == [block**2 for block in range(20)]
        assert marker.exists()

    def test_data_reach_a_cluster_once(self, cluster):
        table = np.arange(20_000.0)
        with Client(cluster, set_as_default=False) as client:
            distributing = ClusterBackend(client)
            with joblib.parallel_config(backend=distributing):
                for power in (1, 2):
                    assert map_blocks(lambda block, power=power: table[block] ** power, 4)[3] == 3.0**power
            sent = [future for _, future in distributing._sent.values()]
            assert len(sent) == 3  # the table, and a function for each power
            [of_table] = [future for future in sent if future.result().nbytes == table.nbytes]
            assert (of_table.result() == table).all()


class TestErrors:
    def test_an_error_of_a_block_is_that_of_the_analysis(self, cluster):
        def fail(block):
            raise SelectionError(f"Block {block} fails.")

        with pytest.raises(SelectionError, match=r"Block . fails"), use_workers(cluster.scheduler_address):
            map_blocks(fail, 4)

    def test_a_cluster_that_cannot_be_reached_is_an_error(self, store, monkeypatch):
        monkeypatch.setattr(workers, "TIMEOUT", 0.5)
        with pytest.raises(ClusterError, match=r"No Dask scheduler answers at tcp://127.0.0.1:9.*`dask scheduler`"):
            run_analysis(store, "rank-intervals", Selection(benchmark="b"), workers="tcp://127.0.0.1:9")

    def test_a_cluster_without_workers_is_an_error(self, monkeypatch):
        monkeypatch.setattr(workers, "TIMEOUT", 0.5)
        with (
            LocalCluster(n_workers=0, dashboard_address=":0") as empty,
            pytest.raises(ClusterError, match=r"has no worker\. Start workers: dask worker"),
            use_workers(empty.scheduler_address),
        ):
            pass

    def test_a_worker_with_another_version_is_an_error(self, cluster, other_version):
        other_version()
        message = r"A worker has python 3.1\S+ instead of 3.0.0.*Install the same versions"
        with pytest.raises(ClusterError, match=message), use_workers(cluster.scheduler_address):
            pass

    def test_a_worker_that_joins_later_with_another_version_is_an_error(self, cluster, other_version):
        with use_workers(cluster.scheduler_address):
            other_version()
            with pytest.raises(BlockError, match=r"instead of 3\.0\.0"):
                map_blocks(abs, 3)

    @pytest.mark.soak
    def test_a_block_that_ends_every_worker_is_an_error(self):
        with (
            LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as started,
            pytest.raises(ClusterError, match="Several workers ended while they computed the same block"),
            use_workers(started.scheduler_address),
        ):
            map_blocks(lambda block: os.kill(os.getpid(), signal.SIGKILL), 2)

    def test_two_clusters_are_an_error(self, store):
        selection = Selection(benchmark="b", cluster="tcp://127.0.0.1:1")
        with pytest.raises(SelectionError, match="There are two clusters"):
            run_analysis(store, "rank-intervals", selection, workers="tcp://127.0.0.1:2")


class TestCommand:
    @pytest.mark.parametrize(
        ("analysis", "option"),
        [("rank-intervals", "--cluster"), ("prompt-correlation", "--cluster"), ("rank-intervals", "--workers")],
    )
    def test_the_command_takes_the_address_of_a_scheduler(self, store, cluster, analysis, option):
        draws = {"rank-intervals": "--n-resamples", "prompt-correlation": "--n-permutations"}[analysis]
        url = store.url.render_as_string()
        arguments = ["analyze", analysis, "b", draws, "150", "--no-mlflow", "--database", url]
        result = CliRunner().invoke(suffrage, [*arguments, option, cluster.scheduler_address], catch_exceptions=False)
        assert result.exit_code == 0
        assert "Recorded as finding" in result.stderr

    def test_other_values_of_workers_are_an_error(self, store):
        arguments = ["analyze", "rank-intervals", "b", "--workers", "host:8786"]
        result = CliRunner().invoke(suffrage, [*arguments, "--database", store.url.render_as_string()])
        assert result.exit_code == 2
        assert "an address such as tcp://host:8786" in " ".join(result.stderr.split())
