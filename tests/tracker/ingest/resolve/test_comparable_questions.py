"""Which prompts of two harnesses are one: questions without decoration, options, reference answers."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import hypothesis.strategies as st
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from measurement_blocks import all_rows, prompts, scores, store_blocks, values

from tracker.database import connect
from tracker.errors import BadInputError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.resolve.questions.comparison import (
    ComparableQuestion,
    have_equal_references,
    is_same_prompt,
    make_comparable,
)

WORDS = st.lists(
    st.text("abcqéÅ漢字019+²?!.,;:()[]-*#'", min_size=1, max_size=6).filter(lambda word: not word.endswith(":")),
    min_size=1, max_size=8,
)  # fmt: skip
QUESTIONS = WORDS.map(" ".join).map(lambda text: f"Which {normalize('NFC', text)} is it?")
LETTERS = "ABCDEFGH"


def with_letters(options: Sequence[str], template: str, separator: str) -> str:
    return separator.join(template.format(letter=LETTERS[place], option=option, number=place + 1)
                          for place, option in enumerate(options))  # fmt: skip


@st.composite
def decorations(draw: st.DrawFn) -> Callable[[str, Sequence[str] | None], str]:
    """Texts that a harness puts around a question and its options."""
    before, after = draw(
        st.sampled_from([
            ("", ""), ("Question: ", "\nAnswer:"), ("Q: ", "\nA:"), ("Q: ", " A:"), ("Problem:\n", "\n\nSolution:"),
            ("**Question:** ", "\n\n**Answer:**"), ("question : ", "\nanswer : "),
            ("Question: Question: ", "\nAnswer: ("),
        ])
    )  # fmt: skip
    template, separator = draw(
        st.sampled_from([("{letter}. {option}", "\n"), ("({letter}) {option}", "\n"), ("{letter}) {option}", "\n  ")])
    )
    lists, heading = draw(st.booleans()), draw(st.sampled_from(["\n", "\nOptions:\n", "\n\nAnswer choices: \n"]))
    space = draw(st.sampled_from([" ", "  ", "\u00a0", "\n", " \t "]))
    form = draw(st.sampled_from(["NFC", "NFD"]))

    def decorate(question: str, options: Sequence[str] | None) -> str:
        option_list = f"{heading}{with_letters(options, template, separator)}" if lists and options else ""
        return normalize(form, f" {before}{question.replace(' ', space)}{option_list}{after}\r\n")

    return decorate


class TestLaws:
    @given(QUESTIONS, st.none() | st.lists(QUESTIONS, min_size=2, max_size=5), decorations())
    def test_decoration_is_removed(self, question: str, options: list[str] | None, decorate: Any) -> None:
        plain = make_comparable(question, options)
        assert make_comparable(decorate(question, options), options) == plain
        if options is not None:
            assert plain.options == tuple(options)
        assert plain.question == question

    @given(QUESTIONS, QUESTIONS, st.none() | st.lists(QUESTIONS, min_size=2, max_size=4), decorations(), decorations())
    def test_different_questions_stay_different(
        self, first: str, second: str, options: list[str] | None, decorate: Any, decorate_other: Any
    ) -> None:
        equal = make_comparable(decorate(first, options), options) == make_comparable(
            decorate_other(second, options), options
        )
        assert equal == (first == second)

    @given(st.text(max_size=30), st.none() | st.lists(st.text(max_size=5), max_size=4))
    def test_some_text_remains(self, text: str, choices: list[str] | None) -> None:
        visible = text.translate(str.maketrans("", "", "\u200b\u2060\ufeff")).strip()
        assert bool(make_comparable(text, choices).question) == bool(visible)

    @given(st.text("QA: \nabc.()", max_size=30), st.none() | st.lists(st.text("ab ", max_size=3), max_size=3))
    def test_the_question_is_a_part_of_the_text(self, text: str, choices: list[str] | None) -> None:
        question = make_comparable(text, choices).question
        assert "".join(question.split()) in "".join(normalize("NFC", text).split())


class TestExamples:
    @pytest.mark.parametrize(
        ("text", "choices", "question", "options"),
        [
            ("What?\nA. x y\nB. z\nAnswer:", None, "What?", ("x y", "z")),
            ("What?\nA. x y\nB. z\nAnswer:", ["A", "B"], "What?", ("x y", "z")),
            ("What? Choices: (a) x, (b) z", ["x", "z"], "What?", ("x", "z")),
            ("What?\n- x\n- z", ["x", "z"], "What?", ("x", "z")),
            ("What?\n1. x\n2. z", ["x", "z"], "What?", ("x", "z")),
            ("What?", ["A. x", "B. z"], "What?", ("x", "z")),
            ("What?\nA. x\nB. other", ["x", "z"], "What? A. x B. other", ("x", "z")),
            ("Which blood has type A:", None, "Which blood has type A:", None),
            ("Answer:", None, "Answer:", None),
            ("A. x\nB. z", None, "A. x B. z", None),
            ("What?", [], "What?", None),
            ("if x:\n    y\nz", None, "if x:\n    y z", None),
        ],
    )
    def test_parts(self, text: str, choices: list[str] | None, question: str, options: tuple[str, ...] | None) -> None:
        assert make_comparable(text, choices) == ComparableQuestion(question, options)

    def test_meaningful_differences_stay(self) -> None:
        pairs = [("2²", "22"), ("if x:\n    y\n    z", "if x:\n    y\nz"), ("Is 1 < 2?", "Is 1 > 2?"), ("A B", "a b")]
        for first, second in pairs:
            assert make_comparable(first, None) != make_comparable(second, None)

    @pytest.mark.parametrize(
        ("first", "second", "options", "equal"),
        [
            ("A", "x", ("x", "y"), True),
            ("A", "y", ("x", "y"), False),
            ("48 / 2 = 24\n#### 72", "72", None, True),
            ("#### 7", "72", None, False),
            ("caf\u00e9  au lait", "cafe\u0301 au lait", None, True),
            (None, "x", None, None),
            (" ", "x", None, None),
        ],
    )
    def test_references(self, first: str | None, second: str, options: Any, equal: bool | None) -> None:
        assert have_equal_references(first, second, options) is equal

    def test_a_prompt_with_options_and_one_without_need_the_same_reference_text(self) -> None:
        plain, chosen = ComparableQuestion("Which is true?"), ComparableQuestion("Which is true?", ("x", "y"))
        assert is_same_prompt(plain, "x", chosen, "A")
        assert is_same_prompt(chosen, "A", plain, "x")
        assert not is_same_prompt(plain, "A", chosen, "A")
        assert not is_same_prompt(plain, "y", chosen, "A")
        assert not is_same_prompt(plain, None, chosen, "A")


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> sa.Engine:
    """A store for tests that use a benchmark of their own."""
    path = tmp_path_factory.mktemp("questions") / "store.db"
    shutil.copy(sqlite_template, path)
    return connect(f"sqlite:///{path}")


def store_two(
    engine: sa.Engine, name: str, first: dict[str, Any], second: dict[str, Any], **options: Any
) -> tuple[int, tuple[str, ...]]:
    """Import prompts of two harnesses; how many the second one added, and its warnings."""
    benchmark = ReadOptions(benchmark=name)
    for namespace, content in (("h", first), ("lm_eval", second)):
        keys = [("t", f"{namespace}{place}") for place in range(len(content["text"]))]
        block = scores(dict.fromkeys(keys, 1.0), namespace, of=prompts(keys, namespace=namespace, **content))
        changes = store_blocks(engine, block, options=benchmark, **options)
    return changes.n_prompts_new, changes.warnings


class TestStoredPrompts:
    @settings(max_examples=15)
    @given(
        st.lists(QUESTIONS, min_size=1, max_size=6, unique=True),
        st.none() | st.lists(QUESTIONS, min_size=2, max_size=3),
        st.lists(decorations(), min_size=6, max_size=6), st.lists(decorations(), min_size=6, max_size=6),
        st.randoms(use_true_random=False),
    )  # fmt: skip
    def test_decorated_questions_meet_and_others_do_not(
        self, shared_store: sa.Engine, questions: list[str], options: list[str] | None, first: Any, second: Any,
        order: Any,
    ) -> None:  # fmt: skip
        half, shuffled = questions[: (len(questions) + 1) // 2], order.sample(questions, len(questions))

        def content(chosen: list[str], decorate: Any) -> dict[str, Any]:
            texts = [decoration(question, options) for question, decoration in zip(chosen, decorate, strict=False)]
            return {"text": texts, "choices": [options] * len(chosen)}

        n_new, _ = store_two(shared_store, uuid.uuid4().hex, content(half, first), content(shuffled, second))
        assert n_new == len(questions) - len(half)

    def test_the_stored_text_stays_and_a_second_file_finds_its_names(self, shared_store: sa.Engine) -> None:
        plain = {"text": ["Why?", "How?"], "answer": ["1 + 1 = 2 #### 2", "3"]}
        decorated = {"text": ["Question: How?\nAnswer:", "Question: Why?\nAnswer:"], "answer": ["3", "2"]}
        n_new, warnings = store_two(shared_store, "stays", plain, decorated)
        assert n_new == 0
        (warning,) = [text for text in warnings if "decoration" in text]
        assert warning.startswith("2 prompts have the question of a stored prompt")
        stored = all_rows(shared_store)["prompt"]
        assert store_two(shared_store, "stays", plain, decorated)[0] == 0
        assert all_rows(shared_store)["prompt"] == stored
        assert sum("'Why?'" in row for row in stored) == 1
        assert not any("Question: Why" in row for row in stored)

    def test_a_name_whose_text_gets_decoration_is_no_contradiction(self, sqlite_url: str) -> None:
        engine = connect(sqlite_url)
        store_blocks(engine, prompts([("t", "1")], text=["Why?"]))
        assert (
            store_blocks(engine, prompts([("t", "1")], text=["Q: Why?\nA:"], choices=[["x", "y"]])).n_prompts_new == 0
        )
        with pytest.raises(BadInputError, match="text contradicts"):
            store_blocks(engine, prompts([("t", "1")], text=["Q: How?\nA:"]))
        (row,) = all_rows(engine)["prompt"]
        assert "'Why?', ['x', 'y']" in row

    @pytest.mark.parametrize(
        ("name", "first", "second"),
        [
            ("reference", {"text": ["What is shown?"], "answer": ["cat"]},
             {"text": ["Question: What is shown?"], "answer": ["dog"]}),
            ("order", {"text": ["Which?"], "choices": [["x", "y"]]},
             {"text": ["Question: Which?"], "choices": [["y", "x"]]}),
            ("one side", {"text": ["Which?"], "choices": [["x", "y"]], "answer": ["A"]},
             {"text": ["Question: Which?"]}),
        ],
    )  # fmt: skip
    def test_similar_prompts_are_separate_with_a_warning(
        self, shared_store: sa.Engine, name: str, first: dict[str, Any], second: dict[str, Any]
    ) -> None:
        n_new, warnings = store_two(shared_store, name, first, second)
        assert n_new == 1
        assert "1 new prompt has the question of a stored prompt, but another reference answer" in warnings[0]
        assert "lm_eval0" in warnings[0]

    def test_other_options_are_another_prompt_without_a_warning(self, shared_store: sa.Engine) -> None:
        first = {"text": ["Which is true?"] * 2, "choices": [["x", "y"], ["v", "w"]]}
        second = {"text": ["Question: Which is true?"] * 2, "choices": [["v", "w"], ["s", "t"]]}
        n_new, warnings = store_two(shared_store, "options", first, second)
        assert n_new == 1
        assert not any("separately" in warning for warning in warnings)
        assert len(values(shared_store, "lm_eval")) > 0

    def test_another_reference_of_equal_options_is_a_contradiction(self, shared_store: sa.Engine) -> None:
        first, second = ({"text": [text], "choices": [["x", "y"]], "answer": [answer]}
                         for text, answer in (("Which?", "A"), ("Question: Which?", "B")))  # fmt: skip
        with pytest.raises(BadInputError, match="contradicts the stored one, 'A'"):
            store_two(shared_store, "contradiction", first, second)
        n_new, warnings = store_two(shared_store, "contradiction", first, second, on_conflict="skip")
        assert n_new == 0
        assert any("1 stored reference answers were kept" in warning for warning in warnings)

    def test_a_question_of_another_task_is_another_prompt(self, sqlite_url: str) -> None:
        engine = connect(sqlite_url)
        store_blocks(engine, prompts([("t", "1")], text=["Why?"]))
        assert store_blocks(engine, prompts([("u", "1")], text=["Q: Why?"], namespace="h")).n_prompts_new == 1

    def test_the_prompt_with_the_exact_text_is_preferred(self, sqlite_url: str) -> None:
        engine = connect(sqlite_url)
        store_blocks(engine, prompts([("t", "1")], text=["Why?"]))
        block = prompts([("t", "1"), ("t", "2")], text=["Q: Why?", "Why?"], namespace="h")
        assert store_blocks(engine, block).n_prompts_new == 1
        rows = all_rows(engine)["prompt_alias"]
        assert [row for row in rows if "'h', '2', 1)" in row]
