"""A question about findings: asked of no benchmark, recorded, listed, shown and published without one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from mlflow import MlflowClient

from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import SelectionError
from tracker.queries.findings.finding_records import list_findings
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.declaration import load_declaration
from tracker.recording.pipeline import run_analysis

COUNTING = '''
"""How many findings are there?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tracker.queries.findings.latest_findings import Findings
from tracker.recording.finding import Finding, Report, Summary, analysis


class ToyFindings(Findings):
    analysis: ClassVar[str] = "toy"


@dataclass(frozen=True, kw_only=True)
class Count(Finding):
    n: int


@analysis
def analyze(findings: ToyFindings, *, least: int = 0) -> Report:
    n = len(findings.records)
    return Report(Count(n=n), summary=Summary(f"There are {n} findings."))
'''
ARITHMETIC = Selection(benchmark="arithmetic")


@pytest.fixture(autouse=True)
def _counting(install: Callable[..., None], toys: None) -> None:
    install("counting_plugin", {"counting": COUNTING})


def run_suffrage(engine: sa.Engine, *arguments: str) -> str:
    url = engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(suffrage, [*arguments, "--database", url])
    if isinstance(result.exception, Exception):
        raise result.exception
    return result.stdout


def test_it_is_recorded_about_no_benchmark_with_the_runs_its_findings_rest_on(filled: sa.Engine) -> None:
    first = run_analysis(filled, "toy", ARITHMETIC)
    counted = run_analysis(filled, "counting")
    assert counted.report.summary.headline == "There are 1 findings."
    with transaction(filled, write=False) as session:
        row = session.execute(sa.select(tables.finding).where(tables.finding.c.id == counted.finding_id)).one()
        used = tables.finding_run.c
        rested = [
            set(session.scalars(sa.select(used.run_id).where(used.finding_id == key)))
            for key in (first.finding_id, counted.finding_id)
        ]
        listing = list_findings(session, analysis="counting")
    assert (row.benchmark_id, row.selection, row.parameters) == (None, {}, {"least": 0})
    assert rested[0] == rested[1] != set()
    assert [(item.benchmark, item.stale) for item in listing] == [(None, "")]


def test_it_is_stale_when_a_run_behind_a_finding_changes(filled: sa.Engine) -> None:
    run_analysis(filled, "toy", ARITHMETIC)
    key = run_analysis(filled, "counting").finding_id
    with transaction(filled) as session:
        session.execute(sa.update(tables.run).values(checksum="new"))
    with transaction(filled, write=False) as session:
        assert list_findings(session, analysis="counting")[0].stale.startswith("changed since: run")
    assert "counting" in run_suffrage(filled, "show", str(key))


def test_commands_take_no_benchmark_and_show_none(filled: sa.Engine, tracking_uri: str) -> None:
    run_suffrage(filled, "analyze", "toy", "arithmetic", "--no-mlflow")
    text = run_suffrage(filled, "analyze", "counting", "--least", "2", "--tracking-uri", tracking_uri)
    assert text.startswith("There are 1 findings.")
    assert run_suffrage(filled, "show", "2").startswith("counting, 20")
    assert "–" in run_suffrage(filled, "findings").splitlines()[2]
    client = MlflowClient(tracking_uri)
    experiment = client.get_experiment_by_name("suffrage/counting")
    [displayed] = client.search_runs([experiment.experiment_id])
    assert displayed.info.run_name.endswith("#2")
    assert not displayed.info.run_name.startswith(" ")
    assert displayed.data.metrics == {"n": 1}


def test_its_command_has_no_options_that_choose_data() -> None:
    text = CliRunner().invoke(suffrage, ["analyze", "counting", "--help"]).stdout
    assert "--least" in text
    assert "--models" not in text
    assert "BENCHMARK" not in text


def test_a_benchmark_must_be_named_where_one_is_looked_at_and_only_there(filled_file: sa.Engine) -> None:
    assert not load_declaration("counting").is_of_one_benchmark
    assert load_declaration("toy").is_of_one_benchmark
    with pytest.raises(SelectionError, match=r"toy needs a benchmark\. Name one"):
        run_analysis(filled_file, "toy")
    with pytest.raises(SelectionError, match=r"counting uses findings of all benchmarks\. Leave the benchmark out"):
        run_analysis(filled_file, "counting", ARITHMETIC)
