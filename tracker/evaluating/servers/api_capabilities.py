"""In which way a server is asked: what it offers is found by asking it once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import Message
from tracker.evaluating.servers.protocol import WORD_STARTS, echoed, likeliest, written
from tracker.evaluating.servers.retrying_client import Caller, GaveUpError, RefusedError
from tracker.name_lists import join_names

Api = Literal["completions", "chat"]
PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}
FEWEST_TOP = 5
"""Likeliest tokens that every server lists which lists any."""
PROBE, PROBE_END = "The capital of France is", " Paris"
Prompt = str | list[Message]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """In which way a server is asked.

    Attributes:
        api: whether it completes a text or takes its turn in a conversation.
        asks: for the likeliest first tokens, for the probabilities of what was sent, or for text.
        n_top: likeliest tokens that are asked for.
        limit: what the protocol calls the limit of tokens here.
        n_extra: tokens that it must write where none are wanted.
    """

    api: Api
    asks: Literal["letters", "likelihoods", "text"]
    n_top: int = 0
    limit: str = "max_tokens"
    n_extra: int = 0

    @property
    def path(self) -> str:
        """Where requests go, behind the address."""
        return PATHS[self.api]

    def body(self, model: str, prompt: Prompt, *, n_tokens: int, **more: Any) -> dict[str, Any]:
        """A request: a text for completions, turns for a conversation."""
        asked: dict[str, Any] = {"model": model, "temperature": 0.0, **more}
        asked["messages" if self.api == "chat" else "prompt"] = prompt
        if self.asks == "letters":
            asked |= {"logprobs": True, "top_logprobs": self.n_top} if self.api == "chat" else {"logprobs": self.n_top}
            n_tokens = 1
        elif self.asks == "likelihoods":
            asked |= {"echo": True, "logprobs": 1}
            n_tokens = self.n_extra
        return asked | {self.limit: n_tokens}

    def words(self, method: str) -> str:
        """The way in a line."""
        if self.asks == "letters":
            return f"probabilities of the labels from {self.path}, among the {self.n_top} likeliest tokens"
        if self.asks == "likelihoods":
            return f"log-probabilities of the options from {self.path} with echo"
        what = "labels written by the model, no probabilities" if method == "letters" else "answers written"
        return f"{what}, from {self.path}"


def find_way(caller: Caller, model: str, method: str, *, apis: Sequence[Api], n_top: int, temperature: float) -> Way:
    """The first way that a server offers, found with one request for each that is tried.

    Args:
        caller: asks it.
        model: its name on the server.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        apis: those that may be used, the first preferred.
        n_top: likeliest tokens to ask for.
        temperature: of written answers.

    Raises:
        ServerError: it cannot be reached, does not accept the key, or offers no way that would do.
    """
    probing = _Probing(caller, model, temperature)
    try:
        for way in _ways(method, apis, n_top, probing):
            found = probing.offered(way)
            if found is not None:
                return found
        raise probing.refusal(method)
    finally:
        probing.connection.close()


def _ways(method: str, apis: Sequence[Api], n_top: int, probing: _Probing) -> Iterator[Way]:
    """The ways to try, in order; what has been learned from one decides on the next."""
    if method == "loglikelihood":
        if "completions" in apis:
            yield Way(api="completions", asks="likelihoods")
            yield Way(api="completions", asks="likelihoods", n_extra=1)
        return
    if method == "letters":
        for api in apis:
            yield Way(api=api, asks="letters", n_top=n_top)
            if n_top > FEWEST_TOP and api not in probing.answering:
                yield Way(api=api, asks="letters", n_top=FEWEST_TOP)
    conversing_first = reversed(apis) if method == "letters" else apis
    yield from (Way(api=api, asks="text") for api in conversing_first)


class _Probing:
    """Asks a server once for each way.

    Attributes:
        connection: the one that is used.
        answering: endpoints that have answered, and what they call the limit of tokens.
        refusals: what was said of each request that was refused.
    """

    def __init__(self, caller: Caller, model: str, temperature: float) -> None:
        self._caller, self._model, self._temperature = caller, model, temperature
        self._stop = threading.Event()
        self._absent: set[Api] = set()
        self._broken: set[str] = set()
        self.connection = caller.connection()
        self.answering: dict[Api, str] = {}
        self.refusals: dict[str, str] = {}

    def offered(self, way: Way) -> Way | None:
        """The way, where the server offers it; None where it does not.

        Raises:
            ServerError: the server does not answer at all, or not this key.
        """
        if way.api in self._absent:
            return None
        if way.asks == "text" and way.api in self.answering:
            return replace(way, limit=self.answering[way.api])
        text = PROBE + (PROBE_END if way.asks == "likelihoods" else "")
        prompt: Prompt = [{"role": "user", "content": text}] if way.api == "chat" else text
        more = {"temperature": self._temperature} if way.asks == "text" else {}
        for tried in (way, replace(way, limit="max_completion_tokens")):
            try:
                offers, _ = self._caller.ask(
                    self.connection,
                    way.path,
                    tried.body(self._model, prompt, n_tokens=1, **more),
                    lambda reply: _offers(reply, way),
                    n_letters=len(text),
                    stop=self._stop,
                    is_first=not self.answering,
                )
            except RefusedError as error:
                self.refusals[way.path] = f"{error.said} (HTTP {error.status})"
                if error.status in (404, 405):
                    self._absent.add(way.api)
                if "max_completion_tokens" not in error.said:
                    return None
            except GaveUpError as error:
                gave_up = error
                break
            else:
                self.answering[way.api] = tried.limit
                return tried if offers else None
        else:
            return None
        if gave_up.status not in (500, 501):  # by which servers also say that they do not know an option
            raise ServerError(f"{self._caller.address.host}: {gave_up}. Try again later.")
        self.refusals[way.path] = str(gave_up)
        self._broken.add(way.path)
        return None

    def refusal(self, method: str) -> ServerError:
        """Why there is no way."""
        host = self._caller.address.host
        said = "; ".join(f"{path}: {reason}" for path, reason in self.refusals.items())
        names = self._caller.known_models(self.connection) if self._absent else []
        if method == "loglikelihood" and (not self._absent or self._model in names):
            return ServerError(
                f"The server {host} does not give the probabilities of a text that it is sent (completions with echo "
                f"and logprobs){f': {said}' if said else ''}. Use --method letters, or a server that gives them."
            )
        if self._broken and self._broken == set(self.refusals):
            return ServerError(
                f"The server {host} fails whatever it is asked ({said}). Look into its log, or try again later."
            )
        names = names or self._caller.known_models(self.connection)
        known = f" It has: {join_names(names, 8)}." if names else ""
        return ServerError(
            f"The server {host} does not answer for the model {self._model!r} ({said}).{known} Check --model, and that "
            "the address ends where /completions begins, as in http://localhost:8000/v1."
        )


def _offers(reply: Mapping[str, Any], way: Way) -> bool:
    """Whether a reply to the probe holds what the way needs."""
    if way.asks == "letters":
        return likeliest(reply) is not None
    if way.asks == "likelihoods":
        given = echoed(reply)
        spelt = "".join(given[0]).translate(WORD_STARTS) if given else ""
        return "".join((PROBE + PROBE_END).split()) in "".join(spelt.split())
    written(reply)
    return True
