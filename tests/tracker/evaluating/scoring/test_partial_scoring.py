"""Prompts whose options have separate texts: each text is sent alone, and the responses are joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt
from tracker.evaluating.responses import Response, claim_batch, claim_each
from tracker.evaluating.scoring.partial_scoring import ContextBackend

EXAMPLE = FewShotExample(question="The cat", answer="sat.")
PROMPTS = (
    RenderedPrompt(
        prompt_id=11, examples=(EXAMPLE,), question="", contexts=("The dog", "The mouse"), options=("ran.", "ran.")
    ),
    RenderedPrompt(prompt_id=7, question="One text:", options=("a", "bb")),
    RenderedPrompt(prompt_id=9, question="", contexts=("A", "B", "C"), options=("x", "x", "x")),
)


class TextLengths:
    """Scores an option by the length of its text; one prompt per block, in reverse order."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.sent: list[str] = []

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Any) -> Iterator[list[Response]]:
        for prompt in reversed(prompts):
            if claim_batch(is_stored, [prompt.prompt_id]):
                self.sent.append(prompt.text())
                logprobs = np.array([-float(len(prompt.text() + prompt.join + option)) for option in prompt.options])
                error = "failed" if self.failing and prompt.question == self.failing else ""
                yield [
                    Response(
                        prompt_id=prompt.prompt_id, logprobs=None if error else logprobs, error=error, n_tokens_read=2
                    )
                ]


class Claims:
    """Claims as a command holds them: some prompts are stored, some claimed by another command."""

    def __init__(self, stored: set[int], of_others: set[int]) -> None:
        self.stored, self.of_others = stored, of_others
        self.claimed: list[int] = []

    def __call__(self, prompt_id: int) -> bool:
        return prompt_id in self.stored

    def claim(self, prompt_ids: Sequence[int], *, together: bool) -> list[int]:
        free = [key for key in prompt_ids if key not in self.stored | self.of_others | set(self.claimed)]
        self.claimed += free
        return free


def make_backend(failing: str = "") -> ContextBackend:
    def n_tokens(prompts: Sequence[RenderedPrompt]) -> list[int]:
        return [len(prompt.text()) for prompt in prompts]

    def too_long(prompts: Sequence[RenderedPrompt]) -> dict[int, int]:
        return {prompt.prompt_id: len(prompt.text()) - 8 for prompt in prompts if len(prompt.text()) > 8}

    return ContextBackend(TextLengths(failing), n_tokens, too_long)


def respond(backend: ContextBackend, is_stored: Any) -> dict[int, Response]:
    return {response.prompt_id: response for block in backend.respond(PROMPTS, is_stored) for response in block}


def test_options_have_the_log_probability_after_their_text() -> None:
    responses = respond(make_backend(), lambda _: False)
    assert set(responses) == {11, 7, 9}
    for prompt in PROMPTS:
        texts = prompt.contexts or (prompt.question,) * len(prompt.options)
        expected = [
            -float(len(prompt.head() + text + prompt.join + option))
            for text, option in zip(texts, prompt.options, strict=True)
        ]
        logprobs = responses[prompt.prompt_id].logprobs
        assert logprobs is not None
        assert logprobs.tolist() == expected
    assert [responses[key].n_tokens_read for key in (11, 7, 9)] == [4, 2, 6]


def test_stored_prompts_are_not_sent() -> None:
    backend = make_backend()
    assert set(respond(backend, {11, 9}.__contains__)) == {7}
    assert backend.sent == ["One text:"]


def test_one_failed_text_fails_the_prompt() -> None:
    response = respond(make_backend("B"), lambda _: False)[9]
    assert (response.error, response.logprobs) == ("failed", None)


def test_a_claimed_prompt_is_claimed_with_all_its_texts_and_once() -> None:
    claims = Claims(stored={7}, of_others={9})
    assert set(respond(make_backend(), claims)) == {11}
    assert claims.claimed == [11]
    assert claim_each(claims, [7, 9, 11]) == []


def test_tokens_are_summed_and_the_longest_text_decides_whether_a_prompt_fits() -> None:
    backend = make_backend()
    assert backend.n_tokens(PROMPTS) == [
        sum(len(PROMPTS[0].head() + text) for text in PROMPTS[0].contexts), len("One text:"), 3
    ]  # fmt: skip
    assert backend.too_long(PROMPTS) == {11: len(PROMPTS[0].head() + "The mouse") - 8, 7: 1}


@pytest.mark.parametrize("prompts", [PROMPTS, list(PROMPTS)])
def test_the_same_prompts_are_split_once(prompts: Sequence[RenderedPrompt]) -> None:
    backend = make_backend()
    assert backend.split(prompts).prompts is backend.split(prompts).prompts
