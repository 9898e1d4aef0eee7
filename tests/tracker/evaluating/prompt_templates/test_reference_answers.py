"""Which option is right."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tracker.evaluating.prompt_templates.reference_answers import (
    NO_REFERENCE_ANSWER,
    NOT_AN_OPTION,
    SEVERAL_OPTIONS,
    find_correct_option,
    list_option_answers,
    list_written_answers,
)
from tracker.ingest.resolve.prompt_texts import list_accepted_answers

SOME = st.sampled_from(["A", "B", "C", "sun", "rain", " sun ", "Z", "", "1"])


class TestGoldPlace:
    @pytest.mark.parametrize(
        ("gold", "choices", "place"),
        [
            ("B", ["sun", "rain"], 1),
            (" rain\n", ["sun", "rain "], 1),
            ("C", ["sun", "rain"], NOT_AN_OPTION),
            ("b", ["sun", "rain"], NOT_AN_OPTION),
            ("1", ["sun", "rain"], NOT_AN_OPTION),
            ("1", ["0", "1"], 1),
            ("", ["sun", "rain"], NO_REFERENCE_ANSWER),
            (None, ["sun", "rain"], NO_REFERENCE_ANSWER),
            ("A", ["B", "A"], SEVERAL_OPTIONS),
            ("A", ["A", "B"], 0),
            ("B", ["C", "x"], 1),
            ("sun", ["sun", "sun"], SEVERAL_OPTIONS),
            ("B", ["sun", "sun"], 1),
            ("Z", [str(i) for i in range(30)], 25),
            ("27", [str(i) for i in range(30)], 27),
        ],
    )
    def test_it_is_found_by_letter_or_text(self, gold: str | None, choices: list[str], place: int | str) -> None:
        assert find_correct_option(gold, choices) == place

    @given(SOME.filter(bool), st.lists(SOME, min_size=1, max_size=5))
    def test_the_place_exists_for_what_ingestion_accepts(self, gold: str, choices: list[str]) -> None:
        place = find_correct_option(gold, choices)
        accepted = list_accepted_answers(gold, choices)
        if isinstance(place, int):
            assert accepted & {choices[place].strip(), chr(ord("A") + place)}
        else:
            assert len(accepted) < 2 or [choice.strip() for choice in choices].count(gold.strip()) > 1


class TestWritten:
    def test_further_accepted_answers_count_once(self) -> None:
        assert list_written_answers(" four", {"accepted_answers": ["4", "four", "", 4]}) == ("four", "4")
        assert list_written_answers("four", {"accepted_answers": "4"}) == ("four",)

    def test_an_option_is_named_by_label_or_text_where_neither_names_another(self) -> None:
        assert list_option_answers("digits", 1, ["sun", " rain"], texts_only=False) == ("2", "rain")
        assert list_option_answers("digits", 0, ["2", "1"], texts_only=False) == ("1",)
        assert list_option_answers("letters", 0, ["sun", "rain"], texts_only=True) == ("sun",)
        assert set(list_option_answers("words", 0, ["sun", "rain"], texts_only=False)) == {"sun"}
