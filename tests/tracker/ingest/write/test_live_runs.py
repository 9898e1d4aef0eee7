"""Runs that are made a portion at a time: killed, repeated, shared by two writers, and ended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_run_steps import IDENTITY, OTHER_IDENTITY, add_prompts, make_run, n_stored, numbered, portion, prompt_ids
from measurement_blocks import ACCURACY, parsed_file, prompts
from sqlalchemy.orm import Session

from tracker.database import connect, transaction
from tracker.errors import ConflictError, NotFoundError
from tracker.ingest.measurement import ReadOptions, RunDescription, Scores
from tracker.ingest.write.bulk_rows import load_scores
from tracker.ingest.write.checksums import compute_checksum, verify_checksums
from tracker.ingest.write.live.live_runs import (
    ScoredResponse,
    add_responses,
    complete_run,
    count_stored_trials,
    open_run,
)
from tracker.ingest.write.writer import store_file
from tracker.integrity.recorder import OPTION
from tracker.queries.catalogue.listing import find_run
from tracker.queries.sql import tables
from tracker.run_fields import RunFields
from tracker.run_settings import describe_progress, evaluation_identity, get_command, remove_evaluation


@pytest.fixture
def file(sqlite_url: str) -> Iterator[sa.Engine]:
    """An empty store on SQLite, where both engines do the same."""
    engine = connect(sqlite_url)
    yield engine
    engine.dispose()


def rows_of(engine: sa.Engine, run_id: int) -> tuple[Any, ...]:
    """Everything that the answers of a run decide."""
    with engine.connect() as connection:
        counted = connection.execute(
            sa.select(tables.run.c.n_scores, tables.run.c.checksum).where(tables.run.c.id == run_id)
        ).one()
        score, answer = tables.score.c, tables.answer.c
        scores = connection.execute(
            sa.select(score.metric_id, score.prompt_id, score.trial, score.value).where(score.run_id == run_id)
        )
        answers = connection.execute(sa.select(tables.answer).where(answer.run_id == run_id))
        usage = connection.scalar(sa.select(tables.run.c.settings).where(tables.run.c.id == run_id))["usage"]
        return tuple(counted), sorted(map(tuple, scores)), sorted(map(str, answers)), usage


class TestOpening:
    def test_a_run_is_made_once_and_continued(self, store: sa.Engine) -> None:
        add_prompts(store, 3)
        first = make_run(store)
        assert (first.is_new, first.status, first.label, n_stored(store, first)) == (True, "partial", "", 0)
        with transaction(store, exclusive=True) as session:
            assert add_responses(session, first.id, portion(1, 2)) == 2
        again = make_run(store)
        assert (again.id, again.is_new, again.status, n_stored(store, again)) == (first.id, False, "partial", 2)

    def test_a_complete_run_is_returned_as_it_is_unless_it_is_evaluated_again(self, file: sa.Engine) -> None:
        add_prompts(file, 2)
        first = make_run(file, portion(1, 2), end=True)
        assert (make_run(file).id, make_run(file).status) == (first.id, "complete")
        anew = make_run(file, again=True)
        assert (anew.is_new, anew.label) == (True, "#2")
        assert make_run(file, again=True).id == anew.id, "killed and started again, it is the same"
        assert make_run(file).id == anew.id
        with transaction(file, exclusive=True) as session:
            add_responses(session, anew.id, portion(1, 2))
            complete_run(session, anew.id)
        assert make_run(file).id == anew.id, "the latest one"

    def test_another_identity_condition_variant_or_model_is_another_run(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        first = make_run(file)
        other_runs = [
            make_run(file, identity=OTHER_IDENTITY),
            make_run(file, condition="answer_only"),
            make_run(file, variant="plain words"),
            make_run(file, model="org/other"),
        ]
        assert len({first.id, *(other_run.id for other_run in other_runs)}) == 5
        assert [other_run.label for other_run in other_runs] == ["#2", "", "", ""]

    def test_hidden_and_superseded_runs_are_skipped(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        first = make_run(file, portion(1), end=True)
        with transaction(file) as session:
            session.execute(sa.update(tables.run).values(status="hidden"))
        assert make_run(file).id != first.id

    def test_a_model_is_known_by_its_other_name(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        first = make_run(file)
        with transaction(file) as session:
            session.execute(sa.insert(tables.model_alias).values(name="./folder", model_id=1))
        assert make_run(file, model="./folder").id == first.id

    def test_what_is_known_of_the_run_is_stored(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        key = make_run(file, few_shot=5, limited=True, settings={"template": "{{ text }}\0", "n_prompts": 1}).id
        with transaction(file, write=False) as session:
            row = find_run(session, key)
        assert (row.model, row.few_shot, row.limited, row.status) == ("org/m", 5, True, "partial")
        assert row.reason == "its evaluation has not finished"
        assert row.settings == {"template": "{{ text }}\ufffd", "n_prompts": 1, "identity": IDENTITY, "usage": {}}
        assert row.started is not None
        assert row.sources == ()

    def test_an_identity_that_is_no_sha256_is_refused(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        with pytest.raises(ValueError, match="64 hexadecimal"):
            make_run(file, identity="abc")


class TestPortions:
    def test_scores_answers_numbers_and_usage_are_stored(self, store: sa.Engine) -> None:
        add_prompts(store, 2)
        key = make_run(store, portion(1, 2), end=True).id
        with transaction(store, write=False) as session:
            row = find_run(session, key)
            assert verify_checksums(session) == []
            assert count_stored_trials(session, key) == {1: 1, 2: 1}
            metric = tables.metric.c
            bounds = session.execute(sa.select(metric.name, metric.lower, metric.upper)).all()
        assert (row.n_scores, row.status, row.reason) == (4, "complete", "")
        assert row.settings["usage"] == {"n_prompts": 2, "tokens_read": 30}
        assert {tuple(bound) for bound in bounds} == {("accuracy", 0, 1), ("gold_probability_letters", 0, 1)}

    def test_trials_are_counted_by_prompt(self, file: sa.Engine) -> None:
        add_prompts(file, 2)
        rows = [ScoredResponse(prompt_id=1, trial=trial, scores={"accuracy": 1.0}) for trial in range(3)]
        key = make_run(file, [*rows[:2], ScoredResponse(prompt_id=2, scores={"accuracy": 0.0})], rows[2:]).id
        with transaction(file, write=False) as session:
            assert count_stored_trials(session, key) == {1: 3, 2: 1}
            assert find_run(session, key).settings["usage"] == {"n_prompts": 2}

    def test_what_was_not_measured_has_no_row_and_is_evaluated_again(self, store: sa.Engine) -> None:
        add_prompts(store, 2)
        failed = ScoredResponse(prompt_id=1, scores={"accuracy": math.nan}, answers=(("", None, None, "error"),))
        key = make_run(store, [failed]).id
        with transaction(store, exclusive=True) as session:
            assert count_stored_trials(session, key) == {}
            assert find_run(session, key).n_scores == 0
            assert add_responses(session, key, portion(1)) == 1
            assert add_responses(session, key, [failed]) == 0, "a failure contradicts nothing"
        assert [text.split(", ")[-1] for text in rows_of(store, key)[2]] == ["'ok')"]

    def test_usage_of_a_portion_counts_though_nothing_in_it_is_new(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        key = make_run(file, portion(1)).id
        with transaction(file, exclusive=True) as session:
            assert add_responses(session, key, portion(1), usage={"seconds": 0.5}) == 0
            assert find_run(session, key).settings["usage"] == {"n_prompts": 1, "tokens_read": 10, "seconds": 0.5}

    def test_values_that_round_otherwise_are_equal(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        key = make_run(file, [numbered(1, 0.5)]).id
        before = rows_of(file, key)
        with transaction(file, exclusive=True) as session:
            assert add_responses(session, key, [numbered(1, 0.5 + 9e-6)]) == 0
        assert rows_of(file, key) == before

    def test_unanswered_prompts_are_counted_in_the_settings(self, file: sa.Engine) -> None:
        add_prompts(file, 2)
        key = make_run(file, portion(1)).id
        with transaction(file, exclusive=True) as session:
            complete_run(session, key, unanswered={"longer than the context": 1, "other": 0}, reason="1 of 2 left out")
            complete_run(session, key, unanswered={"said twice": 9})
            row = find_run(session, key)
        assert row.settings["left_out"] == {"longer than the context": 1}
        assert (row.status, row.reason) == ("complete", "1 of 2 left out")

    def test_a_run_counts_as_ingested_when_it_ends(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        key = make_run(file, portion(1)).id
        with transaction(file, exclusive=True) as session:
            opened_at = find_run(session, key).ingested
            complete_run(session, key)
            session.expire_all()
            assert find_run(session, key).ingested > opened_at


class TestErrors:
    def test_other_answers_than_those_stored_are_refused(self, store: sa.Engine) -> None:
        add_prompts(store, 2)
        key = make_run(store, [numbered(1, 0.5)]).id
        before = rows_of(store, key)
        for other_run in (
            numbered(1, 0.5 + 1e-4),
            ScoredResponse(prompt_id=1, scores={}, answers=(("", "B", 0.5, "ok"),)),
            ScoredResponse(prompt_id=1, scores={}, answers=(("", "A", 0.6, "ok"),)),
        ):
            with (
                pytest.raises(ConflictError, match=r"Run 1 of org/m has different answers to 1 .*first: prompt 1"),
                transaction(store, exclusive=True) as session,
            ):
                add_responses(session, key, [numbered(2, 0.25), other_run])
        assert rows_of(store, key) == before

    def test_a_prompt_that_is_answered_twice_otherwise_in_one_portion_is_refused(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        key = make_run(file).id
        for rows in (
            [numbered(1, 0.5), numbered(1, 0.6)],
            [ScoredResponse(prompt_id=1, scores={}, answers=(("", text, None, "ok"),)) for text in "AB"],
        ):
            with pytest.raises(ConflictError, match="evaluate it once"), transaction(file, exclusive=True) as session:
                add_responses(session, key, rows)
        with transaction(file, exclusive=True) as session:
            assert add_responses(session, key, [*portion(1), *portion(1)]) == 1
        assert rows_of(file, key)[3] == {"n_prompts": 1, "tokens_read": 10}

    @pytest.mark.parametrize("value", [1.5, -0.1, math.inf])
    def test_scores_outside_the_bounds_of_their_metric_are_refused(self, file: sa.Engine, value: float) -> None:
        add_prompts(file, 1)
        key = make_run(file).id
        with pytest.raises(ConflictError, match="for accuracy"), transaction(file, exclusive=True) as session:
            add_responses(session, key, [ScoredResponse(prompt_id=1, scores={"accuracy": value})])

    def test_a_metric_that_the_store_knows_otherwise_is_refused(self, store: sa.Engine) -> None:
        add_prompts(store, 1)
        key = make_run(store).id
        with transaction(store) as session:
            session.execute(sa.insert(tables.metric).values(name="accuracy", higher_is_better=False))
        with pytest.raises(ConflictError, match="lower accuracy is better"), transaction(store) as session:
            add_responses(session, key, portion(1))

    def test_a_run_that_was_deleted_meanwhile_is_an_error(self, store: sa.Engine) -> None:
        add_prompts(store, 1)
        key = make_run(store).id
        with transaction(store) as session:
            session.execute(sa.delete(tables.run))
        for work in (lambda s: add_responses(s, key, portion(1)), lambda s: complete_run(s, key)):
            with pytest.raises(NotFoundError, match="start over"), transaction(store, exclusive=True) as session:
                work(session)

    def test_a_run_from_a_file_takes_no_portions(self, file: sa.Engine) -> None:
        add_prompts(file, 1)
        with transaction(file) as session:
            session.execute(sa.insert(tables.model).values(name="m"))
            identity_columns = {"benchmark_id": 1, "model_id": 1, "condition": "full", "variant": "", "label": ""}
            counts = {"limited": False, "status": "complete", "n_scores": 0, "checksum": "0" * 32}
            moment = sa.func.current_timestamp()
            session.execute(sa.insert(tables.run).values(**identity_columns, **counts, ingested=moment))
        with pytest.raises(ConflictError, match="came from a file"), transaction(file, exclusive=True) as session:
            add_responses(session, 1, portion(1))

    def test_what_a_run_that_has_ended_lacks_is_refused(self, file: sa.Engine) -> None:
        add_prompts(file, 2)
        key = make_run(file, portion(1), end=True).id
        with transaction(file, exclusive=True) as session:
            assert add_responses(session, key, portion(1)) == 0
        with pytest.raises(ConflictError, match=r"has ended .* 1 of these .*--again"), transaction(file) as session:
            add_responses(session, key, portion(1, 2))


class TestTwoWriters:
    def test_nothing_is_stored_twice_and_nothing_is_lost(self, store: sa.Engine) -> None:
        add_prompts(store, 24)
        ids = prompt_ids(store)

        def evaluate(order: Sequence[int]) -> tuple[int, int]:
            engine = connect(store.url.render_as_string(hide_password=False))
            key = make_run(engine).id
            n_new = 0
            for first in range(0, len(order), 5):
                with transaction(engine, exclusive=True) as session:
                    n_new += add_responses(session, key, portion(*order[first : first + 5]))
            with transaction(engine, exclusive=True) as session:
                complete_run(session, key)
            engine.dispose()
            return key, n_new

        with ThreadPoolExecutor(2) as writers:
            results = list(writers.map(evaluate, (ids, ids[::-1])))
        assert {key for key, _ in results} == {1}
        assert sum(n_new for _, n_new in results) == 24
        alone = rows_of(store, make_run(store, portion(*ids), again=True).id)
        together = rows_of(store, 1)
        assert (together[0], together[1], together[3]) == (alone[0], alone[1], alone[3])


@pytest.mark.parametrize("engine_name", ["sqlite", "postgres"])
class TestLaws:
    @settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_portions_kills_and_repeats_end_as_one_uninterrupted_run(
        self, data: st.DataObject, engine_name: str, request: pytest.FixtureRequest
    ) -> None:
        engine = connect(request.getfixturevalue(f"{engine_name}_url"))
        with engine.connect() as connection:
            fresh = not connection.scalar(sa.select(sa.func.count()).select_from(tables.benchmark))
        if fresh:
            add_prompts(engine, 6)
        values = st.sampled_from([0.0, -0.0, 1 / 3, 0.5, 1.0, math.nan])
        drawn: Mapping[tuple[int, int], ScoredResponse] = {
            (prompt, trial): ScoredResponse(
                prompt_id=prompt,
                trial=trial,
                scores={"accuracy": float(prompt % 2), "gold_probability_letters": data.draw(values)},
                answers=(("", data.draw(st.sampled_from(["A", "\0", "é", None])), data.draw(values), "ok"),),
                usage={"tokens_read": prompt * 10 + trial},
            )
            for prompt in range(1, 7)
            for trial in range(2)
        }
        whole = make_run(engine, list(drawn.values()), again=True, end=True)
        once = rows_of(engine, whole.id)
        key = make_run(engine, again=True).id
        some = st.lists(st.sampled_from(sorted(drawn)), max_size=8)
        steps = data.draw(st.lists(st.tuples(some, st.booleans()), max_size=5))
        for chosen_ids, is_killed in [*steps, (data.draw(st.permutations(sorted(drawn))), False)]:
            before = rows_of(engine, key)
            with Session(engine.execution_options(begin="IMMEDIATE", **{OPTION: True})) as session:
                add_responses(session, key, [drawn[prompt_id] for prompt_id in chosen_ids])
                if not is_killed:
                    session.commit()
            if is_killed:
                assert rows_of(engine, key) == before
            with transaction(engine, write=False) as session:
                columns = list(load_scores(session, key).values())
                assert rows_of(engine, key)[0] == (sum(map(len, columns)), compute_checksum(columns))
        with transaction(engine, exclusive=True) as session:
            complete_run(session, key)
        ended = rows_of(engine, key)
        assert (ended[0], ended[1], ended[3]) == (once[0], once[1], once[3])
        without_key = [[text.split(", ", 1)[1] for text in rows[2]] for rows in (once, ended)]
        assert without_key[0] == without_key[1]
        engine.dispose()


class TestWords:
    def test_only_a_sha256_is_an_identity(self) -> None:
        assert evaluation_identity({"identity": IDENTITY}) == IDENTITY
        for described in (None, [], {}, {"identity": "m"}, {"identity": 3}, {"identity": IDENTITY.upper() + "F"}):
            assert evaluation_identity(described) is None
        assert remove_evaluation({"identity": IDENTITY, "a": 1}) == {"a": 1}
        assert remove_evaluation({"identity": "me", "a": 1}) == {"identity": "me", "a": 1}

    def test_progress_and_the_command_that_goes_on_are_described(self) -> None:
        assert describe_progress({"usage": {"n_prompts": 1200}, "n_prompts": 5000}) == "1,200 of 5,000 prompts"
        assert describe_progress({"usage": {}}) == describe_progress(None) == "0 prompts"
        assert get_command({"command": "suffrage evaluate b --limit 3"}, "b", "m") == "suffrage evaluate b --limit 3"
        assert get_command({}, "b", "my model").startswith(
            "suffrage evaluate b --model 'my model', with the same options"
        )


def test_a_file_that_names_an_evaluation_does_not_become_it(file: sa.Engine) -> None:

    described = RunDescription(model="org/m", settings={"identity": IDENTITY, "dtype": "float32"})
    scores = Scores(run=described, metric=ACCURACY, prompts=prompts(["a"]), values=np.array([1.0]))
    with transaction(file, exclusive=True) as session:
        store_file(session, parsed_file(scores), ReadOptions(benchmark="b"))
        assert find_run(session, 1).settings == {"dtype": "float32"}
        assert open_run(session, benchmark_id=1, model="org/m", fields=RunFields(), identity=IDENTITY).is_new
