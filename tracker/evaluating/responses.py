"""Responses of a model to rendered prompts, before they are scored."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt

TRUNCATED = "length"
"""Finish reason of a text that the maximum number of tokens ended, in OpenAI's API."""
CONVERSATION_TOKENS = 1024
"""Default maximum of output tokens in a conversation with a server: models explain before they answer."""
OPEN, CLOSE = "<think>", "</think>"
_REASONING = re.compile(r"<think>(.*?)</think>", re.S)


@dataclass(frozen=True, kw_only=True, eq=False)
class Response:
    """The response of a model to a rendered prompt.

    Attributes:
        prompt_id: key of the prompt.
        trial: 0 for the first response.
        logprobs: ``(n_options,)`` float64, natural logarithm of the probability of each option after the text, summed
            over its tokens; -inf if a server did not list it among the likeliest; None for generated text.
        unlisted_share: upper bound of the share of options that a server did not list, of the probability of all
            options.
        is_greedy: whether each option is the text that greedy decoding generates; None if unknown.
        text: generated text without its reasoning; None if options were compared.
        reasoning: what the model wrote before its answer, marked as reasoning; '' without. It is never scored.
        finish_reason: why the text ended: ``stop``, ``length`` if it was truncated at the maximum number of tokens, or
            as the server reports; '' if unknown.
        n_examples: few-shot examples in the prompt.
        n_tokens_read, n_tokens_written: input and output tokens as billed: every token of the text and of the options
            once per request.
        error: why there is no answer; '' if there is one.
        is_too_long: whether the prompt does not fit, so that retrying is useless.
    """

    prompt_id: int
    trial: int = 0
    logprobs: NDArray[np.float64] | None = None
    unlisted_share: float = 0.0
    is_greedy: tuple[bool, ...] | None = None
    text: str | None = None
    reasoning: str = ""
    finish_reason: str = ""
    n_examples: int = 0
    n_tokens_read: int = 0
    n_tokens_written: int = 0
    error: str = ""
    is_too_long: bool = False

    @property
    def is_truncated(self) -> bool:
        """Return whether the maximum number of tokens ended the text."""
        return self.finish_reason == TRUNCATED


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How responses are generated.

    Attributes:
        max_tokens: maximum number of output tokens.
        temperature: 0 for greedy decoding.
        top_p: nucleus sampling: share of probability to draw from.
        seed: seed of the draws; each prompt and trial has a separate stream.
        stop: stop strings; they are not part of the response.
        is_default_stop: whether the stop strings are those of the template. In a conversation they do not apply, since
            a model ends its turn itself.
        is_default_length: whether the maximum number of output tokens is that of the template.
        n_trials: responses per prompt.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    is_default_stop: bool = False
    is_default_length: bool = False
    n_trials: int = 1

    def for_conversation(self, min_tokens: int = 0) -> Sampling:
        """Return the options for turns of a conversation.

        Args:
            min_tokens: least maximum number of output tokens, unless the user chose one.
        """
        stop = () if self.is_default_stop else self.stop
        max_tokens = max(self.max_tokens, min_tokens) if self.is_default_length else self.max_tokens
        return replace(self, stop=stop, is_default_stop=False, max_tokens=max_tokens)

    def as_settings(self) -> dict[str, Any]:
        """Return the options that decide the responses."""
        settings = {name: value for name, value in asdict(self).items() if not name.startswith("is_default")}
        return settings | {"stop": list(self.stop)}


class ModelBackend(Protocol):
    """A local model, or a server."""

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield the missing responses in blocks, in any order.

        Args:
            prompts: all prompts of the run, including stored ones, so that batches are reproducible.
            is_stored: returns whether all responses to a prompt are stored; passed to `claim_batch` or `claim_each`
                before prompts are computed, so that another command does not compute them too.
        """
        ...


class Claims(Protocol):
    """Prompts of a run that several commands evaluate at once."""

    def __call__(self, prompt_id: int) -> bool:
        """Return whether all responses to a prompt are stored."""
        ...

    def claim(self, prompt_ids: Sequence[int], *, together: bool) -> list[int]:
        """Claim prompts, and return those to compute: neither stored nor claimed by another command.

        Args:
            prompt_ids: keys of the prompts.
            together: whether to claim all missing prompts or none.
        """
        ...


def claim_batch(is_stored: Claims | Callable[[int], bool], prompt_ids: Sequence[int]) -> bool:
    """Claim the prompts of a batch; return whether it is to be computed, whole, because prompts of it are missing."""
    if hasattr(is_stored, "claim"):
        return bool(is_stored.claim(prompt_ids, together=True))
    return not all(map(is_stored, prompt_ids))


def claim_each(is_stored: Claims | Callable[[int], bool], prompt_ids: Sequence[int]) -> list[int]:
    """Claim prompts that are computed separately; return those to compute."""
    if hasattr(is_stored, "claim"):
        claimed: list[int] = is_stored.claim(prompt_ids, together=False)
        return claimed
    return [prompt_id for prompt_id in prompt_ids if not is_stored(prompt_id)]


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the reasoning and the answer of a generated text.

    Reasoning stands between ``<think>`` and ``</think>``. The first mark may be missing, since some chat templates end
    with it, and the second one if the text is truncated.
    """
    if "think>" not in text:
        return "", text
    parts = _REASONING.findall(text)
    rest = _REASONING.sub("", text)
    if CLOSE in rest:
        before, _, rest = rest.rpartition(CLOSE)
        parts.insert(0, before)
    if OPEN in rest:
        rest, _, after = rest.partition(OPEN)
        parts.append(after)
    return "\n".join(filter(None, map(str.strip, parts))), rest.lstrip() if parts else rest


def end_text(text: str, stop: Collection[str], finish_reason: str, reasoning: str = "") -> dict[str, str]:
    """Return text, reasoning and finish reason of a response: the answer without reasoning, before a stop string.

    Args:
        text: as generated.
        stop: stop strings; they do not end reasoning.
        finish_reason: as the model reports it.
        reasoning: reasoning that a server has separated already.
    """
    marked, answer = split_reasoning(text)
    kept = cut_at_stop(answer, stop)
    return {
        "text": kept,
        "reasoning": reasoning or marked,
        "finish_reason": finish_reason if len(kept) == len(answer) else "stop",
    }


def cut_at_stop(text: str, stop: Collection[str]) -> str:
    """Return the text before the first stop string in it; empty stop strings are ignored."""
    return text[: min((at for word in stop if word and (at := text.find(word)) >= 0), default=len(text))]
