"""`suffrage looks`: the recorded tests of a benchmark."""

from __future__ import annotations

import json

import numpy as np
import sqlalchemy as sa
from click.testing import CliRunner

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.queries.findings.recorded_tests import list_recorded_tests
from tracker.recording.declaration import load_declaration
from tracker.recording.registry import discover_analyses, discover_tests
from tracker.schema.catalogue import Benchmark
from tracker.schema.findings import FindingMetric, StoredFinding
from tracker.statistics.multiple_testing import holm_values

PVALUES = (0.01, 0.04, 0.5)


def store_findings(engine: sa.Engine) -> None:
    """Three tests of one benchmark, a finding without a test, and one on another benchmark."""
    with transaction(engine) as session:
        first, second = Benchmark(name="b"), Benchmark(name="c")
        session.add_all([first, second])
        session.flush()
        for benchmark, analysis, name, value in (
            *((first.id, "comparison", "pvalue", p) for p in PVALUES),
            (first.id, "social-choice", "pvalue", 0.001),
            (first.id, "comparison", "other", 0.001),
            (second.id, "comparison", "pvalue", 0.001),
        ):
            finding = StoredFinding(
                benchmark_id=benchmark, analysis=analysis, parameters={}, selection={}, input_digest="", code_version=""
            )
            session.add(finding)
            session.flush()
            session.add(FindingMetric(finding_id=finding.id, name=name, value=value))


def test_recorded_tests_are_listed_with_holm_over_all(sqlite_url: str) -> None:
    engine = connect(sqlite_url)
    store_findings(engine)
    with transaction(engine, write=False) as session:
        rows = list_recorded_tests(session, "b", {"comparison": ("missing", "pvalue")})
    assert [row.pvalue for row in rows] == list(reversed(PVALUES))
    np.testing.assert_allclose([row.holm for row in rows], holm_values(np.array(PVALUES[::-1])))
    assert [row.n_before for row in rows] == [2, 1, 0]
    result = CliRunner().invoke(suffrage, ["looks", "b", "--format", "json", "--database", sqlite_url])
    assert [row["pvalue"] for row in json.loads(result.stdout)] == list(reversed(PVALUES))
    table = CliRunner().invoke(suffrage, ["looks", "b", "--database", sqlite_url])
    assert "b has 3 recorded tests: 2 significant alone, 1 after Holm over all" in table.output
    assert "Tests that were not recorded are not counted." in table.output


def test_every_declared_test_is_of_an_analysis() -> None:
    declared = discover_tests()
    assert set(declared) == {"comparison", "prompt-clusters", "prompt-correlation", "semantic-similarity"}
    assert set(declared) <= set(discover_analyses())
    assert all(load_declaration(name) and names for name, names in declared.items())
