"""Which text of a prompt goes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tracker.errors import SelectionError
from tracker.evaluating.embeddings.texts import check_template, template_texts
from tracker.queries.prompts import PromptTexts


def prompts(
    texts: Sequence[str | None],
    choices: Sequence[Sequence[str] | None] | None = None,
    details: Sequence[Mapping[str, Any]] | None = None,
) -> PromptTexts:
    n = len(texts)
    return PromptTexts(
        prompt_ids=np.arange(n),
        tasks=("",) * n,
        names=tuple(map(str, range(n))),
        texts=tuple(texts),
        choices=tuple(choices or [None] * n),
        answers=(None,) * n,
        details=tuple(details or [{}] * n),
    )


class TestQuestion:
    def test_options_are_lines_with_letters(self) -> None:
        stored = prompts(["Where?\nSay it.", "Why?"], [["here", "there"], None])
        assert template_texts(stored, "question+choices", "b") == ["Where?\nSay it.\nA. here\nB. there", "Why?"]

    def test_without_options_the_text_stands_alone(self) -> None:
        stored = prompts(["Where?", "Why?"], [["here", "there"], []])
        assert template_texts(stored, "question", "b") == ["Where?", "Why?"]

    def test_options_beyond_the_alphabet_have_numbers(self) -> None:
        text = template_texts(prompts(["Which?"], [[f"o{i}" for i in range(28)]]), "question+choices", "b")[0]
        assert str(text).splitlines()[-3:] == ["Z. o25", "27. o26", "28. o27"]

    @pytest.mark.parametrize("template", ["question", "question+choices"])
    def test_options_without_a_question_are_no_text(self, template: str) -> None:
        stored = prompts(["Who?", None, " \n"], [["a"], ["a"], ["b"]])
        assert [text is None for text in template_texts(stored, template, "b")] == [False, True, True]


class TestDetails:
    def test_a_field_of_the_prompt_goes_in_alone(self) -> None:
        stored = prompts(["Who?"] * 5, details=[{"reason": "r"}, {}, {"reason": None}, {"reason": " "}, {"other": "x"}])
        assert template_texts(stored, "details:reason", "b") == ["r", None, None, None, None]

    def test_what_is_no_text_is_written_as_json(self) -> None:
        stored = prompts(["Who?"] * 3, details=[{"f": 2}, {"f": ["a", "ü"]}, {"f": {"a": 1.5}}])
        assert template_texts(stored, "details:f", "b") == ["2", '["a","ü"]', '{"a":1.5}']


class TestErrors:
    @pytest.mark.parametrize("template", ["", "choices", "details:", "details", "Question"])
    def test_an_unknown_template_is_answered_with_those_there_are(self, template: str) -> None:
        with pytest.raises(SelectionError, match=r"Known: question, question\+choices, details:FIELD\."):
            check_template(template)

    def test_prompts_without_any_text_name_what_to_ingest(self) -> None:
        with pytest.raises(SelectionError, match=r"texts of b's prompts are not stored.*suffrage ingest PROMPTS --ben"):
            template_texts(prompts([None, None]), "question+choices", "b")

    def test_a_field_that_no_prompt_has_is_answered_with_those_there_are(self) -> None:
        stored = prompts(["Who?"] * 2, details=[{"src": "x"}, {"level": 1}])
        with pytest.raises(SelectionError, match=r"No prompt of b has a text in the field 'reason'\. Known: level, sr"):
            template_texts(stored, "details:reason", "b")
        with pytest.raises(SelectionError, match="no further fields"):
            template_texts(prompts(["Who?"]), "details:reason", "b")
