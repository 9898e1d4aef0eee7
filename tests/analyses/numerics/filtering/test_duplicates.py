from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyses.numerics.filtering.duplicates import find_duplicate_groups, normalize_text

FEW_TEXTS = st.sampled_from(["a", "A ", " b", "b", "c\n", None, " ", "2²", "22"])
FEW_CHOICES = st.sampled_from([None, (), ("x",), (" X",), ("x", "y"), ("y", "x")])


def equal(first, second, *, by: str) -> bool:
    """By the definition, two prompts at a time."""
    (text, choices), (second_text, second_choices) = first, second
    if not (text or "").strip() or not (second_text or "").strip():
        return False
    choice_lists = [
        [normalize_text(c) for c in offered or ()] if by == "full" else [] for offered in (choices, second_choices)
    ]
    return normalize_text(text) == normalize_text(second_text) and choice_lists[0] == choice_lists[1]


def two_at_a_time(prompts, *, by: str) -> list[int]:
    groups, n_groups = [-1] * len(prompts), 0
    for i, prompt in enumerate(prompts):
        same = [j for j, second in enumerate(prompts) if j != i and equal(prompt, second, by=by)]
        if same and min(same) < i:
            groups[i] = groups[min(same)]
        elif same:
            groups[i] = n_groups
            n_groups += 1
    return groups


class TestAgainstReference:
    @settings(max_examples=60)
    @given(st.lists(st.tuples(FEW_TEXTS, FEW_CHOICES), max_size=12), st.sampled_from(["full", "question"]))
    def test_groups_are_those_of_every_pair_compared(self, prompts, by):
        result = find_duplicate_groups([text for text, _ in prompts], [choices for _, choices in prompts], by=by)
        assert result.dtype == np.int32
        assert list(result) == two_at_a_time(prompts, by=by)

    def test_real_prompts_with_equal_text_and_choices_are_found(self, shared):
        table = pq.read_table(shared / "data/mmlu_pro/prompts.parquet").to_pylist()
        texts, choices = [row["question"] for row in table], [json.loads(row["choices"]) for row in table]
        distinct = {(" ".join(t.lower().split()), *(" ".join(c.lower().split()) for c in o)) for t, o in zip(
            texts, choices, strict=True)}  # fmt: skip
        full, question = (find_duplicate_groups(texts, choices, by=by) for by in ("full", "question"))
        assert len(table) - len(distinct) == 159
        assert np.count_nonzero(full >= 0) - (full.max() + 1) == 159
        assert np.count_nonzero(question >= 0) - (question.max() + 1) == 392


class TestLaws:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("What  is\tit?\n", " what is IT?"),
            ("ﬁnal ＡＢＣ", "final abc"),
            ("STRASSE", "straße"),
            ("caf\u00e9", "cafe\u0301"),
            ("a\u00a0b\u3000c", "a b c"),
        ],
    )
    def test_type_setting_makes_no_other_prompt(self, first, second):
        assert normalize_text(first) == normalize_text(second)
        assert list(find_duplicate_groups([first, second], [None, None])) == [0, 0]

    @pytest.mark.parametrize(
        ("first", "second"), [("2²", "22"), ("x₁", "x1"), ("1½", "11⁄2"), ("a b", "ab"), ("a.", "a"), ("-1", "1")]
    )
    def test_what_means_something_else_is_another_prompt(self, first, second):
        assert list(find_duplicate_groups([first, second], [None, None])) == [-1, -1]

    @settings(max_examples=60)
    @example("\u2147\u0130\U00011a99\u1e6b")
    @given(st.text())
    def test_a_text_that_was_compared_once_compares_the_same_again(self, text):
        assert normalize_text(normalize_text(text)) == normalize_text(text)
        assert normalize_text(f"  {text}\n") == normalize_text(text)

    def test_choices_count_in_their_order_and_only_if_compared(self):
        texts = ["Which is true?"] * 4
        choices = [["a", "b"], ["b", "a"], ["A", " b"], ["a", "b", ""]]
        assert list(find_duplicate_groups(texts, choices)) == [0, -1, 0, -1]
        assert list(find_duplicate_groups(texts, choices, by="question")) == [0, 0, 0, 0]

    def test_choices_are_not_run_together(self):
        assert list(find_duplicate_groups(["q", "q"], [["a b"], ["a", "b"]])) == [-1, -1]

    def test_texts_that_are_not_known_have_no_equals(self):
        assert list(find_duplicate_groups([None, None, " ", "", "a", "A"], [None] * 6)) == [-1, -1, -1, -1, 0, 0]

    def test_no_choices_are_the_same_as_choices_not_known(self):
        assert list(find_duplicate_groups(["a", "a"], [None, []])) == [0, 0]

    def test_no_prompts_have_no_groups(self):
        assert find_duplicate_groups([], []).shape == (0,)


class TestErrors:
    def test_choices_belong_to_their_texts(self):
        with pytest.raises(ValueError, match="shorter"):
            find_duplicate_groups(["a", "b"], [None])
