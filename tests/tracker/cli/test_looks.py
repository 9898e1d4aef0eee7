"""`suffrage looks`, and the line about looks in summaries: the recorded tests of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.queries.findings.finding_records import load_finding_records
from tracker.queries.findings.looks import UNRECORDED, ReportMetrics, describe_looks, list_looks
from tracker.queries.resolution import find_benchmark
from tracker.recording.declaration import load_declaration
from tracker.recording.multiplicity.looks import add_recorded_looks
from tracker.recording.registry import discover_analyses, discover_tests
from tracker.schema.catalogue import Benchmark
from tracker.schema.findings import FindingMetric, StoredFinding
from tracker.statistics.multiple_testing import holm_values

DATA = ReportMetrics.describe_data({"seed": 0}, {"benchmark": "b", "metric": "m"}, "digest")


def store_findings(engine: sa.Engine, *findings: Mapping[str, object]) -> None:
    """Store findings of the benchmark b, each with columns and metrics; a second benchmark has one with a test."""
    with transaction(engine) as session:
        first, second = Benchmark(name="b"), Benchmark(name="c")
        session.add_all([first, second])
        session.flush()
        elsewhere = {"benchmark_id": second.id, "analysis": "comparison", "metrics": {"pvalue": 0.001}}
        for place, columns in enumerate((*findings, elsewhere)):
            data = {"benchmark_id": first.id, "parameters": {}, "selection": {}, "input_digest": str(place)}
            values = data | {name: value for name, value in columns.items() if name != "metrics"}
            finding = StoredFinding(code_version="", **values)
            session.add(finding)
            session.flush()
            for name, value in columns.get("metrics", {}).items():
                reason = "untested" if value is None else None
                session.add(FindingMetric(finding_id=finding.id, name=name, value=value, reason=reason))


def find_looks(engine: sa.Engine, unrecorded: ReportMetrics | None = None):
    with transaction(engine, write=False) as session:
        return list_looks(session, find_benchmark(session, "b").id, discover_tests(), unrecorded)


REPEATED = {
    "analysis": "comparison",
    "parameters": {"seed": 0},
    "selection": {"metric": "m", "benchmark": "b"},
    "input_digest": "digest",
}
FINDINGS = (
    {**REPEATED, "metrics": {"pvalue": 0.03}},
    {"analysis": "drift", "metrics": {"smallest.holm": 0.004, "n_tests": 3.0}, "stale": "a run was deleted"},
    {"analysis": "comparison", "metrics": {"pvalue": 0.5, "equivalence.pvalue": 0.01, "tasks.holm": None}},
    {"analysis": "social-choice", "metrics": {"pvalue": 0.001}},
    {"analysis": "comparison", "metrics": {"mcnemar.pvalue": 0.001}},
    {"analysis": "comparison", "metrics": {"pvalue": 0.001}, "status": "failed"},
    {**REPEATED, "selection": {"benchmark": "B", "metric": "m"}, "metrics": {"pvalue": 0.02}},
    {**REPEATED, "parameters": {"seed": 1}, "metrics": {"pvalue": 0.9}},
)
"""Only the first two, the two tests of the third, and the last are looks; the last but one repeats the first."""


def test_looks_on_every_engine(store_url: str) -> None:
    engine = connect(store_url)
    store_findings(engine, *FINDINGS)
    looks = find_looks(engine)
    assert [(look.findings, look.test, look.n_tests) for look in looks] == [
        ((1, 7), "difference", 1),
        ((2,), "changes", 3),
        ((3,), "difference", 1),
        ((3,), "equivalence", 1),
        ((8,), "difference", 1),
    ]
    assert [look.n_before for look in looks] == [0, 1, 2, 3, 4]
    assert [look.pvalue for look in looks] == [0.02, 0.004, 0.5, 0.01, 0.9]
    np.testing.assert_allclose([look.holm for look in looks], [0.08, 0.02, 1, 0.05, 1])
    with transaction(engine, write=False) as session:
        records = add_recorded_looks(session, load_finding_records(session))
    lines = {record.id: record.summary.looks for record in records}
    assert lines[2] == (
        "Looks: 1 recorded test of b came before, 3 after. Holm over all 5 leaves p = 0.02 (changes). "
        "Tests that were not recorded are not counted."
    )
    assert lines[7] == lines[1]
    assert "no recorded tests of b came before, 4 after" in lines[1]
    assert lines[3].startswith(
        "Looks: 2 recorded tests of b came before, 1 after. Holm over all 5 leaves p = 1 (difference), "
        "0.05 (equivalence). "
    )
    assert lines[4] == lines[5] == lines[6] == ""
    assert lines[9] == (
        "Looks: this is the first recorded test of c, so Holm leaves p = 0.001 (difference). "
        "Tests that were not recorded are not counted."
    )


def test_unrecorded_tests_are_counted_last_unless_they_repeat_recorded_ones(sqlite_url: str) -> None:
    engine = connect(sqlite_url)
    store_findings(engine, *FINDINGS[:2])
    new = ReportMetrics(key=UNRECORDED, analysis="comparison", about=("other",), metrics={"pvalue": 0.01})
    assert describe_looks(find_looks(engine, new), UNRECORDED, "b") == (
        "Looks: 2 recorded tests of b came before. Holm over all 3 leaves p = 0.03 (difference). "
        "Other tests that were not recorded are not counted, nor will this one be later."
    )
    again = ReportMetrics(key=UNRECORDED, analysis="comparison", about=DATA, metrics={"pvalue": 0.03})
    assert describe_looks(find_looks(engine, again), UNRECORDED, "b") == (
        "Looks: b has 2 recorded tests, this one among them. Holm over both leaves p = 0.06 (difference). "
        "Tests that were not recorded are not counted."
    )


def test_the_command_lists_the_newest_first(sqlite_url: str) -> None:
    store_findings(connect(sqlite_url), *FINDINGS)
    result = CliRunner().invoke(suffrage, ["looks", "b", "--format", "json", "--database", sqlite_url])
    rows = json.loads(result.stdout)
    assert [row["finding"] for row in rows] == [8, 3, 3, 2, 7]
    assert [row["pvalue"] for row in rows] == [0.9, 0.01, 0.5, 0.004, 0.02]
    assert [row["stale"] for row in rows] == [False, False, False, True, False]
    table = CliRunner().invoke(suffrage, ["looks", "b", "--database", sqlite_url])
    assert "b has 5 recorded tests: 3 significant alone, 2 after Holm over all" in table.output
    assert "Tests that were not recorded are not counted." in table.output


def test_every_declared_test_is_of_an_analysis() -> None:
    declared = discover_tests()
    assert set(declared) == {
        "comparison",
        "drift",
        "mixed-model",
        "prompt-clusters",
        "prompt-correlation",
        "rank-intervals",
        "semantic-similarity",
    }
    for name, tests in declared.items():
        assert load_declaration(name)
        assert all(test.pvalues for test in tests)
        assert set(discover_analyses()[name].options.get("n_tests", {})) <= {test.name for test in tests}


def adjust_slowly(pvalues: np.ndarray, families: np.ndarray, level: float) -> np.ndarray:
    """Which p-values Holm's procedure rejects at a level, step by step; a family counts after its rejection."""
    rejected = np.zeros(len(pvalues), dtype=bool)
    while True:
        counted = ~rejected | families
        more = ~rejected & (pvalues <= level / max(counted.sum(), 1))
        if not more.any():
            return rejected
        rejected |= more


@pytest.mark.parametrize("seed", range(20))
def test_adjusted_values_are_the_levels_at_which_the_procedure_rejects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pvalues, families = rng.random(6) ** 3, rng.random(6) < 0.5
    adjusted = holm_values(pvalues, families)
    for level in (0.01, 0.05, 0.2, 0.7):
        assert (adjusted <= level).tolist() == adjust_slowly(pvalues, families, level).tolist()


def test_verdicts_on_single_hypotheses_of_families_keep_their_level() -> None:
    """Two families and two single hypotheses; a verdict is on the hypothesis of a family with the smallest p-value."""
    rng, level, n_tables, n_wrong = np.random.default_rng(0), 0.05, 2000, 0
    for _ in range(n_tables):
        is_true = np.array([[True, False, True], [True, True, False], [True, True, True], [False, False, False]])
        pvalues = np.where(is_true, rng.random((4, 3)), rng.random((4, 3)) ** 8)
        smallest = [holm_values(row)[row.argmin()] for row in pvalues[:2]]
        adjusted = holm_values(
            np.array([*smallest, pvalues[2, 0], pvalues[3, 0]]), np.array([True, True, False, False])
        )
        verdicts = np.array([*(is_true[row, pvalues[row].argmin()] for row in (0, 1)), is_true[2, 0], is_true[3, 0]])
        n_wrong += bool((verdicts & (adjusted <= level)).any())
    assert n_wrong / n_tables <= level + 0.01
