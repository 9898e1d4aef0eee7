"""What becomes of runs and scores: new, extended, unchanged, contradicted; and how a file is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from measurement_blocks import (
    ACCURACY,
    B,
    all_rows,
    answers,
    parsed_file,
    prompts,
    scores,
    store_blocks,
    stored_contents,
    task_scores,
    values,
)

from tracker import schema
from tracker.api.store import Store
from tracker.database import transaction
from tracker.errors import BadInputError, ConflictError
from tracker.ingest.measurement import MetricDescription, ReadOptions
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.write.checksums import verify_checksums
from tracker.ingest.write.writer import store_file

Q1, Q2, Q3 = ("t", "q1"), ("t", "q2"), ("t", "q3")


class TestNewFiles:
    def test_everything_new_is_counted_and_kept(self, store: sa.Engine) -> None:
        of = prompts([Q1, Q2], text=["one?", "two?"])
        changes = store_blocks(
            store,
            scores({Q1: 1, Q2: 0}, "a", of=of),
            scores({Q1: 0.5, Q2: np.nan}, "b", of=of),
            answers({Q1: "A"}, "a"),
        )
        assert (changes.n_prompts_new, changes.n_models_new, changes.n_scores, changes.n_answers) == (2, 2, 3, 1)
        assert [run.model for run in changes.runs_new] == ["a", "b"]
        assert changes.benchmarks == ("b",)
        assert changes.summary() == "2 new prompts, 2 new models, 2 new runs, 3 scores, 1 answer"
        assert values(store, "a") == {Q1: 1.0, Q2: 0.0}
        assert values(store, "b") == {Q1: 0.5}

    def test_postgresql_inserts_new_models_by_one_statement(self, store: sa.Engine) -> None:
        statements: list[str] = []
        sa.event.listen(store, "before_cursor_execute", lambda *details: statements.append(details[2]))
        models = [f"m{n}" for n in range(20)]
        Store(store).ingest(
            pd.DataFrame({"prompt_id": ["q1"], **dict.fromkeys(models, 1.0)}), benchmark="b", metric="m"
        )
        n_inserts = sum(statement.startswith("INSERT INTO model (") for statement in statements)
        assert n_inserts == (1 if store.dialect.name == "postgresql" else len(models))
        with transaction(store, write=False) as session:
            assert session.scalars(sa.select(schema.Model.name).order_by(schema.Model.id)).all() == models

    def test_a_score_that_was_not_measured_has_no_row(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: np.nan, Q2: np.nan}))
        assert values(store) == {}

    def test_trials_are_kept_separate(self, store: sa.Engine) -> None:
        of = prompts([Q1, Q1, Q2])
        changes = store_blocks(store, scores({"x": 1, "y": 0, "z": 1}, of=of, trials=np.array([0, 1, 0])))
        assert (changes.n_prompts_new, changes.n_scores) == (2, 3)

    def test_blocks_of_one_model_are_one_run(self, store: sa.Engine) -> None:
        loss = MetricDescription(name="loss", higher_is_better=False)
        changes = store_blocks(
            store, scores({Q1: 1}), scores({Q2: 0}), scores({Q1: -3.25}, metric=loss), task_scores({"u": 0.5})
        )
        assert len(changes.runs_new) == 1
        assert (changes.n_scores, changes.n_task_scores) == (3, 1)
        assert "3 scores, 1 task score" in changes.summary()

    def test_conditions_variants_and_labels_are_runs_of_their_own(self, store: sa.Engine) -> None:
        changes = store_blocks(
            store,
            scores({Q1: 1}),
            scores({Q1: 0}, condition="answer_only"),
            scores({Q1: 0}, variant="shuffled"),
            scores({Q1: 0}, label="2024-01-01"),
        )
        assert len(changes.runs_new) == 4

    def test_the_fields_of_a_run_are_kept(self, store: sa.Engine) -> None:
        store_blocks(
            store,
            scores({Q1: 1}, few_shot=5, settings={"t": 0.7, "n": float("nan")}, model_facts={"organization": "o"}),
            scores({Q2: 1}, few_shot=5, settings={"seed": 1}),
        )
        with transaction(store, write=False) as session:
            run = session.get(schema.Run, 1)
            assert (run.few_shot, run.settings) == (5, {"t": 0.7, "n": None, "seed": 1})
            assert session.get(schema.Model, 1).organization == "o"

    def test_the_users_benchmark_goes_before_the_files(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}, benchmark="theirs"), options=ReadOptions(benchmark="ours@2"))
        with transaction(store, write=False) as session:
            assert session.execute(sa.text("SELECT name, revision FROM benchmark")).all() == [("ours", "2")]


class TestKnownFiles:
    def test_the_same_file_twice_changes_nothing_and_reports_it(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}), identity="f")
        before = all_rows(store)
        again = store_blocks(store, scores({Q1: 1}), identity="f")
        assert again.already_known
        assert again.run_ids == []
        assert "nothing changed" in again.summary()
        assert all_rows(store) == before

    def test_a_file_whose_runs_were_deleted_comes_in_again(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}), identity="f")
        with transaction(store) as session:
            session.execute(sa.text("DELETE FROM run"))
        assert store_blocks(store, scores({Q1: 1}), identity="f").n_scores == 1
        assert values(store) == {Q1: 1.0}

    def test_a_file_of_which_one_run_was_deleted_brings_that_run_again(self, store: sa.Engine) -> None:
        both = [scores({Q1: 1}), scores({Q1: 0}, model="other")]
        store_blocks(store, *both, identity="f")
        with transaction(store) as session:
            session.execute(sa.text("DELETE FROM run WHERE id = 1"))
        changes = store_blocks(store, *both, identity="f")
        assert (changes.n_scores, len(changes.runs_new), len(changes.runs_unchanged)) == (1, 1, 1)
        assert store_blocks(store, *both, identity="f").already_known

    def test_a_file_mends_scores_that_are_gone_but_not_those_that_it_does_not_hold(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1, Q2: 1}), identity="f")
        store_blocks(store, scores({Q3: 1}), identity="g")
        for broken, wrong in (("DELETE FROM score WHERE value = 1 AND prompt_id = 1", []),
                              ("UPDATE score SET value = 0 WHERE prompt_id IN (1, 3)", [1])):  # fmt: skip
            with transaction(store) as session:
                session.execute(sa.text(broken))
                assert verify_checksums(session) == [1]
            store_blocks(store, scores({Q1: 1, Q2: 1}), identity="f", on_conflict="update")
            with transaction(store, write=False) as session:
                assert verify_checksums(session) == wrong
        store_blocks(store, scores({Q3: 1}), identity="g", on_conflict="update")
        assert values(store) == {Q1: 1.0, Q2: 1.0, Q3: 1.0}
        with transaction(store, write=False) as session:
            assert verify_checksums(session) == []

    def test_a_file_ingested_again_to_update_mends_its_own_run(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1, Q2: 1}), identity="f")
        store_blocks(store, scores({Q1: 0, Q2: 0}))
        with transaction(store) as session:
            session.execute(sa.text("UPDATE score SET value = 0.5 WHERE run_id = 1"))
        changes = store_blocks(store, scores({Q1: 1, Q2: 1}), identity="f", on_conflict="update")
        assert changes.n_scores_updated == 2
        assert values(store) == {Q1: 1.0, Q2: 1.0}
        assert values(store, label="#2") == {Q1: 0.0, Q2: 0.0}
        with transaction(store, write=False) as session:
            assert verify_checksums(session) == []


class TestRunsThatGrow:
    def test_more_prompts_extend_the_run(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1, Q2: 0}))
        changes = store_blocks(store, scores({Q2: 0, Q3: 1}))
        assert (changes.n_scores, changes.n_scores_unchanged, len(changes.runs_extended)) == (1, 1, 1)
        assert values(store) == {Q1: 1.0, Q2: 0.0, Q3: 1.0}
        with transaction(store, write=False) as session:
            assert session.get(schema.Run, 1).n_scores == 3
            assert verify_checksums(session) == []

    def test_a_file_without_new_values_leaves_the_run_unchanged(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}), answers({Q1: "A"}), task_scores({"u": 0.5}))
        changes = store_blocks(store, scores({Q1: 1}), answers({Q1: "A"}), task_scores({"u": 0.5}))
        assert (len(changes.runs_unchanged), changes.run_ids, changes.summary()) == (1, [], "nothing new")

    def test_a_missing_probability_is_filled_in(self, store: sa.Engine) -> None:
        store_blocks(store, answers({Q1: "A"}))
        changes = store_blocks(store, answers({Q1: "A"}, probability=np.array([0.75])))
        assert len(changes.runs_extended) == 1
        with transaction(store, write=False) as session:
            assert {row[-2] for row in stored_contents(session)["answers"]} == {0.75}

    def test_a_number_of_examples_that_differs_is_mixed(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}, label="x", few_shot=5))
        store_blocks(store, scores({Q2: 1}, label="x", few_shot=0))
        with transaction(store, write=False) as session:
            assert session.get(schema.Run, 1).few_shot is None


class TestContradictions:
    def test_a_rerun_is_a_new_run_with_the_next_number(self, store: sa.Engine) -> None:
        for value in (1.0, 0.0, 0.5):
            changes = store_blocks(store, scores({Q1: value, Q2: 1}))
        assert [run.label for run in changes.runs_new] == ["#3"]
        assert "1 of 2 values differ" in changes.warnings[0]
        assert "'q1'" in changes.warnings[0]
        assert [values(store, label=label)[Q1] for label in ("", "#2", "#3")] == [1.0, 0.0, 0.5]

    def test_what_agrees_with_the_latest_rerun_extends_it(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}))
        store_blocks(store, scores({Q1: 0}))
        changes = store_blocks(store, scores({Q1: 0, Q2: 1}))
        assert [run.label for run in changes.runs_extended] == ["#2"]

    def test_one_contradiction_takes_all_metrics_of_the_run_along(self, store: sa.Engine) -> None:
        loss = MetricDescription(name="loss")
        store_blocks(store, scores({Q1: 1}), scores({Q1: 2}, metric=loss))
        changes = store_blocks(store, scores({Q1: 1}), scores({Q1: 3}, metric=loss))
        assert (changes.n_scores, [run.label for run in changes.runs_new]) == (2, ["#2"])

    def test_other_answers_are_a_rerun_too(self, store: sa.Engine) -> None:
        store_blocks(store, answers({Q1: "A"}))
        assert [run.label for run in store_blocks(store, answers({Q1: "B"})).runs_new] == ["#2"]

    def test_runs_of_a_harness_do_not_interfere(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}, label="2024-05-01T10:00"))
        changes = store_blocks(store, scores({Q1: 0}))
        assert [run.label for run in changes.runs_new] == [""]

    def test_skip_keeps_the_stored_and_adds_the_new(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}), task_scores({"u": 0.5}))
        changes = store_blocks(store, scores({Q1: 0, Q2: 1}), task_scores({"u": 0.25}), on_conflict="skip")
        assert (changes.n_scores, changes.n_scores_skipped) == (1, 2)
        assert values(store) == {Q1: 1.0, Q2: 1.0}

    def test_update_overwrites_and_adds_the_new(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}), answers({Q1: "A"}), task_scores({"u": 0.5}))
        changes = store_blocks(
            store, scores({Q1: 0, Q2: 1}), answers({Q1: "B"}), task_scores({"u": 0.25}), on_conflict="update"
        )
        assert (changes.n_scores, changes.n_scores_updated, len(changes.runs_extended)) == (1, 2, 1)
        assert values(store) == {Q1: 0.0, Q2: 1.0}
        with transaction(store, write=False) as session:
            now = stored_contents(session)
            assert {row[-3] for row in now["answers"]} == {"B"}
            assert {row[-1] for row in now["task_scores"]} == {0.25}
            assert verify_checksums(session) == []

    def test_error_names_model_count_and_prompts(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1, Q2: 1, Q3: 1}))
        before = all_rows(store)
        with pytest.raises(ConflictError, match=r"m: 2 of 3 values differ .*'q1', 'q3'.*--on-conflict update"):
            store_blocks(store, scores({Q1: 0, Q2: 1, Q3: 0}), on_conflict="error")
        assert all_rows(store) == before

    def test_a_labelled_run_cannot_be_rerun_under_its_label(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}, label="x"))
        with pytest.raises(ConflictError, match="for the run 'x'"):
            store_blocks(store, scores({Q1: 0}, label="x"))


class TestErrors:
    @pytest.mark.parametrize("stored_first", [False, True])
    def test_a_file_without_a_benchmark_is_an_error_that_suggests_the_option(
        self, store: sa.Engine, stored_first: bool
    ) -> None:
        if stored_first:
            store_blocks(store, scores({Q1: 1}))
        known = "Known: b" if stored_first else "--benchmark NAME"
        with pytest.raises(BadInputError, match=f"(?s)the benchmark is unknown.*{known}"):
            store_blocks(store, scores({Q1: 1}), options=ReadOptions())

    def test_two_scores_for_one_prompt_are_named(self, store: sa.Engine) -> None:
        of = prompts([Q1, Q2, Q1])
        with pytest.raises(BadInputError, match=r"line 2, prompt 'q1' has the score 1, .*line 4, prompt 'q1' has 0"):
            store_blocks(store, scores({"a": 1, "b": 1, "c": 0}, of=of))

    def test_the_same_score_twice_counts_once(self, store: sa.Engine) -> None:
        assert store_blocks(store, scores({"a": 1, "b": 1, "c": 1}, of=prompts([Q1, Q2, Q1]))).n_scores == 2

    def test_scores_outside_the_stored_bounds_are_refused(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}))
        with pytest.raises(BadInputError, match=r"(?s)12 problems.*line 2, prompt 'q0': 7 is outside \[0, 1\].*2 more"):
            store_blocks(
                store, scores({("t", f"q{n}"): 7 for n in range(12)}, metric=MetricDescription(name="accuracy"))
            )

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinity_is_refused_where_there_are_no_bounds(self, store: sa.Engine, value: float) -> None:
        with pytest.raises(BadInputError, match=r"inf is outside \[-∞, ∞\]"):
            store_blocks(store, scores({Q1: value}, metric=MetricDescription(name="loss")))

    def test_bounds_and_direction_that_contradict_the_stored_are_refused(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}))
        for bounds in ({"upper": 100.0}, {"lower": -1.0}, {"higher_is_better": False}):
            with pytest.raises(ConflictError, match="the store"):
                store_blocks(store, scores({Q1: 1}, metric=MetricDescription(name="accuracy", **bounds)))

    def test_a_missing_bound_is_filled_in_unless_scores_exceed_it(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 7}, metric=MetricDescription(name="points")))
        with pytest.raises(ConflictError, match="scores beyond 5"):
            store_blocks(store, scores({Q1: 1}, metric=MetricDescription(name="points", upper=5.0)))
        store_blocks(store, scores({Q2: 1}, metric=MetricDescription(name="points", upper=10.0)))
        changes = store_blocks(store, scores({Q2: 1}, metric=MetricDescription(name="points", lower=0.0, upper=10.0)))
        assert changes.summary() == "bounds of points"
        with pytest.raises(BadInputError, match="outside"):
            store_blocks(store, scores({Q3: 11}, metric=MetricDescription(name="points")))

    def test_a_bad_block_at_the_end_leaves_every_table_as_it_was(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}))
        before = all_rows(store)
        for bad in (scores({Q1: 3}, "z"), task_scores({"u": 3}, "z"), answers({Q3: "A"}, "z", scored_as=ACCURACY)):
            with pytest.raises(BadInputError):
                store_blocks(store, prompts([Q3], text=["new"]), scores({Q2: 1}, "y"), bad)
            assert all_rows(store) == before

    def test_a_statement_that_fails_leaves_every_table_as_it_was(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}))
        before = all_rows(store)
        left = 0

        def fail(*_: object) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise RuntimeError("pulled the plug")

        blocks = prompts([Q3], text=["new"]), scores({Q1: 0, Q2: 1}), scores({Q2: 1}, "y"), answers({Q2: "A"}, "y")
        for n_statements in count():
            left = n_statements
            sa.event.listen(store, "before_cursor_execute", fail)
            try:
                store_blocks(store, *blocks)
            except RuntimeError:
                sa.event.remove(store, "before_cursor_execute", fail)
                assert all_rows(store) == before
            else:
                sa.event.remove(store, "before_cursor_execute", fail)
                break
        assert n_statements > 20
        assert values(store, "y") == {Q2: 1.0}

    def test_text_that_no_database_stores_is_replaced(self, store: sa.Engine) -> None:
        of = prompts([("t\0", "q\ud800")], text=["a\0b"], choices=[["\udfff", "é"]], details=[{"x": float("inf")}])
        store_blocks(store, of, scores({("t\0", "q\ud800"): 1}), answers({("t\0", "q\ud800"): "\0"}))
        with transaction(store, write=False) as session:
            prompt = session.get(schema.Prompt, 1)
            assert (prompt.text, prompt.choices, prompt.details) == ("a�b", ["�", "é"], {"x": None})

    def test_storing_does_not_commit(self, store: sa.Engine) -> None:
        before = all_rows(store)
        with transaction(store, exclusive=True) as session:
            store_file(session, parsed_file(scores({Q1: 1})), B)
            session.rollback()
        assert all_rows(store) == before


class TestModels:
    def test_an_alias_is_the_model(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}, "gpt-4"))
        with transaction(store) as session:
            session.add(schema.ModelAlias(name="GPT4", model_id=1))
        changes = store_blocks(store, scores({Q2: 1}, "GPT4"))
        assert (changes.n_models_new, len(changes.runs_extended)) == (0, 1)

    def test_missing_facts_are_filled_in_and_stored_ones_kept(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}, model_facts={"organization": "a"}))
        store_blocks(
            store, scores({Q2: 1}, model_facts={"organization": "b", "parameters": 7 * 10**9, "released": "2024-05-01"})
        )
        with transaction(store, write=False) as session:
            model = session.get(schema.Model, 1)
            assert (model.organization, model.parameters, model.released) == ("a", 7 * 10**9, date(2024, 5, 1))


class TestChecksums:
    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE score SET value = 0.5 WHERE prompt_id = 1",
            "DELETE FROM score WHERE prompt_id = 2",
            "UPDATE score SET trial = 1 WHERE prompt_id = 1",
            "UPDATE score SET value = 1 - value",
        ],
    )
    def test_scores_changed_behind_the_stores_back_are_found(self, store: sa.Engine, damage: str) -> None:
        store_blocks(store, scores({Q1: 1, Q2: 0}, "a"), scores({Q1: 1, Q2: 0}, "b"))
        with transaction(store) as session:
            assert verify_checksums(session) == []
            session.execute(sa.text(damage + (" AND" if "WHERE" in damage else " WHERE") + " run_id = 2"))
        with transaction(store, write=False) as session:
            assert verify_checksums(session) == [2]
            assert verify_checksums(session, [1]) == []

    def test_minus_zero_is_zero(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: -0.0}))
        with transaction(store, write=False) as session:
            assert verify_checksums(session) == []
        assert store_blocks(store, scores({Q1: 0.0})).runs_unchanged


class TestOrganizations:
    @pytest.mark.parametrize(
        ("name", "organization"), [("org/model-7b", "org"), ("model", None), ("a/b/c", None), ("/model", None)]
    )
    def test_a_name_as_on_model_hubs_gives_the_organization(
        self, store: sa.Engine, name: str, organization: str | None
    ) -> None:
        with transaction(store) as session:
            CatalogueResolver(session, Path("f.csv")).model(name, {})
            assert session.scalar(sa.select(schema.Model.organization).where(schema.Model.name == name)) == organization


def test_a_run_keeps_the_instant_at_which_it_was_made_whatever_the_time_zone(store: sa.Engine) -> None:
    started = datetime(2026, 5, 6, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    store_blocks(store, scores({"q1": 1.0}, started=started))
    with transaction(store, write=False) as session:
        (stored,) = session.scalars(sa.select(schema.Run.started))
    assert stored.replace(tzinfo=UTC) == started if stored.tzinfo is None else stored == started
