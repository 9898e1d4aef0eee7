"""Recorded findings as an input: what is loaded, what it rests on, which one stands for a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import pytest
import sqlalchemy as sa

from tracker.database import transaction
from tracker.queries.findings.latest_findings import Findings, finding_subject, select_latest
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.pipeline import run_analysis

ARITHMETIC, ALGEBRA = Selection(benchmark="arithmetic"), Selection(benchmark="algebra")


class ToyFindings(Findings):
    analysis: ClassVar[str] = "toy"


def load(engine: sa.Engine, selection: Selection | None = None) -> ToyFindings:
    with transaction(engine, write=False) as session:
        return ToyFindings.load(session, selection)


@pytest.mark.usefixtures("toys")
class TestLoad:
    def test_every_finding_of_the_question_comes_whole_the_latest_first(
        self, filled: sa.Engine, more: Callable[..., list[int]]
    ) -> None:
        more(filled, "algebra")
        recorded = [run_analysis(filled, "toy", item, {"seed": 3}) for item in (ARITHMETIC, ALGEBRA, ARITHMETIC)]
        result = load(filled)
        assert [record.id for record in result.records] == [item.finding_id for item in reversed(recorded)]
        assert [record.benchmark for record in result.records] == ["arithmetic", "algebra", "arithmetic"]
        assert result.benchmarks == ("algebra", "arithmetic")
        first = result.records[-1]
        assert [(n.name, n.value) for n in first.numbers] == [(m.name, m.value) for m in recorded[0].metrics]
        assert first.parameters["seed"] == 3
        assert {file.name for file in first.artifacts} == {"arrays.parquet", "draws.png", "quantiles.parquet"}
        assert len(first.run_ids) == 5
        assert [record.id for record in load(filled, ALGEBRA).records] == [recorded[1].finding_id]

    def test_failed_findings_and_those_of_other_questions_are_not_among_them(self, filled_file: sa.Engine) -> None:
        kept = run_analysis(filled_file, "toy", ARITHMETIC).finding_id
        for change in ({"analysis": "other"}, {"status": "failed"}):
            key = run_analysis(filled_file, "toy", ARITHMETIC).finding_id
            with transaction(filled_file) as session:
                session.execute(sa.update(tables.finding).where(tables.finding.c.id == key).values(**change))
        assert [record.id for record in load(filled_file).records] == [kept]

    def test_stale_findings_are_marked_and_their_runs_do_not_count(
        self, filled_file: sa.Engine, more: Callable[..., list[int]]
    ) -> None:
        more(filled_file, "algebra")
        for item in (ARITHMETIC, ALGEBRA):
            run_analysis(filled_file, "toy", item)
        before = load(filled_file)
        changed = before.records[-1].run_ids[0]
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == changed).values(checksum="new"))
        after = load(filled_file)
        assert [bool(record.stale) for record in after.records] == [False, True]
        assert after.run_ids == before.records[0].run_ids
        assert set(before.run_ids) == {*before.records[0].run_ids, *before.records[1].run_ids}
        assert after.digest != before.digest

    def test_equal_findings_have_equal_digests(self, filled_file: sa.Engine) -> None:
        run_analysis(filled_file, "toy", ARITHMETIC)
        result = load(filled_file)
        assert load(filled_file).digest == result.digest
        record = result.records[0]
        for another in (
            replace(record, parameters={**record.parameters, "seed": 5}),
            replace(record, numbers=record.numbers[1:]),
            replace(record, stale="yes"),
        ):
            assert replace(result, records=(another,)).digest != result.digest


@pytest.mark.usefixtures("toys")
class TestLatest:
    def test_what_is_simulated_is_a_subject_of_its_own(self, filled_file: sa.Engine) -> None:
        run_analysis(filled_file, "toy", ARITHMETIC)
        real = load(filled_file).records[0]
        split = replace(real, id=2, parameters={"simulated": "split into 5 tasks"})
        constant = replace(real, id=3, benchmark=None, parameters={"simulated": "constant"})
        assert [finding_subject(item) for item in (real, split, constant)] == [
            "arithmetic",
            "arithmetic split into 5 tasks",
            "Constant",
        ]
        older = replace(real, id=0)
        chosen = select_latest([constant, split, real, older], lambda record: "")
        assert [record.id for record in chosen.records] == [3, 1, 2]
        reasons = select_latest([real, older], lambda record: f"is number {record.id}")
        assert reasons.passed_over == {"arithmetic": "finding 1 is number 1"}
        second = select_latest([real, older], lambda record: "is new" if record.id else "")
        assert ([record.id for record in second.records], second.passed_over) == ([0], {})
