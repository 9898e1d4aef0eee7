"""A recorded verdict is the computed one, and is shown as long as its data and choices are the present ones."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

import tracker
from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import SelectionError
from tracker.queries.findings.finding_records import get_finding
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.mlflow.finding_spec import build_finding_spec
from tracker.recording.rerun_command import rerun_command
from tracker.recording.run_status import hide
from tracker.recording.verdict.recorded_verdict import RecordedVerdict, find_current_verdict, record_verdict
from tracker.web.access import Access
from tracker.web.application import create_application

SELECTION = Selection(benchmark="arithmetic")


def find(engine: sa.Engine, selection: Selection = SELECTION) -> RecordedVerdict | None:
    with transaction(engine, write=False) as session:
        return find_current_verdict(session, selection, load_leaderboard(session, selection, n_resamples=0))


def test_a_recorded_verdict_is_the_computed_one(filled: sa.Engine) -> None:
    assert find(filled) is None
    verdict, recorded = record_verdict(filled, SELECTION)
    current = find(filled)
    assert current is not None
    assert current.finding_id == recorded.finding_id
    assert (current.looks, current.checks, current.open_questions) == (
        verdict.looks, verdict.checks, verdict.open_questions,
    )  # fmt: skip
    with transaction(filled, write=False) as session:
        record = get_finding(session, recorded.finding_id)
    assert record.summary.headline == verdict.headline
    assert record.leader == ", ".join(verdict.leaders)
    assert set(record.run_ids) == {row.run_id for row in verdict.board.rows}
    assert record.stale == ""


def test_its_mlflow_run_has_the_tags_of_a_report(filled: sa.Engine) -> None:
    verdict, recorded = record_verdict(filled, SELECTION)
    with transaction(filled, write=False) as session:
        tags = build_finding_spec(session, recorded.finding_id).tags
    expected = {name: value for name, value in verdict.tags.items() if not name.endswith(".recorded_tests")}
    assert {name: value for name, value in tags.items() if name.startswith("suffrage.verdict")} == expected
    assert expected["suffrage.verdict.leader"] == verdict.leaders[0]
    assert expected["suffrage.verdict.changes.voting_rule"] in ("yes", "no")


def test_the_command_that_repeats_it_records_the_same(filled_file: sa.Engine) -> None:
    _, recorded = record_verdict(filled_file, Selection(benchmark="arithmetic", min_coverage=0.5))
    with transaction(filled_file, write=False) as session:
        command = rerun_command(get_finding(session, recorded.finding_id))
    assert command is not None
    assert command.startswith("suffrage verdict arithmetic ")
    url = filled_file.url.render_as_string(hide_password=False)
    words = [*shlex.split(command)[1:], "--no-mlflow", "--database", url]
    result = CliRunner().invoke(suffrage, words)
    assert result.exit_code == 0, result.output
    key = recorded.finding_id + 1
    assert f"Recorded as finding {key}" in result.stderr
    with transaction(filled_file, write=False) as session:
        first, second = (get_finding(session, number) for number in (recorded.finding_id, key))
    assert (first.input_digest, first.selection, first.summary) == (
        second.input_digest,
        second.selection,
        second.summary,
    )


def test_other_choices_have_no_recorded_verdict(filled_file: sa.Engine) -> None:
    record_verdict(filled_file, SELECTION)
    assert find(filled_file) is not None
    assert find(filled_file, Selection(benchmark="arithmetic", missing="impute")) is None
    assert find(filled_file, Selection(benchmark="arithmetic", task_effects="none")) is None
    assert find(filled_file, Selection(benchmark="arithmetic", min_coverage=0.5)) is None


class TestStale:
    def test_after_a_run_was_hidden(self, filled: sa.Engine) -> None:
        verdict, _ = record_verdict(filled, SELECTION)
        with transaction(filled) as session:
            hide(session, [verdict.board.rows[-1].run_id], "a test")
        assert find(filled) is None

    def test_after_scores_were_changed(self, filled_file: sa.Engine) -> None:
        verdict, _ = record_verdict(filled_file, SELECTION)
        with transaction(filled_file) as session:
            key = verdict.board.rows[0].run_id
            session.execute(sa.update(tables.run).where(tables.run.c.id == key).values(checksum="1" * 32))
        assert find(filled_file) is None

    def test_after_an_analysis_that_a_verdict_reads_was_recorded(self, filled_file: sa.Engine) -> None:
        _, recorded = record_verdict(filled_file, SELECTION)
        with transaction(filled_file) as session:
            stored = tables.finding
            [row] = session.execute(sa.select(stored).where(stored.c.id == recorded.finding_id)).mappings()
            values = {name: value for name, value in row.items() if name != "id"}
            session.execute(sa.insert(stored).values(**values | {"analysis": "mixed-model"}))
        assert find(filled_file) is None


class TestPages:
    def read(self, engine: sa.Engine, path: str) -> Any:
        client = TestClient(create_application(engine, Access()), base_url="http://127.0.0.1")
        return client.get(path)

    def test_a_current_verdict_is_on_the_page_at_once_with_its_date(self, filled: sa.Engine) -> None:
        assert 'hx-get="/benchmark/1/verdict"' in self.read(filled, "/benchmark/1").text
        verdict, recorded = record_verdict(filled, SELECTION)
        text = self.read(filled, "/benchmark/1").text
        assert 'hx-get="/benchmark/1/verdict"' not in text
        assert f'(<a href="/finding/{recorded.finding_id}">finding {recorded.finding_id}</a>)' in text
        data = self.read(filled, "/benchmark/1.json").json()["verdict"]
        assert data["state"] == "ready"
        assert data["recorded_verdict"]["recorded"][:2] == "20"
        assert data["recorded_verdict"]["recorded"] in text
        assert [check["text"] for check in data["checks"]] == [check.line.text for check in verdict.checks]
        alone = self.read(filled, "/benchmark/1/verdict.json").json()
        assert {name: alone[name] for name in data} == data
        assert alone["headline"] == verdict.headline

    def test_another_selection_computes_its_own(self, filled_file: sa.Engine) -> None:
        record_verdict(filled_file, SELECTION)
        text = self.read(filled_file, "/benchmark/1?missing=impute").text
        assert 'hx-get="/benchmark/1/verdict?missing=impute"' in text
        assert self.read(filled_file, "/finding/1").status_code == 200


class TestPython:
    def test_a_verdict_is_recorded_on_request(self, filled_file: sa.Engine) -> None:
        store = tracker.open(filled_file.url.render_as_string(hide_password=False))
        plain = store.verdict("arithmetic")
        assert find(filled_file) is None
        assert store.verdict("arithmetic", record=True).headline == plain.headline
        assert find(filled_file) is not None
        with pytest.raises(SelectionError, match="needs record=True"):
            store.verdict("arithmetic", publish_to="sqlite:///mlflow.db")
