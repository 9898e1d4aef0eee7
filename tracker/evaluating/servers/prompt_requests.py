"""Request the responses to one prompt from a server."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, Sampling, end_text
from tracker.evaluating.scoring.label_spellings import WORD_STARTS
from tracker.evaluating.servers.api_capabilities import ApiCapabilities, PromptContent, make_sampling_fields
from tracker.evaluating.servers.connection import Connection
from tracker.evaluating.servers.protocol import (
    MalformedError,
    TokenLogprobs,
    Usage,
    count_continuation_tokens,
    get_echoed_logprobs,
    get_top_logprobs,
    get_written,
    match_labels,
)
from tracker.evaluating.servers.request_errors import RequestRejectedError, RetriesExhaustedError
from tracker.evaluating.servers.retrying_client import RetryingClient

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptOutcome:
    """The outcome of one prompt.

    Attributes:
        responses: one per trial.
        is_outage: whether the server did not answer, as opposed to rejecting the prompt.
        n_unlisted: labels that were not among the likeliest tokens.
        unlisted_bound: upper bound of the probability of such a label.
    """

    responses: list[Response]
    is_outage: bool = False
    n_unlisted: int = 0
    unlisted_bound: float = 0.0


@dataclass(kw_only=True)
class PromptSender:
    """Sends one prompt to a server, in one thread.

    Attributes:
        client: sends requests.
        connection: the thread's connection.
        capabilities: supported kind of request.
        model: its name on the server.
        sampling: sampling options.
        is_written_method: whether answers are generated, possibly in several trials, or labels requested.
        stop: ends waiting.
    """

    client: RetryingClient
    connection: Connection
    capabilities: ApiCapabilities
    model: str
    sampling: Sampling
    is_written_method: bool
    stop: threading.Event
    _usages: list[Usage] = field(default_factory=list)

    def send(self, prompt: RenderedPrompt) -> PromptOutcome:
        """Return the prompt's responses; the first few-shot examples are dropped if the server finds the text too long.

        Raises:
            HaltedError: the evaluation is stopped; there is no outcome.
            ServerError: no request will succeed.
        """
        self._usages = []
        if self.capabilities.output != "text" and not prompt.options:
            return self._make_failed_outcome(prompt, "The prompt has no options to choose from.", is_outage=False)
        for n_examples in range(len(prompt.examples), -1, -1):
            try:
                if self.capabilities.output == "letters":
                    return self._compare_labels(prompt, n_examples)
                if self.capabilities.output == "likelihoods":
                    return self._compare_likelihoods(prompt, n_examples)
                return self._generate(prompt, n_examples)
            except RequestRejectedError as error:
                if error.status == 404:
                    raise ServerError(
                        f"The server {self.client.address.host} no longer provides the model {self.model!r} or the "
                        f"address ({error.message}). Responses received so far are stored. Run the same command "
                        "again to resume."
                    ) from None
                if not (error.is_too_long and n_examples):
                    return self._make_failed_outcome(
                        prompt, f"{error}.", is_outage=False, is_too_long=error.is_too_long
                    )
            except RetriesExhaustedError as error:
                return self._make_failed_outcome(prompt, f"{error}.", is_outage=True)
            except MalformedError as error:
                return self._make_failed_outcome(prompt, f"The server sent {error}.", is_outage=False)
        raise AssertionError  # the last iteration returns

    def _compare_labels(self, prompt: RenderedPrompt, n_examples: int) -> PromptOutcome:
        content = self._render(prompt, n_examples)
        first = self._request_top_logprobs(content)
        if not first:
            reason = "The server listed no tokens: the model ended its response at once, or probabilities are missing."
            return PromptOutcome(responses=[self._make_response(prompt, n_examples, error=reason)])
        labels = match_labels(first, prompt.options)
        logprob = max((logprob for token, logprob in first if _is_space(token)), default=-np.inf)
        if isinstance(content, str) and logprob > np.logaddexp.reduce(labels.logprobs):
            # a vocabulary without a token for a space and a digit together generates the space first
            second = match_labels(self._request_top_logprobs(content + " "), prompt.options)
            both = np.logaddexp(labels.logprobs, logprob + second.logprobs)
            left = 1.0 - np.exp(np.logaddexp.reduce([p for _, p in first]))
            bound = min(1.0, max(0.0, float(left)) + float(np.exp(logprob)) * second.unlisted_bound)
            n_unlisted = int(np.isneginf(both).sum())
        else:
            both, bound, n_unlisted = labels.logprobs, labels.unlisted_bound, labels.n_unlisted
        bound = bound if n_unlisted else 0.0
        fields: dict[str, Any] = {"logprobs": np.minimum(both, 0.0)}
        if n_unlisted == len(both):  # the likeliest label is then unknown
            n_top = self.capabilities.n_top
            fields = {"error": f"None of its labels was among the {n_top} likeliest tokens that the server lists."}
        elif bound:
            fields["unlisted_share"] = bound / (bound + float(np.exp(np.logaddexp.reduce(both))))
        return PromptOutcome(
            responses=[self._make_response(prompt, n_examples, **fields)],
            n_unlisted=n_unlisted,
            unlisted_bound=bound,
        )

    def _request_top_logprobs(self, content: PromptContent) -> TokenLogprobs:
        """Return the likeliest first tokens; none if the model ends at once."""
        return self._request(
            self.capabilities.body(self.model, content, n_tokens=1), lambda response: get_top_logprobs(response) or []
        )

    def _compare_likelihoods(self, prompt: RenderedPrompt, n_examples: int) -> PromptOutcome:
        text = prompt.text(n_examples)
        context = text.rstrip()
        options = [text[len(context) :] + prompt.join + option for option in prompt.options]
        n_context: int | None = None
        logprobs = []
        for option in options:
            tokens, values = self._request_echo(context + option)
            n = count_continuation_tokens(tokens, option)
            if n is None:  # labels of several tokens: as in lm-evaluation-harness, by the number of tokens before them
                if n_context is None:
                    n_context = len(self._request_echo(context)[0])
                n = len(tokens) - n_context
            counted = values[len(values) - n :]
            if n < 1 or any(value is None for value in counted):
                raise RequestRejectedError(200, "the response's probabilities do not cover the option")
            logprobs.append(sum(value for value in counted if value is not None))
        return PromptOutcome(
            responses=[self._make_response(prompt, n_examples, logprobs=np.array(logprobs, dtype=np.float64))]
        )

    def _request_echo(self, text: str) -> tuple[list[str], list[float | None]]:
        """Return the tokens of a text and their log-probabilities, without those that the model adds."""

        def read(response: Mapping[str, Any]) -> tuple[list[str], list[float | None]]:
            echoed = get_echoed_logprobs(response)
            if echoed is None:
                raise MalformedError("a response without the probabilities of the text")
            counted = (response.get("usage") or {}).get("completion_tokens")
            n_added = (
                counted
                if self.capabilities.n_extra_tokens and isinstance(counted, int)
                else self.capabilities.n_extra_tokens
            )
            end = len(echoed[0]) - n_added
            return echoed[0][:end], echoed[1][:end]

        return self._request(self.capabilities.body(self.model, text, n_tokens=0), read, n_letters_back=0)

    def _generate(self, prompt: RenderedPrompt, n_examples: int) -> PromptOutcome:
        content = self._render(prompt, n_examples)
        responses: list[Response] = []
        n_unanswered = 0
        for trial in range(self.sampling.n_trials if self.is_written_method else 1):
            body = self.capabilities.body(
                self.model,
                content,
                n_tokens=self.sampling.max_tokens,
                **self._sampling_options(prompt.text(n_examples), trial),
            )
            self._usages = []
            try:
                written = self._request(body, get_written, n_letters_back=4 * self.sampling.max_tokens)
            except RetriesExhaustedError as error:
                n_unanswered += 1
                responses.append(Response(prompt_id=prompt.prompt_id, trial=trial, error=f"{error}."))
                continue
            fields = end_text(written.text, self.sampling.stop, written.finish_reason, written.reasoning)
            responses.append(self._make_response(prompt, n_examples, trial=trial, **fields))
        return PromptOutcome(responses=responses, is_outage=n_unanswered == len(responses))

    def _sampling_options(self, text: str, trial: int) -> dict[str, Any]:
        """Return the sampling options of a request, with a separate seed for each text and trial."""
        seed = derive_seed(self.sampling.seed, text, trial)
        return make_sampling_fields(self.sampling, self.capabilities.api, seed=seed)

    def _render(self, prompt: RenderedPrompt, n_examples: int) -> PromptContent:
        return prompt.messages(n_examples) if self.capabilities.api == "chat" else prompt.text(n_examples)

    def _request(self, body: dict[str, Any], read: Callable[[Mapping[str, Any]], T], n_letters_back: int = 4) -> T:
        sent = body.get("prompt") or "".join(turn["content"] for turn in body.get("messages", ()))
        result, usage = self.client.send(
            self.connection, self.capabilities.path, body, read,
            n_letters=len(sent), n_letters_back=n_letters_back, stop=self.stop,
        )  # fmt: skip
        self._usages.append(usage)
        return result

    def _make_response(self, prompt: RenderedPrompt, n_examples: int, **fields: Any) -> Response:
        return Response(
            prompt_id=prompt.prompt_id,
            n_examples=n_examples,
            n_tokens_read=sum(usage.n_read for usage in self._usages),
            n_tokens_written=sum(usage.n_written for usage in self._usages),
            **fields,
        )

    def _make_failed_outcome(
        self, prompt: RenderedPrompt, reason: str, *, is_outage: bool, is_too_long: bool = False
    ) -> PromptOutcome:
        n_trials = self.sampling.n_trials if self.is_written_method else 1
        responses = [
            Response(prompt_id=prompt.prompt_id, trial=trial, error=reason, is_too_long=is_too_long)
            for trial in range(n_trials)
        ]
        return PromptOutcome(responses=responses, is_outage=is_outage)


def derive_seed(seed: int, text: str, trial: int) -> int:
    """Return a seed for one response to a text, in [0, 2**31)."""
    digest = hashlib.sha256(f"{seed}\n{trial}\n".encode() + text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4]) >> 1


def _is_space(token: str) -> bool:
    return token.translate(WORD_STARTS) == " "
