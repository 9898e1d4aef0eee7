"""Log-probabilities of options by vLLM.

Spellings of one token are the log-probabilities of chosen next tokens: one request per prompt, whose prefix is cached.
Longer options are sent after their prompt, with the log-probabilities of the sent tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.option_scorer import OptionScorer
from tracker.evaluating.local.tokenization import Ids
from tracker.evaluating.local.tokens import EncodedPrompt, describe_excess
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, claim_batch

PROMPTS_TOGETHER = 256
"""Default number of prompts sent to vLLM at once, which schedules them itself."""
MAX_CHOSEN_TOKENS = 128
"""Maximum number of next tokens whose log-probabilities vLLM returns."""
EXTRA_TOKENS = 2
"""Tokens of the context that vLLM needs beside prompt and option: the last token of the option, which other engines
only predict, and a generated token.
"""
FIRST_TOKEN: dict[str, Any] = {"max_tokens": 1, "temperature": 0.0, "detokenize": False}
Request = tuple[Ids, Mapping[str, Any]]


class VllmOptionScorer(OptionScorer):
    """Responds to prompts with the log-probabilities of their options; arguments as `OptionScorer`.

    Attributes:
        knows_greedy: its responses have ``is_greedy``.
    """

    knows_greedy = True

    def __init__(self, model: LanguageModel, *, method: str, batch_size: int | None = None, **options: Any) -> None:
        context = None if model.context is None else model.context - EXTRA_TOKENS
        super().__init__(replace(model, context=context), method=method, batch_size=batch_size, **options)
        self._n_together = batch_size or PROMPTS_TOGETHER

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield responses, as `tracker.evaluating.responses.ModelBackend` requires."""
        encoded_prompts = self.encode(prompts)
        if self.too_long == "cut":
            encoded_prompts = [encoded.cut() for encoded in encoded_prompts]
        too_long = [encoded for encoded in encoded_prompts if encoded.context.n_over]
        if missing := [encoded for encoded in too_long if not is_stored(encoded.prompt.prompt_id)]:
            yield [self._make_too_long_response(encoded) for encoded in missing]
        fits = [encoded for encoded in encoded_prompts if not encoded.context.n_over]
        for first in range(0, len(fits), self._n_together):
            members = fits[first : first + self._n_together]
            if claim_batch(is_stored, [member.prompt.prompt_id for member in members]):
                yield self._score(members)

    def _score(self, members: Sequence[EncodedPrompt]) -> list[Response]:
        requests = [request for member in members for request in self._make_requests(member)]
        outputs = iter(self.model.model.run(requests))
        responses = []
        for member in members:
            scored = self._read_scores(member, outputs)
            logprobs = np.array([scored[ids][0] for ids in member.options], dtype=np.float64)
            response = self._make_response(member, logprobs)
            is_greedy = None if member.labels else tuple(scored[ids][1] for ids in member.options)
            responses.append(replace(response, is_greedy=is_greedy))
        return responses

    def _make_requests(self, member: EncodedPrompt) -> list[Request]:
        """Return the request for all spellings of one token, if there are some, and those for each other option."""
        chosen, separate = self._split_options(member)
        requests: list[Request] = []
        if chosen:
            requests.append((member.context.ids, {**FIRST_TOKEN, "logprob_token_ids": list(chosen)}))
        return requests + [(member.context.ids + ids, {**FIRST_TOKEN, "prompt_logprobs": 0}) for ids in separate]

    def _read_scores(self, member: EncodedPrompt, outputs: Iterator[Any]) -> dict[Ids, tuple[float, bool]]:
        """Return log-probability of each option, and whether greedy decoding generates it."""
        chosen, separate = self._split_options(member)
        scores: dict[Ids, tuple[float, bool]] = {}
        if chosen:
            generated = next(outputs).outputs[0]
            first, greedy = generated.logprobs[0], generated.token_ids[0]
            scores |= {(token,): (float(first[token].logprob), token == greedy) for token in chosen}
        n_context = len(member.context.ids)
        for ids in separate:
            sent = next(outputs).prompt_logprobs
            tokens = [sent[n_context + at][token] for at, token in enumerate(ids)]
            scores[ids] = sum(float(token.logprob) for token in tokens), all(token.rank == 1 for token in tokens)
        return scores

    def _split_options(self, member: EncodedPrompt) -> tuple[Ids, list[Ids]]:
        """Return the options of one token that share a request, and the other options."""
        distinct = dict.fromkeys(member.options)
        chosen = tuple(ids[0] for ids in distinct if len(ids) == 1)
        if not self.model.model.scores_tokens or len(chosen) > MAX_CHOSEN_TOKENS:
            chosen = ()
        return chosen, [ids for ids in distinct if not (chosen and len(ids) == 1)]

    def _make_too_long_response(self, encoded: EncodedPrompt) -> Response:
        reason = describe_excess(self.model, encoded.context)
        return Response(
            prompt_id=encoded.prompt.prompt_id, n_examples=encoded.context.n_examples, error=reason, is_too_long=True
        )
