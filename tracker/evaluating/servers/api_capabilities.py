"""What the API of a server offers, detected by one request."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import Message
from tracker.evaluating.servers.protocol import WORD_STARTS, get_echoed_logprobs, get_text, get_top_logprobs
from tracker.evaluating.servers.retrying_client import RequestRejectedError, RetriesExhaustedError, RetryingClient
from tracker.name_lists import join_names

Api = Literal["completions", "chat"]
PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}
MIN_TOP_TOKENS = 5
"""Likeliest tokens that every server lists which lists any."""
PROBE, PROBE_END = "The capital of France is", " Paris"
PromptContent = str | list[Message]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiCapabilities:
    """The endpoint of a server, and what is requested of it.

    Attributes:
        api: whether it completes a text or takes its turn in a conversation.
        output: the likeliest first tokens, the probabilities of what was sent, or text.
        n_top: likeliest tokens that are requested.
        limit: what the protocol calls the limit of tokens here.
        n_extra_tokens: tokens that it must write where none are wanted.
    """

    api: Api
    output: Literal["letters", "likelihoods", "text"]
    n_top: int = 0
    limit: str = "max_tokens"
    n_extra_tokens: int = 0

    @property
    def path(self) -> str:
        """Where requests go, behind the address."""
        return PATHS[self.api]

    def body(self, model: str, prompt: PromptContent, *, n_tokens: int, **more: Any) -> dict[str, Any]:
        """A request: a text for completions, turns for a conversation."""
        body: dict[str, Any] = {"model": model, "temperature": 0.0, **more}
        body["messages" if self.api == "chat" else "prompt"] = prompt
        if self.output == "letters":
            body |= {"logprobs": True, "top_logprobs": self.n_top} if self.api == "chat" else {"logprobs": self.n_top}
            n_tokens = 1
        elif self.output == "likelihoods":
            body |= {"echo": True, "logprobs": 1}
            n_tokens = self.n_extra_tokens
        return body | {self.limit: n_tokens}

    def describe(self, method: str) -> str:
        """The endpoint and what is requested of it, in a line."""
        if self.output == "letters":
            return f"probabilities of the labels from {self.path}, among the {self.n_top} likeliest tokens"
        if self.output == "likelihoods":
            return f"log-probabilities of the options from {self.path} with echo"
        description = "labels written by the model, no probabilities" if method == "letters" else "answers written"
        return f"{description}, from {self.path}"


def detect_capabilities(
    client: RetryingClient, model: str, method: str, *, apis: Sequence[Api], n_top: int, temperature: float
) -> ApiCapabilities:
    """The first of the possible requests that a server supports; each is tried once.

    Args:
        client: of the server.
        model: its name on the server.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        apis: those that may be used, the first preferred.
        n_top: likeliest tokens to request.
        temperature: of written answers.

    Raises:
        ServerError: it cannot be reached, does not accept the key, or supports no request that would do.
    """
    probe = _ServerProbe(client, model, temperature)
    try:
        for capabilities in _list_candidates(method, apis, n_top, probe):
            detected = probe.test(capabilities)
            if detected is not None:
                return detected
        raise probe.explain_rejection(method)
    finally:
        probe.connection.close()


def _list_candidates(method: str, apis: Sequence[Api], n_top: int, probe: _ServerProbe) -> Iterator[ApiCapabilities]:
    """The requests to try, in order; what one has shown decides on the next."""
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
        connection: the one that is used.
        answering: endpoints that have answered, and what they call the limit of tokens.
        rejections: the message of each request that was rejected.
    """

    def __init__(self, client: RetryingClient, model: str, temperature: float) -> None:
        self._client, self._model, self._temperature = client, model, temperature
        self._stop = threading.Event()
        self._missing_apis: set[Api] = set()
        self._broken: set[str] = set()
        self.connection = client.connection()
        self.answering: dict[Api, str] = {}
        self.rejections: dict[str, str] = {}

    def test(self, capabilities: ApiCapabilities) -> ApiCapabilities | None:
        """The capabilities, where the server has them; None where it does not.

        Raises:
            ServerError: the server does not answer at all, or not this key.
        """
        if capabilities.api in self._missing_apis:
            return None
        if capabilities.output == "text" and capabilities.api in self.answering:
            return replace(capabilities, limit=self.answering[capabilities.api])
        text = PROBE + (PROBE_END if capabilities.output == "likelihoods" else "")
        prompt: PromptContent = [{"role": "user", "content": text}] if capabilities.api == "chat" else text
        more = {"temperature": self._temperature} if capabilities.output == "text" else {}
        for candidate in (capabilities, replace(capabilities, limit="max_completion_tokens")):
            try:
                is_supported, _ = self._client.send(
                    self.connection,
                    capabilities.path,
                    candidate.body(self._model, prompt, n_tokens=1, **more),
                    lambda response: _is_supported(response, capabilities),
                    n_letters=len(text),
                    stop=self._stop,
                    is_first=not self.answering,
                )
            except RequestRejectedError as error:
                self.rejections[capabilities.path] = f"{error.message} (HTTP {error.status})"
                if error.status in (404, 405):
                    self._missing_apis.add(capabilities.api)
                if "max_completion_tokens" not in error.message:
                    return None
            except RetriesExhaustedError as error:
                last_failure = error
                break
            else:
                self.answering[capabilities.api] = candidate.limit
                return candidate if is_supported else None
        else:
            return None
        if last_failure.status not in (500, 501):  # by which servers also say that they do not know an option
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
                f"The server {host} does not give the probabilities of a text that it is sent (completions with echo "
                f"and logprobs){f': {message}' if message else ''}. Use --method letters, or a server that gives them."
            )
        if self._broken and self._broken == set(self.rejections):
            return ServerError(
                f"The server {host} fails whatever it is asked ({message}). Look into its log, or try again later."
            )
        names = names or self._client.known_models(self.connection)
        known = f" It has: {join_names(names, 8)}." if names else ""
        return ServerError(
            f"The server {host} does not answer for the model {self._model!r} ({message}).{known} Check --model, and "
            "that the address ends where /completions begins, as in http://localhost:8000/v1."
        )


def _is_supported(response: Mapping[str, Any], capabilities: ApiCapabilities) -> bool:
    """Whether a response to the probe holds what the request needs."""
    if capabilities.output == "letters":
        return get_top_logprobs(response) is not None
    if capabilities.output == "likelihoods":
        echoed = get_echoed_logprobs(response)
        spelt = "".join(echoed[0]).translate(WORD_STARTS) if echoed else ""
        return "".join((PROBE + PROBE_END).split()) in "".join(spelt.split())
    get_text(response)
    return True
