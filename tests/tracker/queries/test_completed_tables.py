"""Analyses under policies that they do not treat themselves, beside analyses of tables filled in by hand."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from filled_stores import add_scores
from numpy.typing import NDArray

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import SelectionError
from tracker.queries.findings.finding_records import FindingRecord, get_finding, list_findings, load_artifact
from tracker.queries.findings.looks import DeclaredTest
from tracker.queries.findings.summary import Summary
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.ranking.completions import load_completions
from tracker.queries.selection import Policy, Selection
from tracker.queries.sql import tables
from tracker.recording.finding import Finding, Metric, Report, Undefined
from tracker.recording.inputs.combined_report import TABLE, combine_reports
from tracker.recording.pipeline import compute_report, run_analysis
from tracker.recording.reproduction.reproduction import list_reproducible, reproduce
from tracker.statistics.missing_scores import impute

N, MODELS = 48, ("best", "gap", "other", "weak", "zero")
RNG = np.random.default_rng(11)
ABILITY = np.array([2.0, 1.0, 0.3, -0.4, -1.0])
Q = (RNG.random((N, 5)) < 1 / (1 + np.exp(-ABILITY - RNG.normal(size=(N, 1))))).astype(float)
COVERAGE = 0.8
"""Each task has 12 prompts, so one missing score is much."""
MISSING = [(3, 0), (9, 1), (20, 1), (31, 2)]
FAVOURED: Mapping[str, tuple[str, ...]] = {
    "all worst": (),
    "all best": MODELS,
    "leader worst, rest best": MODELS[1:],
    "leader best, rest worst": MODELS[:1],
}
ANALYSES: Mapping[str, Mapping[str, Any]] = {
    "voting-rules": {"time_limit": 0.0},
    "social-choice": {"time_limit": 0.0},
    "weight-robustness": {"n_draws": 200},
    "task-subsets": {},
    "sensitivity-sweep": {"time_limit": 0.0},
    "prompt-weighting": {"max_clusters": 4},
    "prompt-correlation": {"n_permutations": 99},
    "prompt-clusters": {"max_clusters": 3, "n_permutations": 39},
    "benchmark-growth": {},
    "smart-filtering": {
        "without_similar": True,
        "without_confidence": True,
        "allow_unknown": True,
        "n_models": 3,
        "n_draws": 20,
    },
    "mixed-model": {},
}
NEED_WHOLE = {"smart-filtering", "prompt-correlation", "prompt-clusters"}
"""Imputed scores are rounded for them."""
TREAT_IMPUTED = set(ANALYSES) - {"prompt-correlation", "prompt-clusters"}


def gappy() -> NDArray[np.float64]:
    table = Q.copy()
    table[tuple(zip(*MISSING, strict=True))] = np.nan
    return table


def fill(favoured: tuple[str, ...]) -> NDArray[np.float64]:
    best = np.isin(MODELS, favoured)
    return np.where(np.isnan(gappy()), best.astype(float), gappy())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """The table with gaps as `gaps`, and each of its completions as a benchmark."""
    engine = connect(f"sqlite:///{tmp_path_factory.mktemp('completions')}/suffrage.db")
    tasks = [f"t{i % 4}" for i in range(N)]
    scores = {"gaps": gappy(), **{label: fill(favoured) for label, favoured in FAVOURED.items()}}
    scores["imputed"] = np.where(np.isnan(gappy()), np.clip(impute(gappy()), 0, 1), gappy())
    scores["rounded"] = np.where(np.isnan(gappy()), scores["imputed"] >= 0.5, gappy())
    for name, table in scores.items():
        add_scores(engine, table, models=MODELS, benchmark=name, tasks=tasks)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE metric SET lower = 0, upper = 1"))
    yield engine
    engine.dispose()


def numbers(metrics: Mapping[str, Metric]) -> dict[str, float]:
    values = {name: value for name, value in metrics.items() if not isinstance(value, Undefined)}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def column(table: pa.Table, label: str) -> dict[str, float]:
    values = zip(table["metric"].to_pylist(), table[label].to_pylist(), strict=True)
    return {name: value for name, value in values if value is not None and math.isfinite(value)}


def test_the_leader_has_a_gap(store: sa.Engine) -> None:
    with transaction(store, write=False) as session:
        assert load_performance_matrix(
            session, Selection(benchmark="gaps", min_coverage=COVERAGE, missing="bounds")
        ).leaders == ("best",)


@pytest.mark.parametrize("name", ANALYSES)
def test_bounds_have_the_metrics_of_each_extreme_table(store: sa.Engine, name: str) -> None:
    selection = Selection(benchmark="gaps", min_coverage=COVERAGE, missing="bounds")
    report = compute_report(store, name, selection, ANALYSES[name])
    table = report.tables[TABLE]
    assert table.column_names == ["metric", "measured", *FAVOURED, "low", "high"]
    for label in FAVOURED:
        filled = compute_report(store, name, Selection(benchmark=label, missing="worst"), ANALYSES[name])
        assert column(table, label) == pytest.approx(numbers(filled.finding.metrics), rel=1e-9, abs=1e-12)
    rows = table.to_pylist()
    for row in rows:
        values = [row[label] for label in ("measured", *FAVOURED) if row[label] is not None]
        assert not values or (row["low"], row["high"]) == (min(values), max(values))
    default = compute_report(store, name, Selection(benchmark="gaps", min_coverage=COVERAGE), ANALYSES[name])
    assert column(table, "measured") == numbers(default.finding.metrics)
    assert any("completions of the table" in text for text in report.summary.caveats)


@pytest.mark.parametrize("name", ANALYSES)
def test_imputed_scores_give_the_metrics_of_the_imputed_table(store: sa.Engine, name: str) -> None:
    selection = Selection(benchmark="gaps", min_coverage=COVERAGE, missing="impute")
    report = compute_report(store, name, selection, ANALYSES[name])
    filled_in = "rounded" if name in NEED_WHOLE else "imputed"
    filled = compute_report(store, name, Selection(benchmark=filled_in, missing="fail"), ANALYSES[name])
    expected = numbers(filled.finding.metrics)
    if name == "mixed-model":
        assert TABLE not in report.tables
    elif name in TREAT_IMPUTED:
        assert numbers(report.finding.metrics) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    else:
        common = compute_report(store, name, Selection(benchmark="gaps", min_coverage=COVERAGE), ANALYSES[name])
        assert numbers(report.finding.metrics) == numbers(common.finding.metrics)
        assert column(report.tables[TABLE], "imputed") == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert "imputed scores have the structure of their fit" in report.summary.caveats[0]


@pytest.mark.parametrize(("name", "min_coverage"), [("prompt-correlation", COVERAGE), ("mixed-model", None)])
def test_a_finding_is_recorded_with_its_policy_and_can_be_reproduced(
    store: sa.Engine, name: str, min_coverage: float | None
) -> None:
    selection = Selection(benchmark="gaps", min_coverage=min_coverage, missing="bounds")
    recorded = run_analysis(store, name, selection, ANALYSES[name])
    with store.connect() as connection:
        query = sa.text("SELECT selection FROM finding WHERE id = :id")
        chosen = connection.execute(query, {"id": recorded.finding_id}).scalar_one()
    assert '"missing": "bounds"' in chosen
    assert "favoured" not in chosen
    (again,) = reproduce(store, list_reproducible(store, [recorded.finding_id]))
    assert again.result == "equal", again.details
    assert recorded.report.finding.n_prompts == N - len(MISSING) * (name != "mixed-model")  # of measured scores


def test_a_complete_table_is_analyzed_once(store: sa.Engine) -> None:
    selection = Selection(benchmark="all best", missing="bounds")
    bounds, fail = (
        compute_report(store, "voting-rules", replace(selection, missing=missing), {"time_limit": 0.0})
        for missing in ("bounds", "fail")
    )
    assert TABLE not in bounds.tables
    assert bounds.finding.metrics == fail.finding.metrics
    assert bounds.summary == fail.summary


def read_metrics(store: sa.Engine, finding: FindingRecord) -> dict[str, float]:
    metric = tables.finding_metric.c
    defined = (metric.finding_id == finding.id) & metric.value.is_not(None)
    with transaction(store, write=False) as session:
        return dict(session.execute(sa.select(metric.name, metric.value).where(defined)).all())


def test_a_split_at_random_is_one_of_each_table(store: sa.Engine) -> None:
    findings = {}
    for benchmark, missing in (("gaps", "common"), ("gaps", "bounds"), *((label, "worst") for label in FAVOURED)):
        words = ("simulate", "split", benchmark, "--tasks", "4", "--trials", "2", "--time-limit", "0", "--no-mlflow")
        options = ("--system", "cardinal", "--missing", missing, "--database", store.url.render_as_string())
        result = CliRunner().invoke(suffrage, [*words, *options])
        assert result.exit_code == 0, result.output
        with transaction(store, write=False) as session:
            findings[benchmark, missing] = get_finding(session, list_findings(session, benchmark=benchmark)[0].id)
    bounds = findings["gaps", "bounds"]
    assert bounds.selection["missing"] == "bounds"
    assert read_metrics(store, bounds) == read_metrics(store, findings["gaps", "common"])
    with transaction(store, write=False) as session:
        table = pq.read_table(io.BytesIO(load_artifact(session, bounds.id, f"{TABLE}.parquet")))
    assert table.column_names == ["metric", "measured", *FAVOURED, "low", "high"]
    for label in FAVOURED:
        assert column(table, label) == pytest.approx(read_metrics(store, findings[label, "worst"]), rel=1e-12)


class TestCompletions:
    def labels(self, store: sa.Engine, **choices: Any) -> list[str]:
        with transaction(store, write=False) as session:
            selection = Selection(benchmark="gaps", missing="bounds", **choices)

            def load(chosen: Selection) -> dict[str, PerformanceMatrix]:
                return {"scores": load_performance_matrix(session, chosen)}

            measured = load(replace(selection, missing="common"))
            return [item.label for item in load_completions(load, selection, measured)]

    def test_equal_ones_count_once(self, store: sa.Engine) -> None:
        assert self.labels(store) == list(FAVOURED)
        assert self.labels(store, models=("best", "weak", "zero")) == ["all worst", "all best"]
        assert self.labels(store, models=("gap", "other", "weak")) == list(FAVOURED)
        assert self.labels(store, models=("weak", "zero")) == []

    def test_a_task_with_few_scores_has_all_in_each(self, store: sa.Engine) -> None:
        """A missing score is more than the least coverage of a task of 12 prompts leaves."""
        selection = Selection(benchmark="gaps", missing="bounds")
        report = compute_report(store, "voting-rules", selection, ANALYSES["voting-rules"])
        for label in FAVOURED:
            filled = compute_report(
                store, "voting-rules", Selection(benchmark=label, missing="fail"), ANALYSES["voting-rules"]
            )
            assert column(report.tables[TABLE], label) == pytest.approx(numbers(filled.finding.metrics))

    def test_a_metric_without_bounds_has_none(self, sqlite_store: sa.Engine) -> None:
        add_scores(sqlite_store, gappy(), models=MODELS, metric="points", tasks=[f"t{i % 4}" for i in range(N)])
        with pytest.raises(SelectionError, match="no bounds"):
            compute_report(sqlite_store, "voting-rules", Selection(benchmark="b", missing="bounds"))


class Numbers(Finding):
    def __init__(self, **values: Metric) -> None:
        object.__setattr__(self, "values", values)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        values: Mapping[str, Metric] = self.__dict__["values"]
        return values


def report(leader: str, **values: Metric) -> Report:
    return Report(Numbers(**values), summary=Summary("The result."), leaders=(leader,))


TESTS = (DeclaredTest(name="size", pvalues=("exact", "p")), DeclaredTest(name="place", pvalues=("q",)))


class TestCombinedReport:
    def combine(self, completed: Mapping[str, Report], policy: Policy = "bounds") -> Report:
        measured = report("a", exact=Undefined("too few"), p=0.01, q=0.3)
        return combine_reports(measured, completed, policy=policy, tests=TESTS)

    def test_a_pvalue_is_the_largest(self) -> None:
        combined = self.combine({"all worst": report("a", p=0.04, q=0.2), "all best": report("a", p=0.02, q=0.4)})
        assert numbers(combined.finding.metrics) == {"p": 0.04, "q": 0.4}
        assert combined.summary.headline == "The result."
        assert "the first place stays with a, and p at most 0.04 (size), 0.4 (place)" in combined.summary.caveats[0]

    def test_the_headline_names_what_missing_scores_decide(self) -> None:
        combined = self.combine({"all worst": report("a", p=0.2, q=0.2), "all best": report("b", p=0.01, q=0.1)})
        assert combined.leaders == ("a", "b")
        headline = "Missing scores decide who is first (a, b) and the test of size (p from 0.01 to 0.2)."
        assert combined.summary.headline == headline
        assert combined.summary.evidence[0] == "On measured scores: The result."

    def test_an_undefined_pvalue_decides_nothing(self) -> None:
        combined = self.combine({"all worst": report("a", p=Undefined("constant"), q=0.2)})
        assert numbers(combined.finding.metrics) == {"p": 0.01, "q": 0.3}
        assert combined.tables[TABLE].to_pylist()[1] == {
            "metric": "p", "measured": 0.01, "all worst": None, "low": 0.01, "high": 0.01,
        }  # fmt: skip

    def test_imputed_scores_leave_the_tests_alone(self) -> None:
        combined = self.combine({"imputed": report("b", p=0.9, q=0.9)}, "impute")
        assert numbers(combined.finding.metrics) == {"p": 0.01, "q": 0.3}
        assert combined.leaders == ("b",)
        assert combined.summary.caveats[0].endswith("First with imputed scores: b.")

    def test_a_caveat_that_has_no_place_becomes_a_warning(self) -> None:
        measured = Report(Numbers(p=0.1), summary=Summary("x", (), ("1", "2", "3")), leaders=("a",))
        combined = combine_reports(measured, {"all worst": measured}, policy="bounds", tests=())
        assert combined.summary.caveats[1:] == ("1", "2")
        assert combined.warnings == ("3",)
