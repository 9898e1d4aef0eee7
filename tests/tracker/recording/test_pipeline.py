"""Running an analysis and recording its finding."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.database import transaction
from tracker.errors import ConflictError, NotFoundError, PluginError, PublishingError, SelectionError
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.findings.staleness import list_stale_findings
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.weights import PromptWeights
from tracker.recording.artifacts import decode_table, encode_arrays
from tracker.recording.declaration import load_declaration
from tracker.recording.mlflow.publishing import publish_finding, publish_missing
from tracker.recording.pipeline import RecordedFinding, run_analysis
from tracker.schema import metadata


def decode_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The inverse of `encode_arrays`."""
    table = decode_table(content)
    return {
        field.name: column.chunk(0)
        .flatten()
        .to_numpy(zero_copy_only=False)
        .reshape(json.loads((field.metadata or {})[b"shape"]))
        for field, column in zip(table.schema, table.columns, strict=True)
    }


THREADS = '''
"""How many workers compute at once?"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Barrier, BrokenBarrierError

from joblib import Parallel, delayed

from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, Report, Summary, analysis


@dataclass(frozen=True, kw_only=True)
class Threads(Finding):
    n_workers: int


def met(barrier: Barrier) -> bool:
    try:
        barrier.wait(timeout=2)
    except BrokenBarrierError:
        return False
    return True


@analysis
def analyze(scores: PerformanceMatrix) -> Report:
    barrier = Barrier(2)
    n_workers = 1 + all(Parallel()(delayed(met)(barrier) for _ in range(2)))
    return Report(Threads(n_workers=n_workers), summary=Summary(f"{n_workers} at once."))
'''

ON_A_DEVICE = '''
"""Where is it computed?"""

from __future__ import annotations

from dataclasses import dataclass

from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import CPU, Device, Finding, Report, Summary, analysis


@dataclass(frozen=True, kw_only=True)
class Size(Finding):
    n: int


@analysis
def analyze(scores: PerformanceMatrix, *, seed: int = 0, device: Device = CPU) -> Report:
    print(f"computed on {device}")
    return Report(Size(n=scores.n_models), summary=Summary("Done."))
'''

ARITHMETIC = Selection(benchmark="arithmetic")


def rows(engine: sa.Engine, table: sa.TableClause) -> list[sa.Row]:
    with transaction(engine, write=False) as session:
        return list(session.execute(sa.select(table).order_by(*metadata.tables[table.name].primary_key)))


def contents(engine: sa.Engine, recorded: RecordedFinding) -> dict[str, object]:
    """Metrics and artifacts of a finding, with the number's repr and the bytes."""
    custom = recorded.finding_id
    metrics = {m.name: (repr(m.value), m.reason) for m in rows(engine, tables.finding_metric) if m.finding_id == custom}
    files = {a.name: bytes(a.content) for a in rows(engine, tables.finding_artifact) if a.finding_id == custom}
    return metrics | files


@pytest.mark.usefixtures("toys")
class TestRecord:
    def test_everything_of_a_report_is_in_the_store(self, filled: sa.Engine) -> None:
        recorded = run_analysis(filled, "toy", ARITHMETIC, {"seed": 3, "method": "fancy"})
        [analysis] = rows(filled, tables.finding)
        assert (analysis.id, analysis.analysis, analysis.seed, analysis.status) == (
            recorded.finding_id,
            "toy",
            3,
            "complete",
        )
        assert analysis.parameters == {
            "n_blocks": 8,
            "method": "fancy",
            "quantiles": [0.25, 0.75],
            "threshold": None,
            "verbose": False,
            "label": "",
            "seed": 3,
        }
        assert analysis.selection["benchmark"] == "arithmetic"
        assert analysis.headline.startswith("On 40 prompts the mean score is 0.")
        assert analysis.code_version.startswith("toys-plugin 1.2, toy.py ")
        assert set(analysis.timings) == {"load", "compute", "draw"}
        with transaction(filled, write=False) as session:
            assert analysis.input_digest == PerformanceMatrix.load(session, ARITHMETIC).digest
        assert [(r.role, r.checksum) for r in rows(filled, tables.finding_run)] == [
            ("scores", f"{number:032x}") for number in range(5)
        ]
        metrics = {m.name: (m.value, m.reason) for m in rows(filled, tables.finding_metric)}
        assert set(metrics) == {"mean", "spread", "undefined", "boundless", "untested", "n_prompts"}
        assert metrics["n_prompts"] == (40.0, None)
        assert metrics["untested"] == (None, "invariant under this null")
        assert metrics["undefined"] == (None, "not a number")
        assert metrics["boundless"] == (None, "infinite")
        files = {a.name: a for a in rows(filled, tables.finding_artifact)}
        assert {name: file.media_type.rpartition("/")[2] for name, file in files.items()} == {
            "arrays.parquet": "vnd.apache.parquet",
            "quantiles.parquet": "vnd.apache.parquet",
            "draws.png": "png",
        }
        arrays = decode_arrays(files["arrays.parquet"].content)
        assert arrays["grid"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert arrays["draws"].shape == (8,)
        assert decode_table(files["quantiles.parquet"].content).column_names == ["q", "value"]
        assert bytes(files["draws.png"].content)[:8] == b"\x89PNG\r\n\x1a\n"

    def test_values_that_are_not_numbers_have_no_row(self, filled: sa.Engine) -> None:
        run_analysis(filled, "toy", ARITHMETIC)
        assert len(rows(filled, tables.prompt_value)) == 39
        assert len(rows(filled, tables.task_value)) == 2
        ranked = rows(filled, tables.ranking)
        assert sorted(row.rank for row in ranked) == [1, 2, 3, 4, 5]
        assert all(row.low == pytest.approx(row.score - 1) and row.high is None for row in ranked)

    @pytest.mark.parametrize(
        ("label", "error", "message"),
        [
            ("refuse", SelectionError, "Choose another"),
            ("bug", ZeroDivisionError, "ZeroDivisionError: a bug"),
        ],
    )
    def test_a_failed_analysis_is_recorded_with_its_error_runs_and_inputs(
        self, filled: sa.Engine, label: str, error: type[Exception], message: str
    ) -> None:
        complete = run_analysis(filled, "toy", ARITHMETIC).finding_id
        with pytest.raises(error):
            run_analysis(filled, "toy", ARITHMETIC, {"label": label})
        succeeded, failed = rows(filled, tables.finding)
        assert (failed.status, failed.headline, failed.parameters["label"]) == ("failed", None, label)
        assert message in failed.error
        assert (succeeded.status, succeeded.error, succeeded.input_digest) == ("complete", None, failed.input_digest)
        for table in (tables.finding_metric, tables.finding_artifact, tables.prompt_value, tables.ranking):
            assert {row.finding_id for row in rows(filled, table)} == {complete}
        runs = [(row.finding_id, row.run_id) for row in rows(filled, tables.finding_run)]
        assert [run for key, run in runs if key == complete] == [run for key, run in runs if key == failed.id] != []

    def test_a_failed_analysis_is_never_published_nor_an_input_nor_stale(
        self, filled: sa.Engine, tracking_uri: str
    ) -> None:
        with pytest.raises(ZeroDivisionError):
            run_analysis(filled, "toy", ARITHMETIC, {"label": "bug"}, publish_to=tracking_uri)
        [failed] = rows(filled, tables.finding)
        with pytest.raises(NotFoundError):
            publish_finding(filled, failed.id, tracking_uri)
        assert ("finding", failed.id) not in publish_missing(filled, tracking_uri).mlflow_runs
        with transaction(filled, write=False) as session:
            with pytest.raises(SelectionError, match="has no weights"):
                PromptWeights.load(session, replace(ARITHMETIC, weights=str(failed.id)))
            with pytest.raises(SelectionError, match="is not a filter"):
                PromptFilter.load(session, replace(ARITHMETIC, filter=failed.id))
            assert list_stale_findings(session) == {}

    def test_no_transaction_is_open_while_an_analysis_computes(self, filled: sa.Engine, install) -> None:
        install("probing", {"probe": PROBE})
        import probing.probe

        probing.probe.engine = filled
        run_analysis(filled, "probe", ARITHMETIC)
        assert rows(filled, tables.task_value) == []
        assert {b.name for b in rows(filled, tables.benchmark)} == {"arithmetic", "written while computing"}

    def test_a_run_deleted_meanwhile_is_a_clear_error(self, filled: sa.Engine, install) -> None:
        install("probing", {"probe": PROBE.replace("# here", "session.execute(sa.delete(tables.run))")})
        import probing.probe

        probing.probe.engine = filled
        with pytest.raises(ConflictError, match="deleted while it was being analysed"):
            run_analysis(filled, "probe", ARITHMETIC)
        [failed] = rows(filled, tables.finding)
        assert (failed.status, rows(filled, tables.finding_run)) == ("failed", [])
        assert "deleted while it was being analysed" in failed.error


PROBE = '''
"""Write while computing."""
import sqlalchemy as sa
from dataclasses import dataclass
from tracker.database import transaction
from tracker.queries.sql import tables
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, Report, Summary, analysis

engine = None

@dataclass(frozen=True, kw_only=True)
class Nothing(Finding):
    n: int

@analysis
def analyze(scores: PerformanceMatrix) -> Report:
    with transaction(engine) as session:
        session.execute(sa.insert(tables.benchmark).values(name="written while computing", revision=""))
        # here
    return Report(Nothing(n=scores.n_models), summary=Summary("nothing"))
'''


@pytest.mark.usefixtures("toys")
class TestLaws:
    def test_the_number_of_workers_is_that_of_the_option(self, filled_file: sa.Engine, install) -> None:
        install("counting", {"counting_threads": THREADS})
        for workers in (1, 2):
            recorded = run_analysis(filled_file, "counting-threads", ARITHMETIC, workers=workers)
            assert recorded.report.finding.n_workers == workers

    def test_the_device_reaches_the_analysis_and_is_not_recorded(
        self, filled_file: sa.Engine, install, capsys: pytest.CaptureFixture[str]
    ) -> None:
        install("located", {"on_a_device": ON_A_DEVICE})
        for device in ("cpu", "cuda:1"):
            run_analysis(filled_file, "on-a-device", ARITHMETIC, device=device)
            assert capsys.readouterr().out == f"computed on {device}\n"
        first, second = rows(filled_file, tables.finding)
        assert first.parameters == second.parameters == {"seed": 0}

    @pytest.mark.parametrize(
        ("analysis", "workers", "words"),
        [
            ("toy", 1, "toy computes on the CPU only. Leave --device out."),
            ("on-a-device", "tcp://127.0.0.1:1", "on CPUs only. Leave --device or --cluster out."),
        ],
    )
    def test_a_device_that_cannot_be_used_is_an_error_and_nothing_is_recorded(
        self, filled_file: sa.Engine, install, analysis: str, workers: int | str, words: str
    ) -> None:
        install("located", {"on_a_device": ON_A_DEVICE})
        with pytest.raises(SelectionError, match=words):
            run_analysis(filled_file, analysis, ARITHMETIC, workers=workers, device="cuda")
        assert rows(filled_file, tables.finding) == []

    def test_same_inputs_parameters_and_seed_give_the_same_bytes_for_any_number_of_workers(
        self, filled_file: sa.Engine
    ) -> None:
        item, two, three = (run_analysis(filled_file, "toy", ARITHMETIC, workers=workers) for workers in (1, 2, 3))
        expected = contents(filled_file, item)
        assert len(expected) == 9
        assert contents(filled_file, two) == expected
        assert contents(filled_file, three) == expected

    def test_another_seed_gives_other_draws(self, filled_file: sa.Engine) -> None:
        item, two = (run_analysis(filled_file, "toy", ARITHMETIC, {"seed": seed}) for seed in (0, 1))
        assert contents(filled_file, item)["spread"] != contents(filled_file, two)["spread"]
        digests = {row.input_digest for row in rows(filled_file, tables.finding)}
        assert len(digests) == 1

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros(0),
            np.zeros((0, 3)),
            np.zeros((2, 0)),
            np.array(1.5),
            np.array([True, False]),
            np.array(["a", "é"]),
            np.arange(24, dtype=np.int32).reshape(2, 3, 4),
            np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            np.array([np.nan, np.inf, -0.0]),
        ],
        ids=lambda array: f"{array.dtype}{array.shape}",
    )
    def test_arrays_come_back_as_they_were_stored(self, array: np.ndarray) -> None:
        back = decode_arrays(encode_arrays({"a": array, "b": np.zeros(1)}))["a"]
        assert back.shape == array.shape
        np.testing.assert_array_equal(back.astype(array.dtype), array)


@pytest.mark.usefixtures("toys")
class TestErrors:
    def test_an_unknown_analysis_names_those_that_are_near(self, filled_file: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match="Did you mean 'prompt-correlation'"):
            run_analysis(filled_file, "prompt-corelation", ARITHMETIC)

    def test_an_unknown_parameter_is_refused_with_those_that_exist(self, filled_file: sa.Engine) -> None:
        with pytest.raises(SelectionError, match=r"toy has no parameter 'n_block'\. Parameters: n_blocks, method"):
            run_analysis(filled_file, "toy", ARITHMETIC, {"n_block": 2})

    def test_a_number_too_large_to_keep_is_refused(self, filled_file: sa.Engine) -> None:
        with pytest.raises(SelectionError, match=r"seed is 9007199254740993; it must be at most 9007199254740992\."):
            run_analysis(filled_file, "toy", ARITHMETIC, {"seed": 2**53 + 1})
        run_analysis(filled_file, "toy", ARITHMETIC, {"seed": 2**53})
        assert rows(filled_file, tables.finding)[0].parameters["seed"] == 2**53

    def test_an_unknown_benchmark_is_refused(self, filled_file: sa.Engine) -> None:
        with pytest.raises(NotFoundError, match="Did you mean 'arithmetic'"):
            run_analysis(filled_file, "toy", Selection(benchmark="aritmetic"))

    def test_a_tracking_uri_that_can_never_work_is_refused_before_anything_is_computed(
        self, filled_file: sa.Engine
    ) -> None:
        with pytest.raises(PublishingError, match=r"Use sqlite:///FILE\.db"):
            run_analysis(filled_file, "toy", ARITHMETIC, publish_to="file:./mlruns")
        assert rows(filled_file, tables.finding) == []

    def test_what_is_not_a_report_is_refused(self, filled_file: sa.Engine, install) -> None:
        source = (
            PROBE.replace("with transaction(engine) as session:", "if True:")
            .replace("session.execute(", "str(")
            .replace('return Report(Nothing(n=scores.n_models), summary=Summary("nothing"))', "return 3")
        )
        install("wrong", {"three": source})
        with pytest.raises(PluginError, match="three returned a int, not a Report"):
            run_analysis(filled_file, "three", ARITHMETIC)

    def test_a_declaration_can_be_run_in_place_of_a_name(self, filled_file: sa.Engine) -> None:
        recorded = run_analysis(filled_file, load_declaration("toy"), ARITHMETIC)
        assert recorded.analysis == "toy"
        assert recorded.mlflow_run_id is None
