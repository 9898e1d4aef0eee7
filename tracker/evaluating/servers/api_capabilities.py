"""Detect what the API of a server supports, by one request."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import Message
from tracker.evaluating.responses import Sampling
from tracker.evaluating.scoring.label_spellings import WORD_STARTS
from tracker.evaluating.servers.protocol import get_echoed_logprobs, get_text, get_top_logprobs
from tracker.evaluating.servers.request_errors import RequestRejectedError, RetriesExhaustedError
from tracker.evaluating.servers.retrying_client import RetryingClient
from tracker.name_lists import join_names

Api = Literal["completions", "chat"]
PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}
MAX_STOP_STRINGS = 4
"""Number of stop strings that every server accepts; all are applied to the response here."""
MIN_TOP_TOKENS = 5
"""Number of likeliest tokens that every server with token probabilities can list."""
PROBE, PROBE_END = "The capital of France is", " Paris"
PROBE_TOKENS = 16
"""Maximum length of generated text in the probe."""
UNFINISHED = "could not finish the message"
"""Rejection by a reasoning model whose reasoning alone exceeds the tokens of the probe."""
PromptContent = str | list[Message]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiCapabilities:
    """The endpoint of a server, and the kind of request.

    Attributes:
        api: completion of a text, or a turn in a conversation.
        output: the likeliest first tokens, the probabilities of the sent text, or generated text.
        n_top: number of likeliest tokens to request.
        n_extra_tokens: number of tokens that the server must generate although none are needed.
    """

    api: Api
    output: Literal["letters", "likelihoods", "text"]
    n_top: int = 0
    n_extra_tokens: int = 0

    @property
    def path(self) -> str:
        """Path of requests, relative to the address."""
        return PATHS[self.api]

    def body(self, model: str, prompt: PromptContent, *, n_tokens: int, **more: Any) -> dict[str, Any]:
        """Return a request body: a text for completions, turns for a conversation."""
        body: dict[str, Any] = {"model": model, "temperature": 0.0, **more}
        body["messages" if self.api == "chat" else "prompt"] = prompt
        if self.output == "letters":
            body |= {"logprobs": True, "top_logprobs": self.n_top} if self.api == "chat" else {"logprobs": self.n_top}
            n_tokens = 1
        elif self.output == "likelihoods":
            body |= {"echo": True, "logprobs": 1}
            n_tokens = self.n_extra_tokens
        return body | {"max_tokens": n_tokens}

    def describe(self, method: str) -> str:
        """Return the endpoint and the kind of request in one line."""
        if self.output == "letters":
            return f"label probabilities from {self.path}, among the {self.n_top} likeliest tokens"
        if self.output == "likelihoods":
            return f"log-probabilities of the options from {self.path} with echo"
        description = "generated labels, no probabilities" if method == "letters" else "generated answers"
        return f"{description}, from {self.path}"


def detect_capabilities(
    client: RetryingClient, model: str, method: str, *, apis: Sequence[Api], n_top: int, sampling: Sampling
) -> ApiCapabilities:
    """Return the first kind of request that a server supports; each is tried once.

    Args:
        client: client of the server.
        model: its name on the server.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        apis: allowed endpoints, in order of preference.
        n_top: number of likeliest tokens to request.
        sampling: sampling options of generated answers.

    Raises:
        ServerError: the server is not reachable, rejects the key, or supports none of the requests.
    """
    probe = _ServerProbe(client, model, sampling)
    try:
        for capabilities in _list_candidates(method, apis, n_top, probe):
            detected = probe.test(capabilities)
            if detected is not None:
                return detected
        raise probe.explain_rejection(method)
    finally:
        probe.connection.close()


def _list_candidates(method: str, apis: Sequence[Api], n_top: int, probe: _ServerProbe) -> Iterator[ApiCapabilities]:
    """Yield the kinds of request to try, in order; earlier results decide on later ones."""
    if method == "loglikelihood":
        if "completions" in apis:
            yield ApiCapabilities(api="completions", output="likelihoods")
            yield ApiCapabilities(api="completions", output="likelihoods", n_extra_tokens=1)
        return
    if method == "letters":
        for api in apis:
            yield ApiCapabilities(api=api, output="letters", n_top=n_top)
            if n_top > MIN_TOP_TOKENS and api not in probe.answering:
                yield ApiCapabilities(api=api, output="letters", n_top=MIN_TOP_TOKENS)
    conversing_first = reversed(apis) if method == "letters" else apis
    yield from (ApiCapabilities(api=api, output="text") for api in conversing_first)


class _ServerProbe:
    """Tries each kind of request once.

    Attributes:
        connection: the connection.
        answering: endpoints that have answered.
        rejections: message of each rejected request.
    """

    def __init__(self, client: RetryingClient, model: str, sampling: Sampling) -> None:
        self._client, self._model, self._sampling = client, model, sampling
        self._stop = threading.Event()
        self._missing_apis: set[Api] = set()
        self._broken: set[str] = set()
        self.connection = client.connection()
        self.answering: set[Api] = set()
        self.rejections: dict[str, str] = {}

    def test(self, capabilities: ApiCapabilities) -> ApiCapabilities | None:
        """Return the capabilities if the server supports them, else None.

        Raises:
            ServerError: the server does not answer, or rejects the key.
        """
        if capabilities.api in self._missing_apis:
            return None
        if capabilities.output == "text" and capabilities.api in self.answering:
            return capabilities
        text = PROBE + (PROBE_END if capabilities.output == "likelihoods" else "")
        prompt: PromptContent = [{"role": "user", "content": text}] if capabilities.api == "chat" else text
        writes = capabilities.output == "text"
        more = make_sampling_fields(self._sampling, capabilities.api, seed=0) if writes else {}
        n_tokens = PROBE_TOKENS if writes else 1
        try:
            is_supported, _ = self._client.send(
                self.connection,
                capabilities.path,
                capabilities.body(self._model, prompt, n_tokens=n_tokens, **more),
                lambda response: _is_supported(response, capabilities),
                n_letters=len(text),
                stop=self._stop,
                is_first=not self.answering,
            )
        except RequestRejectedError as error:
            if writes and UNFINISHED in error.message.lower():
                self.answering.add(capabilities.api)
                return capabilities
            self.rejections[capabilities.path] = f"{error.message} (HTTP {error.status})"
            if error.status in (404, 405):
                self._missing_apis.add(capabilities.api)
            return None
        except RetriesExhaustedError as error:
            last_failure = error
        else:
            self.answering.add(capabilities.api)
            return capabilities if is_supported else None
        if last_failure.status not in (500, 501):  # status by which servers also report an unknown option
            raise ServerError(f"{self._client.address.host}: {last_failure}. Try again later.")
        self.rejections[capabilities.path] = str(last_failure)
        self._broken.add(capabilities.path)
        return None

    def explain_rejection(self, method: str) -> ServerError:
        """The error of a server that supports none of the requests."""
        host = self._client.address.host
        message = "; ".join(f"{path}: {reason}" for path, reason in self.rejections.items())
        names = self._client.known_models(self.connection) if self._missing_apis else []
        if method == "loglikelihood" and (not self._missing_apis or self._model in names):
            return ServerError(
                f"The server {host} does not return the probabilities of the sent text (completions with echo and "
                f"logprobs){f': {message}' if message else ''}. Use --method letters, or a server that returns them."
            )
        if self._broken and self._broken == set(self.rejections):
            return ServerError(
                f"The server {host} fails on every request ({message}). Check its log, or try again later."
            )
        names = names or self._client.known_models(self.connection)
        known = f" Available models: {join_names(names, 8)}." if names else ""
        return ServerError(
            f"The server {host} does not answer for the model {self._model!r} ({message}).{known} Check --model, and "
            "that the address ends before /completions, as in http://localhost:8000/v1."
        )


def make_sampling_fields(sampling: Sampling, api: Api, *, seed: int) -> dict[str, Any]:
    """Return the sampling options of a request that differ from the protocol's defaults.

    Args:
        sampling: the options.
        api: endpoint of the request.
        seed: seed of this request.
    """
    chosen = sampling.for_conversation() if api == "chat" else sampling
    fields: dict[str, Any] = {"temperature": chosen.temperature}
    if chosen.temperature > 0:
        fields["seed"] = seed
    if chosen.top_p != 1.0:
        fields["top_p"] = chosen.top_p
    if chosen.stop:
        fields["stop"] = list(chosen.stop[:MAX_STOP_STRINGS])
    return fields


def _is_supported(response: Mapping[str, Any], capabilities: ApiCapabilities) -> bool:
    """Return whether the response to the probe holds what the request needs."""
    if capabilities.output == "letters":
        return get_top_logprobs(response) is not None
    if capabilities.output == "likelihoods":
        echoed = get_echoed_logprobs(response)
        spelt = "".join(echoed[0]).translate(WORD_STARTS) if echoed else ""
        return "".join((PROBE + PROBE_END).split()) in "".join(spelt.split())
    get_text(response)
    return True
