"""Which prompts are asked, and what is asked of them."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from prompt_tables import benchmarks, in_order, make_prompts, template

from tracker.errors import NotFoundError, SelectionError
from tracker.evaluating.prompt_templates.rendering import render_prompts, select_rows
from tracker.evaluating.prompt_templates.template import list_built_in_templates, load_template
from tracker.queries.prompts import PromptTexts

PLAIN, WRITTEN, CLOZE = (load_template(name) for name in ("multiple_choice", "written", "cloze"))
WITH_OPTIONS = [name for name in list_built_in_templates() if load_template(name).has_options]
SECRET = st.text("βγδζθλξπφψω0123456789 \n", min_size=1, max_size=12).filter(str.strip)
"""Letters that no template and no option has."""


class TestChosenRows:
    SPLIT = make_prompts(["a", "b", "c", "d", "e"], splits=["train", "test", "dev", None, "test"], tasks=list("sstts"))

    @pytest.mark.parametrize(
        ("options", "rows"),
        [
            ({}, [1, 4]),
            ({"few_shot_split": "train"}, [1, 4]),
            ({"few_shot_split": "test"}, [0, 2, 3]),
            ({"split": "dev"}, [2]),
            ({"split": "test", "few_shot_split": "test"}, [1, 4]),
            ({"tasks": ["s"]}, [1, 4]),
            ({"tasks": ["t"], "split": "dev"}, [2]),
        ],
    )
    def test_the_test_split_by_default(self, options: dict[str, object], rows: list[int]) -> None:
        assert select_rows(self.SPLIT, **options).tolist() == rows

    def test_without_a_test_split_all_that_are_not_shown(self) -> None:
        prompts = make_prompts(["a", "b", "c"], splits=["train", "validation", None])
        assert select_rows(prompts).tolist() == [0, 1, 2]
        assert select_rows(prompts, few_shot_split="train").tolist() == [1, 2]

    @settings(max_examples=40)
    @given(benchmarks(), st.integers(1, 12), st.integers(1, 12), st.integers(0, 3))
    def test_a_smaller_limit_is_part_of_a_larger_one(
        self, prompts: PromptTexts, first: int, second: int, seed: int
    ) -> None:
        low, high = sorted((first, second))
        every = select_rows(prompts).tolist()
        few, more = (select_rows(prompts, limit=n, seed=seed).tolist() for n in (low, high))
        assert set(few) <= set(more) <= set(every)
        assert (len(few), len(more)) == (min(low, len(every)), min(high, len(every)))
        assert more == sorted(more)

    @given(st.permutations(range(8)), st.integers(0, 5))
    def test_a_limit_chooses_by_content(self, order: list[int], seed: int) -> None:
        prompts = make_prompts([f"q{i}" for i in range(8)])
        moved = in_order(prompts, order)
        texts = {prompts.texts[row] for row in select_rows(prompts, limit=3, seed=seed)}
        assert {moved.texts[row] for row in select_rows(moved, limit=3, seed=seed)} == texts

    def test_every_prompt_is_chosen_about_equally_often_equal_ones_too(self) -> None:
        prompts = make_prompts(["same", "same", "q2", "q3", "q4", "q5", "q6", "q7"])
        times = np.zeros(8)
        for seed in range(800):
            times[select_rows(prompts, limit=2, seed=seed)] += 1
        assert ((times - 200) ** 2 / 150).sum() < 24.3  # about 0.1 % of chi-square with 7 degrees of freedom

    def test_unknown_names_are_answered_with_those_there_are(self) -> None:
        with pytest.raises(NotFoundError, match=r"No split 'tset'\. Did you mean 'test'\?"):
            select_rows(self.SPLIT, split="tset")
        with pytest.raises(NotFoundError, match=r"No task 'x'\. Known: s, t"):
            select_rows(self.SPLIT, tasks=["x"])
        with pytest.raises(SelectionError, match="stored without splits"):
            select_rows(make_prompts(["a"]), split="test")

    def test_nothing_to_evaluate_is_an_error_with_the_reason(self) -> None:
        with pytest.raises(SelectionError, match=r"no prompts\. Import them first"):
            select_rows(make_prompts([], []))
        with pytest.raises(SelectionError, match=r"in split 'train'\. Splits: dev, test, train"):
            select_rows(self.SPLIT, split="train", tasks=["t"])
        with pytest.raises(SelectionError, match="Every prompt of the selected tasks is in split 'train'"):
            select_rows(make_prompts(["a"], splits=["train"]), few_shot_split="train")
        with pytest.raises(SelectionError, match="A limit of 0 selects no prompts"):
            select_rows(self.SPLIT, limit=0)


class TestAnswerOnly:
    @settings(max_examples=40)
    @given(SECRET, SECRET, st.sampled_from(WITH_OPTIONS), st.sampled_from(["none", "blank"]))
    def test_no_letter_of_question_or_fields_is_left(self, text: str, field: str, name: str, examples: str) -> None:
        details = {"premise": field, "hypothesis": field, "ctx": field, "activity_label": field}
        choices = [["sun", "rain", "snow"], ["hail", "fog", "wind"]]
        prompts = make_prompts([text, text + "!"], choices, details=[details] * 2, splits=["test", "train"])
        options = {"few_shot": 1, "few_shot_split": "train", "answer_only": True, "answer_only_examples": examples}
        custom = load_template(name, labels="words")
        question = render_prompts(prompts, [0], custom, **options).prompts[0]
        left = set(question.text()) | set("".join(question.options))
        assert not left & (set(text) | set(field)) - set(" \n")
        assert question.options == ("sun", "rain", "snow")
        full = render_prompts(prompts, [0], custom).prompts[0].question
        assert full != question.question

    def test_fields_of_any_kind_are_withheld(self, tmp_path: Path) -> None:
        details = {"a": ["ψ", {"ω": "φ"}], "b": {"c": "λ"}, "n": 17}
        prompts = make_prompts(["β"], details=[details])
        source = "{% for x in details.a %}{% if loop.first %}{{ x }}{% else %}{{ x['ω'] }}{% endif %}{% endfor %}"
        custom = template(tmp_path, source + "{{ details.b.c }}{{ details.n }}{{ question }}")
        assert render_prompts(prompts, [0], custom).prompts[0].text() == "ψφλ17β"
        assert render_prompts(prompts, [0], custom, answer_only=True).prompts[0].text() == ""

    @pytest.mark.parametrize(
        ("kind", "example_questions"),
        [("none", []), ("blank", ["\nA. one\nB. two\nAnswer:"]), ("full", ["q1\nA. one\nB. two\nAnswer:"])],
    )
    def test_its_examples_are_none_blank_or_full(self, kind: str, example_questions: list[str]) -> None:
        prompts = make_prompts(["q0", "q1"], splits=["test", "train"])
        options = {"few_shot": 1, "few_shot_split": "train", "answer_only_examples": kind}
        rendered = render_prompts(prompts, [0], PLAIN, answer_only=True, **options)
        assert [example.question for example in rendered.prompts[0].examples] == example_questions
        assert rendered.few_shot == len(example_questions)
        assert render_prompts(prompts, [0], PLAIN, **options).few_shot == 1

    def test_without_examples_no_split_is_needed(self) -> None:
        assert render_prompts(make_prompts(["q0"]), [0], PLAIN, answer_only=True, few_shot=5).few_shot == 0

    @pytest.mark.parametrize("name", ["written", "cnn_dailymail"])
    def test_a_template_without_options_is_refused(self, name: str) -> None:
        with pytest.raises(
            SelectionError, match=f"Template {name} shows no options, so an answer-only run has nothing"
        ):
            render_prompts(make_prompts(["q0"]), [0], load_template(name), answer_only=True)


class TestQuestions:
    def test_what_cannot_be_rendered_is_counted_by_reason(self) -> None:
        two = ["x", "y"]
        prompts = make_prompts(
            ["q0", None, " ", "q3", "q4", "q5", "q6"],
            [two, two, two, None, two, two, ["B", "A"]],
            answers=["y", "A", "A", "A", None, "z", "A"],
        )
        rendered = render_prompts(prompts, range(7), PLAIN)
        assert [(question.prompt_id, question.correct_option) for question in rendered.prompts] == [(1, 1)]
        assert dict(rendered.skipped) == {
            "no text": 2, "no options": 1, "no reference answer": 1, "reference answer is none of the options": 1,
            "reference answer matches several options": 1,
        }  # fmt: skip

    def test_generation_compares_nothing_and_has_references(self) -> None:
        prompts = make_prompts(["q0"], [["sun", "rain"]], answers=["B"], details=[{"accepted_answers": ["wet"]}])
        written = {
            t.name: render_prompts(prompts, [0], t, method="generation").prompts[0] for t in (PLAIN, CLOZE, WRITTEN)
        }
        assert {name: question.references for name, question in written.items()} == {
            "multiple_choice": ("B", "rain"), "cloze": ("rain",), "written": ("rain", "wet"),
        }  # fmt: skip
        assert {question.options for question in written.values()} == {()}
        assert {name: (question.labels, question.correct_option) for name, question in written.items()} == {
            "multiple_choice": (("A", "B"), 1), "cloze": ((), None), "written": ((), None),
        }  # fmt: skip

    def test_a_written_answer_may_choose_among_shown_options(self, tmp_path: Path) -> None:
        source = (
            '{% set answer = "written" %}{% block question %}{{ question }} {{ choices | join(" or ") }}{% endblock %}'
            "{% block answer %}So: {{ answer }} ({{ label }}){% endblock %}"
        )
        prompts = make_prompts(["q0", "q1"], [["sun", "rain"]] * 2, answers=["A", "B"], splits=["test", "train"])
        question = render_prompts(prompts, [0], template(tmp_path, source), few_shot=1, few_shot_split="train").prompts[
            0
        ]
        assert question.text() == "q1 sun or rain So: rain (B)\n\nq0 sun or rain"
        assert question.references == ("A", "sun")
        assert (
            render_prompts(prompts, [0], template(tmp_path, source), answer_only=True).prompts[0].text()
            == " sun or rain"
        )

    def test_labels_can_be_compared_by_their_likelihood(self) -> None:
        assert render_prompts(make_prompts(["q0"]), [0], PLAIN, method="loglikelihood").prompts[0].options == ("A", "B")

    @pytest.mark.parametrize(
        ("custom", "method", "words"),
        [
            (WRITTEN, "letters", "expects a generated answer, but method letters compares options"),
            (CLOZE, "letters", "expects the text of an option, but method letters compares labels"),
            (PLAIN, "argmax", r"No method 'argmax'\. Known: letters, loglikelihood, generation"),
        ],
    )
    def test_a_method_that_does_not_fit_is_refused(self, custom: object, method: str, words: str) -> None:
        with pytest.raises(SelectionError, match=words):
            render_prompts(make_prompts(["q0"]), [0], custom, method=method)  # type: ignore[arg-type]

    def test_a_benchmark_without_options_is_an_error_with_a_template_for_it(self) -> None:
        with pytest.raises(SelectionError, match=r"template smart \(no options: 2\)\. .* --template written"):
            render_prompts(make_prompts(["q0", "q1"], [None, []]), [0, 1], load_template("smart"))

    def test_prompts_without_texts_are_an_error_with_how_to_import_them(self) -> None:
        with pytest.raises(
            SelectionError, match=r"\(no text: 1\)\. Import texts.*suffrage prompts import BENCHMARK SOURCE"
        ):
            render_prompts(make_prompts([None]), [0], PLAIN)

    @pytest.mark.parametrize(
        ("options", "words"),
        [({"few_shot": -1}, "--few-shot is -1"), ({"answer_only_examples": "some"}, "Known: none, blank, full")],
    )
    def test_options_that_mean_nothing_are_refused(self, options: dict[str, object], words: str) -> None:
        with pytest.raises(SelectionError, match=words):
            render_prompts(make_prompts(["q0"]), [0], PLAIN, **options)


class TestDigest:
    @given(st.permutations(range(8)), st.integers(1, 1_000), st.sampled_from(["none", "full"]))
    def test_it_is_the_same_in_every_store(self, order: list[int], first_id: int, answer_only_examples: str) -> None:
        prompts = make_prompts([f"q{i}" for i in range(8)], splits=["test"] * 5 + ["train"] * 3)
        moved = in_order(prompts, order, first_id)
        options = {"few_shot": 2, "few_shot_split": "train", "example_choice": "per-prompt"}
        options |= {"answer_only": True, "answer_only_examples": answer_only_examples}
        first, second = (render_prompts(of, select_rows(of), PLAIN, **options) for of in (prompts, moved))
        assert first.digest == second.digest

    def test_whatever_is_rendered_otherwise_changes_it(self) -> None:
        def prompts(**changes: object) -> PromptTexts:
            plain = {"texts": ["q0", "q1", "q2", "q3"], "splits": ["test", "test", "train", "train"]}
            return make_prompts(**{**plain, **changes})  # type: ignore[arg-type]

        plain, examples = prompts(), {"few_shot": 1, "few_shot_split": "train"}
        rendered = [
            render_prompts(plain, [0, 1], PLAIN),
            render_prompts(plain, [0], PLAIN),
            render_prompts(plain, [0, 1], PLAIN, method="generation"),
            render_prompts(plain, [0, 1], CLOZE),
            render_prompts(plain, [0, 1], load_template("multiple_choice", labels="digits")),
            render_prompts(plain, [0, 1], PLAIN, answer_only=True),
            render_prompts(plain, [0, 1], PLAIN, **examples),
            render_prompts(plain, [0, 1], PLAIN, **(examples | {"few_shot": 2})),
            render_prompts(prompts(texts=["q0", "q1", "other", "q3"]), [0, 1], PLAIN, **examples),
            render_prompts(prompts(texts=["q0", "other", "q2", "q3"]), [0, 1], PLAIN),
            render_prompts(prompts(answers=["A", "B", "A", "A"]), [0, 1], PLAIN),
            render_prompts(prompts(tasks=["s", "t", "s", "s"]), [0, 1], PLAIN),
        ]
        assert len({first.digest for first in rendered}) == len(rendered)
