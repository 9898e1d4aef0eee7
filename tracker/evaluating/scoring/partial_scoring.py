"""Partial scoring: each option of a prompt has a separate text, and the same continuation is scored after each.

Each option is sent as a separate prompt, and the responses are joined, so that no backend needs to know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import ModelBackend, Response


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """Prompts with one text each; their key is their index.

    Attributes:
        prompts: the prompts.
        places: index of the prompt that each belongs to, and of the option.
    """

    prompts: Sequence[RenderedPrompt]
    places: Sequence[tuple[int, int]]


class ContextBackend:
    """Sends each text of a prompt as a separate prompt.

    Args:
        backend: responds to prompts with one text.
        n_tokens: returns the tokens of such prompts.
        too_long: returns the excess tokens of those that do not fit, by key.
    """

    def __init__(
        self,
        backend: ModelBackend,
        n_tokens: Callable[[Sequence[RenderedPrompt]], Sequence[int]],
        too_long: Callable[[Sequence[RenderedPrompt]], Mapping[int, int]],
    ) -> None:
        self.backend, self._n_tokens, self._too_long = backend, n_tokens, too_long
        self._split: tuple[Sequence[RenderedPrompt] | None, _Parts] = (None, _Parts(prompts=(), places=()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def n_tokens(self, prompts: Sequence[RenderedPrompt]) -> list[int]:
        """Return the tokens of each prompt, summed over its texts."""
        parts = self.split(prompts)
        totals = [0] * len(prompts)
        for (at, _), n in zip(parts.places, self._n_tokens(parts.prompts), strict=False):
            totals[at] += n
        return totals

    def too_long(self, prompts: Sequence[RenderedPrompt]) -> dict[int, int]:
        """Return the excess tokens of each prompt that does not fit, by key: those of its longest text."""
        parts = self.split(prompts)
        excess: dict[int, int] = {}
        for part, n in self._too_long(parts.prompts).items():
            prompt_id = prompts[parts.places[part][0]].prompt_id
            excess[prompt_id] = max(n, excess.get(prompt_id, 0))
        return excess

    def split(self, prompts: Sequence[RenderedPrompt]) -> _Parts:
        """Return the prompts with one text each; the same object for the same prompts."""
        if self._split[0] is not prompts:
            pairs = [(at, option) for at, prompt in enumerate(prompts) for option in range(len(prompt.contexts) or 1)]
            parts = [_make_part(key, prompts[at], option) for key, (at, option) in enumerate(pairs)]
            self._split = prompts, _Parts(prompts=parts, places=pairs)
        return self._split[1]

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield responses, as `tracker.evaluating.responses.ModelBackend` requires."""
        parts = self.split(prompts)
        waiting: dict[int, dict[int, Response]] = {}

        prompt_ids = [prompts[at].prompt_id for at, _ in parts.places]
        claims: Any = _PartClaims(is_stored, prompt_ids)
        if not hasattr(is_stored, "claim"):
            claims = claims.__call__
        for block in self.backend.respond(parts.prompts, claims):
            ready = []
            for response in block:
                at, option = parts.places[response.prompt_id]
                of_prompt = waiting.setdefault(at, {})
                of_prompt[option] = response
                if len(of_prompt) == (len(prompts[at].contexts) or 1):
                    ready.append(_join_responses(prompts[at], waiting.pop(at)))
            if ready:
                yield ready


class _PartClaims:
    """Claims the prompt of each part; the further parts of a claimed prompt are claimed with it."""

    def __init__(self, is_stored: Any, prompt_ids: Sequence[int]) -> None:
        self.is_stored, self.prompt_ids = is_stored, prompt_ids
        self.claimed: set[int] = set()

    def __call__(self, key: int) -> bool:
        return bool(self.is_stored(self.prompt_ids[key]))

    def claim(self, keys: Sequence[int], *, together: bool) -> list[int]:
        fresh = [self.prompt_ids[key] for key in keys if self.prompt_ids[key] not in self.claimed]
        if fresh:
            self.claimed |= set(self.is_stored.claim(list(dict.fromkeys(fresh)), together=together))
        return [key for key in keys if self.prompt_ids[key] in self.claimed]


def _make_part(key: int, prompt: RenderedPrompt, option: int) -> RenderedPrompt:
    if not prompt.contexts:
        return replace(prompt, prompt_id=key)
    return replace(
        prompt, prompt_id=key, question=prompt.contexts[option], contexts=(), options=(prompt.options[option],)
    )


def _join_responses(prompt: RenderedPrompt, responses: Mapping[int, Response]) -> Response:
    """Return one response with the log-probabilities of all options."""
    ordered = [responses[option] for option in sorted(responses)]
    first = ordered[0]
    if not prompt.contexts:
        return replace(first, prompt_id=prompt.prompt_id)
    error = next((response.error for response in ordered if response.error), "")
    logprobs = [response.logprobs for response in ordered if response.logprobs is not None]
    return replace(
        first,
        prompt_id=prompt.prompt_id,
        logprobs=np.concatenate(logprobs) if len(logprobs) == len(ordered) and not error else None,
        is_greedy=None,
        n_examples=min(response.n_examples for response in ordered),
        n_tokens_read=sum(response.n_tokens_read for response in ordered),
        n_tokens_written=sum(response.n_tokens_written for response in ordered),
        error=error,
        is_too_long=any(response.is_too_long for response in ordered),
    )
