"""Which worked examples are shown."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings
from prompt_tables import benchmarks, in_order, make_prompts

from tracker.errors import NotFoundError, SelectionError
from tracker.evaluating.prompt_templates.prompt_content import content_key, draw_places
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.prompt_templates.rendering import render_prompts
from tracker.evaluating.prompt_templates.template import load_template
from tracker.queries.prompts import PromptTexts

PLAIN = load_template("multiple_choice")
KINDS = st.sampled_from(["fixed", "per-prompt"])


def askable(prompts: PromptTexts, split: str) -> list[int]:
    """Rows of a split that have a text and an option that is right."""
    return [
        row
        for row in range(len(prompts.texts))
        if prompts.splits[row] == split
        and prompts.texts[row]
        and prompts.answers[row] in {"A", "B", *(prompts.choices[row] or ())}
    ]


def key(prompts: PromptTexts, row: int) -> tuple[str, tuple[str, ...]]:
    return (" ".join((prompts.texts[row] or "").split()), tuple(sorted(prompts.choices[row] or ())))


def plain_fixed(prompts: PromptTexts, row: int, split: str, n: int) -> list[int] | None:
    """The slow way: all that may be shown, the first of them; None where there are too few."""
    usable = askable(prompts, split)
    same_task = [candidate for candidate in usable if prompts.tasks[candidate] == prompts.tasks[row]]
    pool = [candidate for candidate in same_task or usable if key(prompts, candidate) != key(prompts, row)]
    return pool[:n] if len(pool) >= n else None


def render_question(prompts: PromptTexts, row: int) -> str:
    return render_prompts(prompts, [row], PLAIN).prompts[0].question


def list_example_questions(question: RenderedPrompt) -> list[str]:
    return [example.question for example in question.examples]


class TestAgainstReference:
    @settings(max_examples=40)
    @given(benchmarks(), st.integers(1, 3), st.sampled_from(["train", "test"]))
    def test_fixed_examples_are_the_first_others_of_their_task(self, prompts: PromptTexts, n: int, split: str) -> None:
        rows = askable(prompts, "test")
        assume(rows and set(prompts.splits) == {"test", "train"})
        expected = {row: plain_fixed(prompts, row, split, n) for row in rows}
        if None in expected.values():
            with pytest.raises(SelectionError, match="few-shot examples are requested"):
                render_prompts(prompts, rows, PLAIN, few_shot=n, few_shot_split=split)
            return
        rendered = render_prompts(prompts, rows, PLAIN, few_shot=n, few_shot_split=split)
        for row, question in zip(rows, rendered.prompts, strict=True):
            assert list_example_questions(question) == [
                render_question(prompts, candidate) for candidate in expected[row] or ()
            ]

    @given(st.integers(1, 8), st.data())
    def test_drawn_places_are_different_and_in_range(self, n: int, data: st.DataObject) -> None:
        k = data.draw(st.integers(0, n))
        places = draw_places(n, k, "name", n)
        assert len(set(places)) == k
        assert set(places) <= set(range(n))
        assert draw_places(n, n, "name", n)[:k] == places

    def test_every_order_is_drawn_about_equally_often(self) -> None:
        drawn = Counter(tuple(draw_places(4, 2, "name", i)) for i in range(6_000))
        assert len(drawn) == 12
        expected = 6_000 / 12
        assert sum((n - expected) ** 2 / expected for n in drawn.values()) < 31.3  # 0.1 % of chi-square with 11 degrees


class TestLaws:
    @settings(max_examples=60)
    @given(benchmarks(), KINDS, st.integers(0, 3), st.sampled_from(["train", "test"]))
    def test_no_prompt_is_shown_itself_or_its_equal(
        self, prompts: PromptTexts, kind: str, seed: int, split: str
    ) -> None:
        rows = askable(prompts, "test")
        assume(rows and split in prompts.splits)
        for row in rows:
            try:
                rendered = render_prompts(
                    prompts, [row], PLAIN, few_shot=1, few_shot_split=split, example_choice=kind, seed=seed
                )
            except SelectionError:
                continue
            by_text = {render_question(prompts, candidate): candidate for candidate in askable(prompts, split)}
            for text in list_example_questions(rendered.prompts[0]):
                assert key(prompts, by_text[text]) != key(prompts, row)

    @settings(max_examples=30)
    @given(st.permutations(range(9)), st.integers(0, 5))
    def test_drawn_examples_do_not_depend_on_order_keys_or_the_other_prompts(self, order: list[int], seed: int) -> None:
        prompts = make_prompts([f"q{i}" for i in range(9)], splits=["test"] * 3 + ["train"] * 6)
        options = {"few_shot": 3, "few_shot_split": "train", "example_choice": "per-prompt", "seed": seed}
        every = {q.question: q.examples for q in render_prompts(prompts, [0, 1, 2], PLAIN, **options).prompts}
        moved = in_order(prompts, order, first_id=77)
        for text in every:
            row = next(i for i in range(9) if f"{moved.texts[i]}\n" in text)
            assert render_prompts(moved, [row], PLAIN, **options).prompts[0].examples == every[text]

    def test_each_prompt_and_each_seed_has_examples_of_its_own(self) -> None:
        prompts = make_prompts([f"q{i}" for i in range(40)], splits=["test"] * 10 + ["train"] * 30)
        drawn = [
            question.examples
            for seed in (0, 1)
            for question in render_prompts(
                prompts, range(10), PLAIN, few_shot=3, few_shot_split="train", example_choice="per-prompt", seed=seed
            ).prompts
        ]
        assert len(set(drawn)) == 20
        assert all(len(set(examples)) == 3 for examples in drawn)

    def test_the_task_of_a_prompt_comes_first_and_the_whole_benchmark_where_it_has_none(self) -> None:
        prompts = make_prompts(
            ["q0", "q1", "q2", "q3", "q4"],
            tasks=["s", "t", "s", "u", "u"],
            splits=["test", "test", "train", "train", "train"],
        )
        for kind in ("fixed", "per-prompt"):
            first = render_prompts(
                prompts, [0], PLAIN, few_shot=1, few_shot_split="train", example_choice=kind
            ).prompts[0]
            assert list_example_questions(first) == [render_question(prompts, 2)]
        candidate = render_prompts(prompts, [1], PLAIN, few_shot=3, few_shot_split="train").prompts[0]
        assert list_example_questions(candidate) == [render_question(prompts, row) for row in (2, 3, 4)]

    @pytest.mark.parametrize(
        ("text", "choices", "equal"),
        [
            ("a  b\n", ["x", "y"], True),
            ("a b", ["y", " x"], True),
            ("a b", ["x", "z"], False),
            ("ab", ["x", "y"], False),
        ],
    )
    def test_equal_content_is_the_same_question_with_the_same_options(
        self, text: str, choices: list[str], equal: bool
    ) -> None:
        assert (content_key(text, choices) == content_key("a b", ["x", "y"])) is equal

    def test_prompts_that_cannot_be_rendered_are_never_shown(self) -> None:
        prompts = make_prompts(
            ["q0", None, "q2", "q3", "q4"],
            [["x", "y"], ["x", "y"], ["x", "y"], None, ["x", "y"]],
            answers=["A", "A", None, "A", "B"],
            splits=["test", *["train"] * 4],
        )
        examples = render_prompts(prompts, [0], PLAIN, few_shot=1, few_shot_split="train").prompts[0].examples
        assert [(example.question.split("\n")[0], example.answer) for example in examples] == [("q4", "B")]


class TestErrors:
    PROMPTS = make_prompts(["q0", "q1", "q2"], tasks=["s", "s", "s"], splits=["test", "train", "train"])

    def test_too_few_are_an_error_with_their_number(self) -> None:
        with pytest.raises(SelectionError, match=r"split 'train' task 's' has only 2 .* Use --few-shot 2, or an"):
            render_prompts(self.PROMPTS, [0], PLAIN, few_shot=3, few_shot_split="train")

    def test_none_at_all_are_an_error(self) -> None:
        prompts = make_prompts(["q0", "q0"], splits=["test", "train"])
        with pytest.raises(SelectionError, match=r"there are only 0 .* prompt\. Choose another --few-shot-split"):
            render_prompts(prompts, [0], PLAIN, few_shot=1, few_shot_split="train")

    def test_without_a_split_those_there_are_are_named(self) -> None:
        with pytest.raises(SelectionError, match=r"need a split: --few-shot-split NAME\. Splits: test, train"):
            render_prompts(self.PROMPTS, [0], PLAIN, few_shot=1)

    def test_an_unknown_split_is_answered_with_those_there_are(self) -> None:
        with pytest.raises(NotFoundError, match=r"No split 'dev'\. Known: test, train"):
            render_prompts(self.PROMPTS, [0], PLAIN, few_shot=1, few_shot_split="dev")

    def test_prompts_without_splits_are_an_error_with_a_hint(self) -> None:
        with pytest.raises(SelectionError, match=r"stored without splits.*suffrage prompts import BENCHMARK SOURCE"):
            render_prompts(make_prompts(["q0"]), [0], PLAIN, few_shot=1, few_shot_split="train")

    def test_an_unknown_kind_is_answered_with_those_there_are(self) -> None:
        with pytest.raises(SelectionError, match=r"No choice of few-shot examples 'random'\. Known: fixed, per-prompt"):
            render_prompts(self.PROMPTS, [0], PLAIN, few_shot=1, few_shot_split="train", example_choice="random")
