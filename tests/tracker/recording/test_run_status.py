"""Runs that are hidden, superseded or deleted: what is left out, and which findings say that they are stale."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow import MlflowClient
from mlflow.entities import Run as MlflowRun

from tracker import schema
from tracker.database import connect, transaction
from tracker.errors import ConflictError, NotFoundError
from tracker.queries.catalogue.listing import find_run
from tracker.queries.findings.finding_records import get_finding
from tracker.queries.findings.staleness import list_stale_findings
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.mlflow.publishing import publish_changes, publish_missing
from tracker.recording.mlflow.run_spec import STALE_TAG
from tracker.recording.pipeline import run_analysis
from tracker.recording.run_status import StatusChange, delete, hide, preview_deletion, restore, supersede

ARITHMETIC = Selection(benchmark="arithmetic")


def change(
    engine: sa.Engine, update: Callable[..., StatusChange], *arguments: object, **options: object
) -> StatusChange:
    with transaction(engine, exclusive=True) as session:
        return update(session, *arguments, **options)


def stale(engine: sa.Engine) -> dict[int, str]:
    with transaction(engine, write=False) as session:
        return list_stale_findings(session)


def rerun(engine: sa.Engine, key: int = 1, label: str = "#2", metric: str | None = None) -> int:
    """A later run of the same model with the same scores; under another metric where one is named."""
    with transaction(engine) as session:
        first = session.get_one(schema.Run, key)
        values = first.model_dump(exclude={"id", "label"})
        again = schema.Run(**values, label=label)
        session.add(again)
        session.flush()
        scores = session.execute(sa.select(tables.score).where(tables.score.c.run_id == key)).mappings().all()
        new = {"run_id": again.id}
        if metric is not None:
            another = schema.Metric(name=metric)
            session.add(another)
            session.flush()
            new["metric_id"] = another.id
        session.execute(sa.insert(tables.score), [{**row, **new} for row in scores])
        assert again.id is not None
        return again.id


@pytest.mark.usefixtures("toys")
class TestStaleness:
    def test_a_hidden_run_is_left_out_and_its_findings_are_stale_with_the_reason(self, filled: sa.Engine) -> None:
        run_analysis(filled, "toy", ARITHMETIC)
        changed = change(filled, hide, [2], "wrong template")
        assert changed.stale == stale(filled) == {1: "hidden since: run 2 (wrong template)"}
        with transaction(filled, write=False) as session:
            assert load_performance_matrix(session, ARITHMETIC).n_models == 4
            assert [row.run_id for row in load_leaderboard(session, ARITHMETIC).rows if row.run_id == 2] == []
            assert session.scalar(sa.text("SELECT count(*) FROM leaderboard WHERE run_id = 2")) == 0
            assert session.scalar(sa.text("SELECT count(*) FROM run_history WHERE run_id = 2")) == 0
            assert get_finding(session, 1).stale == "hidden since: run 2 (wrong template)"
        back = change(filled, restore, [2])
        assert (back.stale, back.sound, stale(filled)) == ({}, (1,), {})

    def test_a_superseded_run_is_left_out_for_the_other(self, filled: sa.Engine) -> None:
        run_analysis(filled, "toy", ARITHMETIC)
        later = rerun(filled)
        assert stale(filled) == {1: f"a later run exists of arithmetic/model 0 (run {later})"}
        change(filled, supersede, later, 1)  # the earlier one was right
        assert stale(filled) == {}
        change(filled, restore, [later])
        change(filled, supersede, 1, later, "typing error")
        assert stale(filled) == {1: f"superseded since: run 1 by run {later} (typing error)"}
        with transaction(filled, write=False) as session:
            assert load_performance_matrix(session, ARITHMETIC).run_ids.tolist() == [later, 2, 3, 4, 5]

    def test_a_later_run_that_a_finding_uses_does_not_make_it_stale(self, filled: sa.Engine) -> None:
        later = rerun(filled)
        run_analysis(filled, "toy", ARITHMETIC)
        with transaction(filled) as session:
            session.execute(
                sa.text(
                    "INSERT INTO finding_run (finding_id, run_id, role, checksum, status) "
                    "SELECT 1, id, 'scores', checksum, status FROM run WHERE id = 1"
                )
            )
        assert later > 1
        assert stale(filled) == {}

    def test_what_is_deleted_is_noted_on_its_findings(self, filled: sa.Engine) -> None:
        run_analysis(filled, "toy", Selection(benchmark="arithmetic", runs=(1, 2)))
        with transaction(filled, write=False) as session:
            going = preview_deletion(session, [1, 3])
        assert (going.n_scores, going.n_answers, going.finding_ids) == (80, 0, (1,))
        assert change(filled, delete, [1], "not ours").stale == {
            1: "deleted since: run 1 of arithmetic/model 0 (not ours)"
        }
        change(filled, delete, [2])
        assert stale(filled) == {
            1: "deleted since: run 1 of arithmetic/model 0 (not ours); deleted since: run 2 of arithmetic/model 1"
        }
        with transaction(filled, write=False) as session:
            assert session.scalar(sa.select(sa.func.count()).where(tables.score.c.run_id <= 2)) == 0
            assert session.scalar(sa.select(sa.func.count()).select_from(tables.prompt)) == 40
            assert get_finding(session, 1).run_ids == ()

    def test_a_run_named_on_purpose_may_be_hidden_and_its_finding_holds(self, filled_file: sa.Engine) -> None:
        change(filled_file, hide, [2])
        run_analysis(filled_file, "toy", Selection(benchmark="arithmetic", runs=(1, 2)))
        assert stale(filled_file) == {}
        change(filled_file, restore, [2])
        assert stale(filled_file) == {}
        change(filled_file, hide, [1])
        assert stale(filled_file) == {1: "hidden since: run 1"}

    def test_a_later_run_under_another_metric_is_no_later_run(self, filled_file: sa.Engine) -> None:
        run_analysis(filled_file, "toy", ARITHMETIC)
        rerun(filled_file, metric="f1")
        assert stale(filled_file) == {}

    def test_a_finding_falls_with_its_filter_but_not_for_a_later_run(self, filled_file: sa.Engine) -> None:
        run_analysis(filled_file, "toy", Selection(benchmark="arithmetic", runs=(1, 2)))
        run_analysis(filled_file, "toy", Selection(benchmark="arithmetic", runs=(3, 4)))
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.finding).where(tables.finding.c.id == 2).values(filter_id=1))
        change(filled_file, hide, [1])
        assert stale(filled_file)[2] == "its filter, finding 1: hidden since: run 1"
        change(filled_file, restore, [1])
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.finding).where(tables.finding.c.id == 1).values(selection={}))
        rerun(filled_file)
        assert set(stale(filled_file)) == {1}

    def test_a_superseded_run_stays_so_when_the_other_is_deleted(self, filled: sa.Engine) -> None:
        later = rerun(filled)
        change(filled, supersede, 1, later)
        change(filled, delete, [later])
        with transaction(filled, write=False) as session:
            left = find_run(session, 1)
        assert (left.status, left.superseded_by, left.reason) == (
            "superseded", None, f"superseded by run {later}, deleted",
        )  # fmt: skip


class TestAgainstReference:
    @settings(max_examples=15)
    @given(
        steps=st.lists(
            st.tuples(st.sampled_from(["hide", "unhide", "supersede", "delete"]), st.integers(1, 6), st.integers(1, 6)),
            max_size=6,
        ),
        findings=st.lists(
            st.tuples(st.sets(st.integers(1, 6), min_size=1), st.booleans()), min_size=1, max_size=3
        ),
    )  # fmt: skip
    def test_findings_are_stale_exactly_by_the_rules(
        self,
        steps: list[tuple[str, int, int]],
        findings: list[tuple[set[int], bool]],
        tmp_path_factory: pytest.TempPathFactory,
        sqlite_template: Path,
    ) -> None:
        path = tmp_path_factory.mktemp("rules") / "s.db"
        path.write_bytes(sqlite_template.read_bytes())
        engine = connect(f"sqlite:///{path}")
        model_of = {key: (key - 1) // 3 for key in range(1, 7)}  # three runs of each of two models
        with transaction(engine) as session:
            session.add(schema.Benchmark(name="b"))
            session.add_all([schema.Model(name="m0"), schema.Model(name="m1")])
            session.flush()
            for key in model_of:
                session.add(schema.Run(benchmark_id=1, model_id=model_of[key] + 1, label=str(key)))
                session.flush()
            for number, (runs, pinned) in enumerate(findings, start=1):
                chosen = {"runs": sorted(runs)} if pinned else {}
                known = {"analysis": "a", "parameters": {}, "input_digest": "", "code_version": ""}
                session.add(schema.StoredFinding(selection=chosen, **known))
                session.flush()
                for key in runs:
                    row = session.get_one(schema.Run, key)
                    session.add(schema.FindingRun(finding_id=number, run_id=key, role="s", checksum=row.checksum))
        status = dict.fromkeys(model_of, "complete")
        for label, key, another in steps:
            allowed = (
                key in status
                and {
                    "hide": status.get(key) in ("complete", "hidden"),
                    "unhide": status.get(key) in ("hidden", "superseded"),
                    "supersede": key != another
                    and model_of[key] == model_of[another]
                    and status.get(another) == "complete",
                    "delete": True,
                }[label]
            )
            functions = {"hide": (hide, [key]), "unhide": (restore, [key]), "delete": (delete, [key])}
            function, *arguments = functions.get(label, (supersede, key, another))
            if not allowed:
                with pytest.raises((ConflictError, NotFoundError)):
                    change(engine, function, *arguments)
                continue
            change(engine, function, *arguments)
            if label == "delete":
                del status[key]
            else:
                status[key] = {"hide": "hidden", "unhide": "complete", "supersede": "superseded"}[label]
        expected = set()
        for number, (runs, pinned) in enumerate(findings, start=1):
            for key in runs:
                later = [item for item in status if item > key and model_of[item] == model_of[key]]
                has_later = any(status[item] == "complete" for item in later)
                if status.get(key) != "complete" or (has_later and not pinned):
                    expected.add(number)
        assert set(stale(engine)) == expected
        engine.dispose()


class TestErrors:
    def test_runs_of_different_kinds_do_not_supersede_each_other(self, filled_file: sa.Engine) -> None:
        with pytest.raises(ConflictError, match=r"differ in their model .* suffrage runs hide"):
            change(filled_file, supersede, 1, 2)
        with pytest.raises(ConflictError, match="cannot supersede itself"):
            change(filled_file, supersede, 1, 1)
        later = rerun(filled_file)
        change(filled_file, hide, [later])
        with pytest.raises(ConflictError, match="is itself hidden"):
            change(filled_file, supersede, 1, later)

    def test_partial_runs_are_neither_hidden_nor_restored(self, filled_file: sa.Engine) -> None:
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == 1).values(status="partial"))
        with pytest.raises(ConflictError, match="is already excluded: it is partial"):
            change(filled_file, hide, [1])
        with pytest.raises(ConflictError, match="its file was damaged"):
            change(filled_file, restore, [1])
        with pytest.raises(ConflictError, match="neither hidden nor superseded"):
            change(filled_file, restore, [2])

    @pytest.mark.parametrize("label", [hide, restore, delete, preview_deletion])
    def test_one_run_that_is_not_there_stops_all(self, filled: sa.Engine, label: Callable[..., StatusChange]) -> None:
        with pytest.raises(NotFoundError, match="No run '99999999999'"):
            change(filled, label, [1, 99_999_999_999])
        with transaction(filled, write=False) as session:
            assert find_run(session, 1).status == "complete"


def published_things(tracking_uri: str) -> dict[str, MlflowRun]:
    """Active MLflow runs by what they show: ``run 1``, ``analysis 1``."""
    client = MlflowClient(tracking_uri=tracking_uri)
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    result = {}
    for mlflow_run in client.search_runs(experiments):
        kind = "run" if "suffrage.run_id" in mlflow_run.data.tags else "finding"
        result[f"{kind} {mlflow_run.data.tags[f'suffrage.{kind}_id']}"] = mlflow_run
    return result


@pytest.mark.usefixtures("toys")
class TestMlflow:
    def test_stale_findings_are_marked_in_place_and_hidden_runs_deleted(
        self, filled: sa.Engine, tracking_uri: str
    ) -> None:
        recorded = run_analysis(filled, "toy", ARITHMETIC, publish_to=tracking_uri)
        publish_missing(filled, tracking_uri)
        before = published_things(tracking_uri)
        hidden = change(filled, hide, [2], "odd")
        done = publish_changes(filled, hidden.run_ids, tuple(hidden.stale), tracking_uri)
        assert (done.n_new, done.n_marked, done.n_deleted) == (0, 1, 1)
        after = published_things(tracking_uri)
        assert set(before) - set(after) == {"run 2"}
        marked = after["finding 1"]
        assert marked.info.run_id == recorded.mlflow_run_id
        assert marked.data.tags[STALE_TAG] == "hidden since: run 2 (odd)"
        assert marked.data.tags["mlflow.note.content"].startswith("**Stale: hidden since: run 2 (odd).**")
        again = publish_missing(filled, tracking_uri)
        assert (again.n_new, again.n_marked, again.n_deleted) == (0, 0, 0)
        back = change(filled, restore, [2])
        done = publish_changes(filled, back.run_ids, back.sound, tracking_uri)
        assert (done.n_new, done.n_marked, done.n_deleted) == (1, 1, 0)
        last = published_things(tracking_uri)
        assert set(last) == set(before)
        assert STALE_TAG not in last["finding 1"].data.tags
        assert (
            last["finding 1"].data.tags["mlflow.note.content"] == before["finding 1"].data.tags["mlflow.note.content"]
        )

    def test_publishing_makes_up_for_what_was_deleted_while_mlflow_was_away(
        self, filled_file: sa.Engine, tracking_uri: str
    ) -> None:
        run_analysis(filled_file, "toy", ARITHMETIC, publish_to=tracking_uri)
        publish_missing(filled_file, tracking_uri)
        change(filled_file, delete, [1, 2])
        done = publish_missing(filled_file, tracking_uri)
        assert (done.n_new, done.n_marked, done.n_deleted) == (0, 1, 2)
        assert set(published_things(tracking_uri)) == {"finding 1", "run 3", "run 4", "run 5"}
        assert "deleted since: run 1" in published_things(tracking_uri)["finding 1"].data.tags[STALE_TAG]

    def test_where_nothing_was_published_mlflow_is_not_opened(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        run_analysis(filled_file, "toy", ARITHMETIC)
        hidden = change(filled_file, hide, [2])
        publish_changes(filled_file, hidden.run_ids, tuple(hidden.stale), f"sqlite:///{tmp_path}/none.db")
        assert not (tmp_path / "none.db").exists()
