"""The probability of a label is the sum over its spellings; what the labels have together is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from option_prompts import make_prompts, plain_labels

torch = pytest.importorskip("torch")

from tracker.evaluating.local.loading import LanguageModel  # noqa: E402
from tracker.evaluating.local.option_scorer import OptionScorer  # noqa: E402
from tracker.evaluating.local.tokens import add_spellings, encode_prompts  # noqa: E402
from tracker.evaluating.scoring.label_spellings import group_tokens, list_spellings, sum_spellings  # noqa: E402
from tracker.evaluating.scoring.score_response import score_response  # noqa: E402

TOKENS = ("A", "ĠA", "▁A", "ĊA", "B", "ĠB", "AB", "▁", "Ġ", "true", "Ġtrue", "story")


class TestAgainstReference:
    @given(st.lists(st.sampled_from(TOKENS), unique=True), st.sets(st.sampled_from(["A", "B", " B", "true"])))
    @settings(max_examples=40)
    def test_tokens_of_a_label_are_those_equal_to_it_but_for_white_space(
        self, vocabulary: list[str], labels: set[str]
    ) -> None:
        names = {name: n for n, name in enumerate(vocabulary)}
        for label, tokens in group_tokens(names, sorted(labels)).items():
            plain = [n for name, n in names.items() if name.lstrip("Ġ▁Ċ") == label]
            assert list(tokens) == plain

    def test_letters_and_words_have_the_mass_of_a_loop_over_the_vocabulary(
        self, model_of: Callable[[str], LanguageModel]
    ) -> None:
        for family in ("gpt2", "llama", "t5"):
            model = model_of(family)
            (prompt,) = (replace(make_prompts(1)[0], options=("A", "B", "is"), correct_option=2),)
            (response,) = next(OptionScorer(model, method="letters").respond([prompt], lambda _: False))
            expected = plain_labels(model, prompt)
            assert response.logprobs == pytest.approx(expected, abs=1e-4)
            scores = score_response(prompt, response, method="letters").scores
            assert scores["label_probability"] == pytest.approx(np.exp(expected).sum(), abs=1e-5)


class TestSpellings:
    def test_a_label_of_several_tokens_counts_beside_its_single_tokens(self) -> None:
        assert list_spellings((7, 8), (3, 4)) == ((7, 8), (3,), (4,))
        assert list_spellings((3, 9), (3, 4)) == ((3,), (4,)), "what begins with a spelling is counted with it"
        assert list_spellings((4,), (3, 4)) == ((3,), (4,))

    def test_sums_are_those_of_probabilities(self) -> None:
        logprobs = np.log([0.1, 0.2, 0.3])
        assert np.exp(sum_spellings(logprobs, (0, 1, 0), 2)) == pytest.approx([0.4, 0.2])
        assert sum_spellings(np.log([0.6, 0.4 + 1e-9]), (0, 0), 1)[0] == 0.0

    def test_isolated_labels_stay_single(self, model_of: Callable[[str], LanguageModel]) -> None:
        scorer = OptionScorer(model_of("gpt2"), method="letters", isolated_labels=True)
        (encoded,) = scorer.encode(make_prompts(1, letters=True))
        assert encoded.labels == ()
        assert [len(ids) for ids in encoded.options] == [1] * len(encoded.prompt.options)

    def test_a_label_that_the_tokenizer_joins_to_the_prompt_is_reported(
        self, model_of: Callable[[str], LanguageModel]
    ) -> None:
        model = model_of("gpt2")
        prompt = replace(make_prompts(1)[0], question="Say th", join="", options=("at", "B"))
        whole = model.tokenizer("Say that").input_ids
        assert len(whole) <= len(model.tokenizer("Say th").input_ids), "the vocabulary has one token for both"
        warnings: list[str] = []
        (response,) = next(
            OptionScorer(model, method="letters", report=warnings.append).respond([prompt], lambda _: False)
        )
        assert [text for text in warnings if "joins the end of the prompt to a label, such as 'at'" in text]
        assert response.logprobs == pytest.approx(plain_labels(model, prompt), abs=1e-4)
        (encoded,) = add_spellings(model, encode_prompts(model, [prompt], chat=False))
        assert encoded.swallowed == (0,)
        assert len(encoded.options) == len(encoded.labels)
