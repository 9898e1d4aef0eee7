"""Which prompt a file means: by name, by content, with and without tasks."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from measurement_blocks import ACCURACY, all_rows, answers, prompts, scores, store_blocks, stored_contents, values

from tracker import schema
from tracker.database import transaction
from tracker.errors import AmbiguousError, BadInputError, ConflictError
from tracker.ingest.measurement import MetricDescription
from tracker.ingest.resolve.prompt_texts import hash_content, list_accepted_answers

Q1, Q2, Q3 = ("t", "q1"), ("t", "q2"), ("t", "q3")
U1 = ("u", "q1")


def known(engine: sa.Engine) -> list[tuple[object, ...]]:
    """Task, text, occurrence, answer of every prompt."""
    with transaction(engine, write=False) as session:
        query = "SELECT task.name, text, occurrence, answer FROM prompt p JOIN task ON task.id = task_id ORDER BY p.id"
        return [tuple(row) for row in session.execute(sa.text(query))]


class TestNames:
    def test_a_key_without_task_is_looked_up_in_all_tasks(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1, Q2: 0}))
        assert store_blocks(store, scores({"q2": 1}, "n")).n_prompts_new == 0
        assert values(store, "n") == {Q2: 1.0}

    def test_a_key_of_several_tasks_is_ambiguous_without_task(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1, U1: 0}))
        with pytest.raises(AmbiguousError, match=r"tasks 't', 'u' all have a prompt 'q1'.*column 'task'"):
            store_blocks(store, scores({"q1": 1}, "n"))

    def test_a_key_nobody_knows_is_a_prompt_without_task(self, store: sa.Engine) -> None:
        store_blocks(store, scores({"q1": 1}))
        assert known(store) == [("", None, 0, None)]

    def test_a_prompt_without_task_moves_to_the_task_that_a_file_gives(self, store: sa.Engine) -> None:
        store_blocks(store, scores({"q1": 1, "q2": 1}))
        changes = store_blocks(store, scores({Q1: 0, ("u", "q2"): 0}, "n"))
        assert changes.n_prompts_new == 0
        assert values(store) == {Q1: 1.0, ("u", "q2"): 1.0}

    def test_a_prompt_without_task_that_a_file_has_in_two_tasks_is_ambiguous(self, store: sa.Engine) -> None:
        store_blocks(store, scores({"q1": 1}))
        with pytest.raises(AmbiguousError, match=r"'q1' was stored without a task.*both 't' and 'u'"):
            store_blocks(store, scores({Q1: 1, U1: 1}, "n"))

    def test_a_prompt_that_the_file_itself_has_without_task_does_not_move(self, store: sa.Engine) -> None:
        for model in "mn":
            store_blocks(store, scores({("", "q1"): 1, Q1: 0}, model))
            assert values(store, model) == {("", "q1"): 1.0, Q1: 0.0}

    def test_the_same_key_in_another_benchmark_is_another_prompt(self, store: sa.Engine) -> None:
        from tracker.ingest.measurement import ReadOptions

        store_blocks(store, scores({Q1: 1}))
        assert store_blocks(store, scores({Q1: 1}), options=ReadOptions(benchmark="c")).n_prompts_new == 1

    def test_a_namespace_holds_the_names_of_one_harness(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1}))
        of = prompts([Q1], namespace="lm_eval")
        assert store_blocks(store, scores({Q1: 1}, "n", of=of)).n_prompts_new == 1

    def test_a_move_onto_existing_names_is_rejected(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([("t", "5")], text=["y"], namespace="h"))
        store_blocks(store, prompts(["a"], text=["x"]), prompts([("", "5")], text=["x"], namespace="h"))
        before = all_rows(store)
        with pytest.raises(ConflictError, match="as another benchmark"):
            store_blocks(store, scores({("t", "a"): 1}))
        assert all_rows(store) == before


class TestContent:
    def test_another_harness_is_recognised_by_content(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1, Q2: 1}, of=prompts([Q1, Q2], text=["one", "two"])))
        of = prompts([("t", "0"), ("t", "1")], text=["two", "one"], namespace="h")
        assert store_blocks(store, scores({"x": 0.25, "y": 0.5}, "n", of=of)).n_prompts_new == 0
        with transaction(store, write=False) as session:
            rows_found = {
                row[7]: row[9] for row in stored_contents(session)["scores"] if row[1] == "n" and row[6] == ""
            }
        assert rows_found == {"q2": 0.25, "q1": 0.5}

    def test_content_is_recognised_without_tasks_too(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1], text=["one"]))
        assert store_blocks(store, prompts(["0"], text=["one"], namespace="h")).n_prompts_new == 0

    def test_content_known_without_task_moves_to_the_task_that_a_file_gives(self, store: sa.Engine) -> None:
        store_blocks(store, prompts(["q1"], text=["one"]))
        assert store_blocks(store, prompts([("t", "0")], text=["one"], namespace="h")).n_prompts_new == 0
        assert known(store) == [("t", "one", 0, None)]

    def test_equal_prompts_of_a_task_are_distinguished_by_occurrence(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1, Q2], text=["same", "same"]))
        assert [row[2] for row in known(store)] == [0, 1]
        assert (
            store_blocks(store, prompts([("t", "a"), ("t", "b")], text=["same"] * 2, namespace="h")).n_prompts_new == 0
        )
        assert store_blocks(store, prompts([("t", "c")], text=["same"], namespace="h")).n_prompts_new == 1
        assert [row[2] for row in known(store)] == [0, 1, 2]

    def test_unicode_forms_of_a_text_are_one_content(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1], text=["caf\u00e9"]))
        assert store_blocks(store, prompts([Q1], text=["cafe\u0301"])).n_prompts_new == 0

    def test_text_may_arrive_after_scores(self, store: sa.Engine) -> None:
        store_blocks(store, scores({Q1: 1, Q2: 1}))
        store_blocks(store, prompts([Q1, Q2], text=["same", "same"], answer=["A", None], split=["test", "test"]))
        assert known(store) == [("t", "same", 0, "A"), ("t", "same", 1, None)]
        with transaction(store, write=False) as session:
            assert session.get(schema.Prompt, 1).content_hash == hash_content("same", None)

    def test_answer_split_and_details_are_filled_in_later(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1], text=["one"]))
        store_blocks(store, prompts([Q1], answer=["B"], split=["dev"], details=[{"x": [1]}]))
        with transaction(store, write=False) as session:
            prompt = session.get(schema.Prompt, 1)
            assert (prompt.answer, prompt.split, prompt.details) == ("B", "dev", {"x": [1]})

    def test_details_are_completed_field_by_field_and_the_first_value_stands(self, store: sa.Engine) -> None:
        first = [{"source": "web", "level": 1}, None, {"level": 2}]
        store_blocks(store, prompts([Q1, Q2, Q3], text=["one", "two", "three"], details=first))
        changes = store_blocks(
            store,
            prompts([Q1, Q2], details=[{"number": 7, "level": 3}, {"number": 8}]),
            prompts([Q3, Q1], details=[{"level": 2}, {"source": "book"}]),
        )
        with transaction(store, write=False) as session:
            rows_found = session.scalars(sa.select(schema.Prompt.details).order_by(schema.Prompt.id)).all()
        assert rows_found == [{"source": "web", "level": 1, "number": 7}, {"number": 8}, {"level": 2}]
        assert changes.warnings == (
            "details added to stored prompts: number (2)",
            "details that differ from the stored ones, which were kept: level (1), source (1)",
        )

    def test_choices_may_arrive_after_the_text_and_may_be_left_out_later(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1], text=["one"]))
        store_blocks(store, prompts([Q1], text=["one"], choices=[["x", "y"]]))
        store_blocks(store, prompts([Q1], text=["one"]))
        with transaction(store, write=False) as session:
            prompt = session.get(schema.Prompt, 1)
            assert (prompt.choices, prompt.content_hash) == (["x", "y"], hash_content("one", ["x", "y"]))

    def test_a_file_that_names_a_prompt_twice_makes_it_once(self, store: sa.Engine) -> None:
        assert store_blocks(store, prompts([Q1, Q1], text=["one", None], answer=[None, "A"])).n_prompts_new == 1
        assert known(store) == [("t", "one", 0, "A")]

    def test_content_in_a_second_block_of_the_same_file_is_filled_in(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1], text=["one"]), scores({Q2: 1}), prompts([Q2], text=["two"]))
        assert known(store) == [("t", "one", 0, None), ("t", "two", 0, None)]


class TestContradictions:
    def test_another_text_is_refused_with_its_line(self, store: sa.Engine) -> None:
        keys = [("t", f"q{n}") for n in range(12)]
        store_blocks(store, prompts(keys, text=[f"text {n}" for n in range(12)]))
        before = all_rows(store)
        expected = r"(?s)12 problems.*line 2, prompt 'q0': its text contradicts the stored one.*2 more"
        with pytest.raises(BadInputError, match=expected):
            store_blocks(
                store, scores(dict.fromkeys(keys, 1), of=prompts(keys, text=[f"other {n}" for n in range(12)]))
            )
        assert all_rows(store) == before

    def test_other_choices_are_refused(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1], text=["one"], choices=[["x", "y"]]))
        with pytest.raises(BadInputError, match="text contradicts"):
            store_blocks(store, prompts([Q1], text=["one"], choices=[["x", "z"]]))

    def test_two_texts_for_one_prompt_in_a_file_are_refused(self, store: sa.Engine) -> None:
        with pytest.raises(BadInputError, match="line 3, prompt 'q1': its text contradicts"):
            store_blocks(store, prompts([Q1, Q1], text=["one", "two"]))

    def test_another_gold_answer_is_refused(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1], answer=["A"]))
        with pytest.raises(BadInputError, match="reference answer 'B' contradicts the stored one, 'A'"):
            store_blocks(store, prompts([Q1], answer=["B"]))

    @pytest.mark.parametrize(("on_conflict", "left"), [("skip", "A"), ("update", "B")])
    def test_another_gold_answer_is_kept_or_overwritten_on_request(
        self, store: sa.Engine, on_conflict: str, left: str
    ) -> None:
        store_blocks(store, prompts([Q1], answer=["A"]))
        changes = store_blocks(store, prompts([Q1], answer=["B"]), on_conflict=on_conflict)
        assert known(store)[0][3] == left
        assert "1 stored reference answers" in changes.warnings[0]

    def test_the_letter_of_the_gold_option_does_not_contradict_its_text(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1], text=["one"], choices=[["x", "y"]], answer=["B"]))
        store_blocks(store, prompts([Q1], answer=["y"]))
        assert known(store)[0][3] == "B"


MATCH = MetricDescription(name="exact_match")


class TestAnswersScoredHere:
    def test_answers_are_scored_against_the_stored_gold_answers(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1, Q2, Q3, U1], answer=["A", "B", "C", "D"]))
        changes = store_blocks(
            store,
            answers(
                {Q1: " A ", Q2: "A", Q3: None, U1: "D"},
                scored_as=ACCURACY,
                predicted=np.array([True, True, True, False]),
            ),
        )
        assert values(store) == {Q1: 1.0, Q2: 0.0, Q3: 0.0}
        assert (changes.n_scores, changes.n_answers) == (3, 3)
        with transaction(store, write=False) as session:
            assert {(row[5], row[-1]) for row in stored_contents(session)["answers"]} == {
                ("q1", "ok"),
                ("q2", "ok"),
                ("q3", "empty"),
            }

    def test_letters_and_options_are_the_same_answer(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1, Q2], text=["1", "2"], choices=[["x", "y"], ["x", "y"]], answer=["B", "y"]))
        store_blocks(store, answers({Q1: "y", Q2: "B"}, scored_as=ACCURACY))
        store_blocks(store, answers({Q1: "x", Q2: "A"}, "n", scored_as=ACCURACY))
        assert values(store) == {Q1: 1.0, Q2: 1.0}
        assert values(store, "n") == {Q1: 0.0, Q2: 0.0}

    def test_a_model_that_failed_was_not_measured(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1, Q2], answer=["A", "B"]))
        store_blocks(store, answers({Q1: None, Q2: "B"}, status=["error", "ok"], scored_as=ACCURACY))
        assert values(store) == {Q2: 1.0}

    def test_an_empty_answer_to_a_prompt_that_the_run_was_not_scored_on_does_not_count(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1, Q2, Q3], answer=["A", "B", "C"]), scores({Q1: 1, Q2: 0}))
        changes = store_blocks(store, answers({Q1: "A", Q2: None, Q3: None}, scored_as=MATCH))
        assert (changes.n_scores, changes.n_answers) == (2, 2)
        assert "1 empty answers belong to prompts without any score in this run" in changes.warnings[-1]

    def test_scores_of_fewer_prompts_than_were_answered_leave_the_empty_ones(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([Q1, Q2, Q3], answer=["A", "B", "C"]), scores({Q1: 1}))
        changes = store_blocks(store, answers({Q1: "A", Q2: "B", Q3: None}, scored_as=MATCH))
        assert (changes.n_scores, changes.n_answers, changes.warnings) == (3, 3, ())

    def test_gold_answers_may_come_in_the_same_file(self, store: sa.Engine) -> None:
        store_blocks(store, answers({Q1: "A"}, scored_as=MATCH), prompts([Q1], answer=["A"]))
        assert values(store) == {Q1: 1.0}

    def test_missing_gold_answers_are_requested(self, store: sa.Engine) -> None:
        with pytest.raises(
            BadInputError, match=r"(?s)no reference answer.*Ingest a prompt table with the reference answers"
        ):
            store_blocks(store, answers({Q1: "A"}, scored_as=ACCURACY))

    def test_different_answers_to_one_prompt_are_refused(self, store: sa.Engine) -> None:
        from tracker.ingest.measurement import Answers, RunDescription

        block = Answers(run=RunDescription(model="m"), prompts=prompts([Q1, Q1]), text=["A", "B"])
        with pytest.raises(BadInputError, match="line 3, prompt 'q1': answered 'A', then 'B'"):
            store_blocks(store, block)

    @pytest.mark.parametrize(
        ("gold", "choices", "accepted"),
        [
            (" A", None, {"A"}),
            ("A", ["x", "y"], {"A", "x"}),
            ("y ", ["x", "y"], {"y", "B"}),
            ("A", ["B", "A"], {"A"}),  # options that are letters: only the word counts
            ("C", ["x", "y"], {"C"}),
            ("opt29", [f"opt{n}" for n in range(30)], {"opt29"}),
        ],
    )
    def test_what_counts_as_the_gold_answer(self, gold: str, choices: list[str] | None, accepted: set[str]) -> None:
        assert list_accepted_answers(gold, choices) == accepted
