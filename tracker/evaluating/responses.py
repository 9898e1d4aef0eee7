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
        trial: 0 for the first answer to it.
        logprobs: ``(n_options,)`` float64, natural logarithm of the probability of each option after the text, summed
            over its tokens; -inf where a server did not name it among the likeliest; None where the model wrote.
        unlisted_share: largest part of the probability of all options that those which a server did not name may have.
        text: what it wrote; None where options were compared.
        n_examples: worked examples that it saw.
        n_tokens_read, n_tokens_written: as billed: every token of the text and of the options once per request.
        error: why there is no answer, in a sentence; '' where there is one.
        is_too_long: whether that is because the prompt does not fit, so that to ask again is of no use.
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
    """How answers are written.

    Attributes:
        max_tokens: at most so many.
        temperature: 0 takes the likeliest token each time.
        top_p: share of probability that is drawn from.
        seed: of the draws; each prompt and trial has its own stream.
        stop: strings before which an answer ends; they are not part of it.
        n_trials: answers to each prompt.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    n_trials: int = 1


class ModelBackend(Protocol):
    """A model in this process, or a server."""

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """The responses that are missing, some at a time, in any order.

        Args:
            prompts: all of the run's, whatever is stored, so that batches are always cut alike.
            is_stored: whether a prompt's responses are all stored already; a batch of such prompts is left out.
        """
        ...


def cut_at_stop(text: str, stop: Collection[str]) -> str:
    """The text before the first of the stop strings in it; empty ones do not count."""
    return text[: min((at for word in stop if word and (at := text.find(word)) >= 0), default=len(text))]
