"""What the store holds, and which findings still hold."""

from __future__ import annotations

from datetime import UTC, timedelta

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import WHEN, add_scores, add_task_scores
from sqlalchemy.orm import Session

from tracker import schema
from tracker.database import transaction
from tracker.errors import NotFoundError
from tracker.queries.catalogue import listing as catalogue
from tracker.queries.findings.finding_records import get_finding, list_findings, load_artifact

Q = np.array([[1.0, 0.0], [1.0, np.nan]])


def add_finding(session: Session, run_ids: list[int], **selection: object) -> int:
    """A finding that rests on some runs as they are now."""
    result = schema.StoredFinding(
        benchmark_id=1,
        analysis="prompt-correlation",
        parameters={"n_permutations": 10},
        selection=selection,
        seed=0,
        input_digest="d",
        code_version="1",
        headline="They agree.",
    )
    session.add(result)
    session.flush()
    for key in run_ids:
        checksum = session.get(schema.Run, key).checksum
        session.add(schema.FindingRun(finding_id=result.id, run_id=key, role="scores", checksum=checksum))
    session.add(schema.FindingMetric(finding_id=result.id, name="pvalue", value=0.01))
    session.add(schema.FindingMetric(finding_id=result.id, name="mean.pvalue", reason="invariant under this null"))
    session.add(schema.FindingMetric(finding_id=result.id, name="detail", value=3.0, is_main=False))
    session.add(
        schema.FindingArtifact(finding_id=result.id, name="null.png", media_type="image/png", content=b"\x89PNG")
    )
    return result.id


class TestCatalogue:
    def test_benchmarks_are_counted(self, store: sa.Engine) -> None:
        add_scores(store, Q, tasks=["x", "y"])
        add_scores(store, Q, tasks=["x", "y"], metric="f1", label="#2")
        add_scores(store, Q, benchmark="a", revision="v2")
        with transaction(store) as session:
            session.add(schema.Prompt(task_id=1))
        with transaction(store, write=False) as session:
            first, second = catalogue.list_benchmarks(session)
        assert (first.n_tasks, first.n_prompts) == (0, 2), "prompts that name no task make none"
        assert (first.name, first.revision, first.metrics) == ("a", "v2", ("accuracy",))
        assert (second.n_tasks, second.n_prompts, second.n_with_text) == (2, 3, 2)
        assert (second.n_models, second.n_runs, second.metrics) == (2, 4, ("accuracy", "f1"))

    def test_models_are_listed_with_their_other_names(self, store: sa.Engine) -> None:
        add_scores(store, Q, models=["b", "a"])
        add_scores(store, Q, models=["b", "a"], label="#2")
        with transaction(store) as session:
            session.add(schema.ModelAlias(name="bee", model_id=1))
        with transaction(store, write=False) as session:
            a, b = catalogue.list_models(session)
        assert (a.name, a.aliases, a.n_runs) == ("a", (), 2)
        assert (b.name, b.aliases, b.benchmarks) == ("b", ("bee",), ("b",))

    def test_runs_are_listed_the_latest_first_with_their_means(self, store: sa.Engine) -> None:
        first = add_scores(store, Q)
        second = add_scores(store, Q, label="#2", ingested=WHEN + timedelta(days=1))
        add_task_scores(store, np.array([[0.25]]), tasks=["x"], models=["m0"], metric="em")
        with transaction(store, write=False) as session:
            rows = catalogue.list_runs(session)
            assert [row.id for row in rows] == [*reversed(second), *reversed(first)]
            assert rows[-1].means == {"accuracy": 1.0, "em": 0.25}
            assert rows[0].ingested == (WHEN + timedelta(days=1)).astimezone(UTC)
            assert rows[0].n_scores == 1
            assert [row.id for row in catalogue.list_runs(session, model="m1")] == [second[1], first[1]]
            assert catalogue.list_runs(session, benchmark="b") == rows
            assert catalogue.find_run(session, first[0]) == rows[-1]

    def test_what_is_not_there_is_met_with_what_is(self, store: sa.Engine) -> None:
        add_scores(store, Q)
        with transaction(store, write=False) as session:
            with pytest.raises(NotFoundError, match="Known: m0, m1"):
                catalogue.list_runs(session, model="zz")
            with pytest.raises(NotFoundError, match=r"No run '9'. Known: 1, 2"):
                catalogue.find_run(session, 9)

    def test_an_empty_store_has_empty_lists(self, store: sa.Engine) -> None:
        with transaction(store, write=False) as session:
            assert catalogue.list_benchmarks(session) == []
            assert catalogue.list_models(session) == []
            assert catalogue.list_runs(session) == []
            assert list_findings(session) == []


class TestFindings:
    def test_a_finding_is_shown_with_its_numbers_and_reasons(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q)
        with transaction(store) as session:
            key = add_finding(session, runs, metric="accuracy")
        with transaction(store, write=False) as session:
            result = get_finding(session, key)
            assert result.main_metrics == {"pvalue": 0.01, "mean.pvalue": None}
            assert [(n.name, n.value, n.reason) for n in result.numbers] == [
                ("detail", 3.0, ""),
                ("mean.pvalue", None, "invariant under this null"),
                ("pvalue", 0.01, ""),
            ]
            assert [(a.name, a.n_bytes) for a in result.artifacts] == [("null.png", 4)]
            assert load_artifact(session, key, "null.png") == b"\x89PNG"
            assert result.run_ids == tuple(runs)
            assert (result.parameters, result.selection) == ({"n_permutations": 10}, {"metric": "accuracy"})
            assert (result.benchmark, result.stale, result.summary.headline) == ("b", "", "They agree.")

    def test_a_finding_is_stale_when_a_run_has_changed(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q)
        with transaction(store) as session:
            add_finding(session, runs)
            session.get(schema.Run, runs[0]).checksum = "f" * 32
        with transaction(store, write=False) as session:
            assert list_findings(session)[0].stale == f"changed since: run {runs[0]}"

    def test_a_finding_is_stale_when_a_model_has_a_later_run(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q)
        with transaction(store) as session:
            add_finding(session, runs)
            add_finding(session, runs, runs=runs)
        add_scores(store, Q, label="half", status="partial")
        add_scores(store, Q, condition="answer_only")
        with transaction(store, write=False) as session:
            assert [row.stale for row in list_findings(session)] == ["", ""]
        later = add_scores(store, Q[:, :1], label="#2")
        with transaction(store, write=False) as session:
            pinned, free = list_findings(session, benchmark="b", analysis="prompt-correlation")
            assert pinned.stale == ""
            assert free.stale == f"a later run exists of m0 (run {later[0]})"

    def test_what_is_not_there_is_met_with_what_is(self, store: sa.Engine) -> None:
        runs = add_scores(store, Q)
        with transaction(store) as session:
            key = add_finding(session, runs)
        with transaction(store, write=False) as session:
            with pytest.raises(NotFoundError, match=f"Known: {key}"):
                get_finding(session, 99)
            with pytest.raises(NotFoundError, match=r"Did you mean 'null\.png'"):
                load_artifact(session, key, "nul.png")
            with pytest.raises(NotFoundError, match="Did you mean 'prompt-correlation'"):
                list_findings(session, analysis="prompt-corelation")
