"""Responses of a model to rendered prompts, before they are scored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt


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
        text: generated text; None if options were compared.
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
    text: str | None = None
    n_examples: int = 0
    n_tokens_read: int = 0
    n_tokens_written: int = 0
    error: str = ""
    is_too_long: bool = False


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How responses are generated.

    Attributes:
        max_tokens: maximum number of output tokens.
        temperature: 0 for greedy decoding.
        top_p: nucleus sampling: share of probability to draw from.
        seed: seed of the draws; each prompt and trial has a separate stream.
        stop: stop strings; they are not part of the response.
        n_trials: responses per prompt.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    n_trials: int = 1


class ModelBackend(Protocol):
    """A local model, or a server."""

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield the missing responses in blocks, in any order.

        Args:
            prompts: all prompts of the run, including stored ones, so that batches are reproducible.
            is_stored: returns whether all responses to a prompt are stored; a batch of such prompts is skipped.
        """
        ...


def cut_at_stop(text: str, stop: Collection[str]) -> str:
    """Return the text before the first stop string in it; empty stop strings are ignored."""
    return text[: min((at for word in stop if word and (at := text.find(word)) >= 0), default=len(text))]
