"""In which way a server is asked: what it offers is found by asking it once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tracker.errors import ServerError
from tracker.measuring.questions.question import Message
from tracker.measuring.servers.caller import Caller, GaveUpError, RefusedError
from tracker.measuring.servers.connection import Connection
from tracker.measuring.servers.protocol import echoed, likeliest, written
from tracker.wording import listed

Api = Literal["completions", "chat"]
PATHS: dict[Api, str] = {"completions": "/completions", "chat": "/chat/completions"}
FEWEST_TOP = 5
"""Likeliest tokens that every server lists which lists any."""
PROBE, PROBE_END = "The capital of France is", " Paris"
UNSUPPORTED = (400, 404, 405, 415, 422, 500, 501)
"""Statuses by which servers say that they do not offer something; 500 among them."""
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
    stop = threading.Event()
    connection = caller.connection()
    refusals: dict[str, str] = {}
    answering: set[Api] = set()
    try:
        for way in _ways(method, apis, n_top, answering):
            found = _offered(caller, connection, model, way, temperature, stop, refusals, answering)
            if found is not None:
                return found
        raise _refusal(caller, model, method, refusals, bool(answering), caller.known_models(connection))
    finally:
        connection.close()


def _ways(method: str, apis: Sequence[Api], n_top: int, answering: set[Api]) -> Iterator[Way]:
    """The ways to try, in order; an endpoint that has answered already need not show again that it writes."""
    if method == "loglikelihood":
        if "completions" in apis:
            yield Way(api="completions", asks="likelihoods")
            yield Way(api="completions", asks="likelihoods", n_extra=1)
        return
    if method == "letters":
        for api in apis:
            yield Way(api=api, asks="letters", n_top=n_top)
            if n_top > FEWEST_TOP and api not in answering:
                yield Way(api=api, asks="letters", n_top=FEWEST_TOP)
    conversing_first = reversed(apis) if method == "letters" else apis
    yield from (Way(api=api, asks="text") for api in conversing_first)


def _offered(
    caller: Caller,
    connection: Connection,
    model: str,
    way: Way,
    temperature: float,
    stop: threading.Event,
    refusals: dict[str, str],
    answering: set[Api],
) -> Way | None:
    text = PROBE + (PROBE_END if way.asks == "likelihoods" else "")
    prompt: Prompt = [{"role": "user", "content": text}] if way.api == "chat" else text
    more = {"temperature": temperature} if way.asks == "text" else {}
    for tried in (way, replace(way, limit="max_completion_tokens")):
        body = tried.body(model, prompt, n_tokens=1, **more)
        try:
            offers, _ = caller.ask(
                connection, tried.path, body, lambda reply, tried=tried: _offers(reply, tried),  # type: ignore[misc]
                n_letters=len(text), stop=stop, is_first=not answering,
            )  # fmt: skip
        except RefusedError as error:
            refusals[tried.path] = f"{error.said} (HTTP {error.status})"
            if tried.limit == way.limit and "max_completion_tokens" in error.said:
                continue
            return None
        except GaveUpError as error:
            reason = str(error)
            status = error.status
        else:
            answering.add(tried.api)
            return tried if offers else None
        if status not in UNSUPPORTED:
            raise ServerError(f"{caller.address.host}: {reason}. Try again later.")
        refusals[tried.path] = reason
        return None
    return None


def _offers(reply: Mapping[str, Any], way: Way) -> bool:
    """Whether a reply to the probe holds what the way needs."""
    if way.asks == "letters":
        return likeliest(reply) is not None
    if way.asks == "likelihoods":
        given = echoed(reply)
        return given is not None and PROBE_END.strip() in "".join(given[0]) and len(given[0]) >= 2 + way.n_extra
    written(reply)
    return True


def _refusal(
    caller: Caller, model: str, method: str, refusals: Mapping[str, str], answers: bool, known: Sequence[str]
) -> ServerError:
    host = caller.address.host
    if method == "loglikelihood" and (answers or not all("HTTP 404" in said for said in refusals.values())):
        said = "; ".join(refusals.values())
        return ServerError(
            f"The server {host} does not give the probabilities of a text that it is sent (completions with echo and "
            f"logprobs){f': {said}' if said else ''}. Use --method letters, or a server that does, such as vLLM."
        )
    said = "; ".join(f"{path}: {reason}" for path, reason in refusals.items()) or "there is no endpoint to ask"
    names = f" It has: {listed(known, 8)}." if known else ""
    return ServerError(
        f"The server {host} does not answer for the model {model!r} ({said}).{names} Check --model, and that the "
        "address ends where /completions begins, as in http://localhost:8000/v1."
    )
