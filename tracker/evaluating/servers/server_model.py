"""A language model behind a server that speaks OpenAI's protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Literal

from tracker.errors import SelectionError
from tracker.evaluating.choices import APIS, METHODS
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Reply, Sampling
from tracker.evaluating.scoring.options import MOST_UNLISTED
from tracker.evaluating.servers.address import cautions, read_address, read_key
from tracker.evaluating.servers.api_capabilities import Api, Way, find_way
from tracker.evaluating.servers.connection import Connection
from tracker.evaluating.servers.prompt_requests import Asking, Outcome
from tracker.evaluating.servers.rate_limiter import MINUTE, BackOff, Pace
from tracker.evaluating.servers.retrying_client import Caller
from tracker.evaluating.servers.worker_pool import Crew, replies_of

KEY_ENV = "OPENAI_API_KEY"
MILLION = 1_000_000


class ServerAnswerer:
    """Puts questions to a server, several at a time.

    Attributes:
        model: its name on the server.
        host: name and port of the server.
        way: in which it is asked, in words.
        cautions: what one should know before the first prompt, in sentences.
        n_unlisted: labels that the server did not name among the likeliest tokens, in all.
        unlisted_bound: largest probability that one of them can have had.
        n_dropped_shots: prompts that were too long with all of their worked examples.
    """

    def __init__(
        self,
        caller: Caller,
        way: Way,
        model: str,
        *,
        method: str,
        sampling: Sampling,
        concurrency: int,
        prices: tuple[float | None, float | None],
        cautions: Sequence[str],
    ) -> None:
        self._caller, self._way, self._method, self._sampling = caller, way, method, sampling
        self._concurrency, self._prices = concurrency, prices
        self.model, self.host = model, caller.address.host
        self.way = way.words(method)
        self.cautions = tuple(cautions)
        self.n_unlisted, self.unlisted_bound, self.n_dropped_shots = 0, 0.0, 0

    def __repr__(self) -> str:
        return f"ServerAnswerer({self.model!r} at {self.host}: {self.way})"

    def replies(self, questions: Sequence[Question], stored: Callable[[int], bool]) -> Iterator[list[Reply]]:
        """The replies that are missing, about every second, in any order; all of a prompt's at once.

        A prompt that the server refuses, or does not answer in all tries, has replies with an error.

        Raises:
            ServerError: nothing more will be answered; what was answered has been yielded.
        """
        missing = [question for question in questions if not stored(question.prompt_id)]
        shots = {question.prompt_id: len(question.shots) for question in missing}
        crew = Crew(work=self._outcome, connect=self._caller.connection, n_threads=self._concurrency)
        outcomes = crew.outcomes(missing)
        try:
            for portion in outcomes:
                for outcome in portion:
                    self.n_unlisted += outcome.n_unlisted
                    self.unlisted_bound = max(self.unlisted_bound, outcome.unlisted_bound)
                    first = outcome.replies[0]
                    self.n_dropped_shots += not first.error and first.n_shots < shots[first.prompt_id]
                yield replies_of(portion)
        finally:
            outcomes.close()  # type: ignore[attr-defined]

    def cost(self, read: int, written: int) -> float | None:
        """What so many tokens cost, in the currency of the prices; None where a price is not known."""
        price_read, price_written = self._prices
        if price_read is None or price_written is None:
            return None
        return (read * price_read + written * price_written) / MILLION

    @property
    def n_tokens_read(self) -> int:
        """Tokens read so far, the probe and replies that were thrown away included."""
        return self._caller.n_read

    @property
    def n_tokens_written(self) -> int:
        """Tokens written so far."""
        return self._caller.n_written

    def as_settings(self) -> dict[str, Any]:
        """What decides the answers, for the record of the run: no key, no speed, no price."""
        address = self._caller.address
        settings: dict[str, Any] = {
            "server": address.base, "server_model": self.model, "way": self.way, "endpoint": self._way.path,
        }  # fmt: skip
        if self._way.asks == "letters":
            settings["n_top"] = self._way.n_top
        if self._way.asks == "text":
            settings |= {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self._sampling).items()}
        return settings

    def remarks(self) -> list[str]:
        """What is to be said at the end, in sentences."""
        said = []
        if self.n_unlisted:
            said.append(
                f"{self.n_unlisted:,} labels were not among the {self._way.n_top} likeliest tokens that the server "
                "names, and count as impossible; none of them can have had a probability above "
                f"{self.unlisted_bound:.2g}. Where they may have more than {MOST_UNLISTED:.0%} of what all labels of a "
                "prompt have, no gold probability is stored."
            )
        if self.n_dropped_shots:
            said.append(
                f"{self.n_dropped_shots:,} prompts were too long for the server; worked examples were left out."
            )
        if self._caller.n_estimated:
            said.append(
                f"The server did not count the tokens of {self._caller.n_estimated:,} requests; they are estimated "
                "from the length of the text."
            )
        if self._caller.faults:
            kinds = ", ".join(f"{kind}: {n:,}" for kind, n in sorted(self._caller.faults.items()))
            said.append(f"Requests that had to be sent again ({kinds}).")
        return said

    def _outcome(self, question: Question, connection: Connection, stop: threading.Event) -> Outcome:
        return Asking(
            caller=self._caller,
            connection=connection,
            way=self._way,
            model=self.model,
            sampling=self._sampling,
            is_written_method=self._method == "generation",
            stop=stop,
        ).outcome(question)


def open_server(
    api_base: str,
    model: str,
    *,
    method: str,
    sampling: Sampling | None = None,
    api: Literal["auto", "completions", "chat"] = "auto",
    key_env: str = KEY_ENV,
    concurrency: int = 8,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    timeout_s: float = 60.0,
    tries: int = 6,
    price_read: float | None = None,
    price_written: float | None = None,
    chat: bool | None = None,
    n_top: int = 20,
    back_off: BackOff | None = None,
    minute_s: float = MINUTE,
) -> ServerAnswerer:
    """A server that has been asked once, to see what it offers.

    Args:
        api_base: its address, up to where ``/completions`` begins, such as ``http://localhost:8000/v1``.
        model: the model's name there.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        sampling: how answers are written.
        api: the endpoint; by default ``completions`` where it is offered, else ``chat``.
        key_env: environment variable that holds the key.
        concurrency: requests under way at the same time, at most.
        requests_per_minute: at most, all tries counted; None for no limit.
        tokens_per_minute: at most, read and written together.
        timeout_s: seconds of silence after which a try is given up.
        tries: how often a request is sent at most.
        price_read: of a million tokens read.
        price_written: of a million tokens written.
        chat: whether questions are put as turns of a conversation; says the same as ``api``.
        n_top: likeliest tokens that are asked for, for ``letters``.
        back_off: the waits between tries, in place of ``tries``.
        minute_s: length of the minute of the limits, in seconds.

    Raises:
        ServerError: it cannot be reached, does not accept the key, or does not offer what the method needs.
        SelectionError: options that make no sense or contradict each other.
    """
    if method not in METHODS:
        raise SelectionError(f"There is no method {method!r}. Known: {', '.join(METHODS)}.")
    if concurrency < 1 or tries < 1 or n_top < 1:
        raise SelectionError("The numbers of requests at a time, of tries and of likeliest tokens are at least 1.")
    limits = (requests_per_minute, tokens_per_minute, timeout_s)
    if any(limit is not None and not limit > 0 for limit in limits):
        raise SelectionError("Limits per minute and the time to wait for a reply are above 0.")
    address, key = read_address(api_base), read_key(key_env)
    if key.is_part_of(api_base):
        raise SelectionError(
            "The address of the server holds the key, and addresses are stored with the run. Take it out: "
            f"that {key_env} holds it is enough."
        )
    caller = Caller(
        address,
        key,
        pace=Pace(requests_per_minute, tokens_per_minute, minute_s),
        back_off=back_off or BackOff(tries=tries),
        timeout_s=timeout_s,
        key_env=key_env,
    )
    sampling = sampling or Sampling()
    way = find_way(
        caller, model, method, apis=_apis(api, chat, method), n_top=n_top, temperature=sampling.temperature
    )  # fmt: skip
    return ServerAnswerer(
        caller, way, model, method=method, sampling=sampling, concurrency=concurrency,
        prices=(price_read, price_written), cautions=cautions(address, key),
    )  # fmt: skip


def _apis(api: str, chat: bool | None, method: str) -> tuple[Api, ...]:
    """The endpoints that may be used, the preferred one first."""
    if api not in APIS:
        raise SelectionError(f"There is no endpoint {api!r}. Known: {', '.join(APIS)}.")
    if (api, chat) in (("completions", True), ("chat", False)):
        raise SelectionError(
            "Turns of a conversation go to the endpoint chat, texts to completions. Leave out one of --api and --chat."
        )
    if api == "chat" or chat:
        if method == "loglikelihood":
            raise SelectionError(
                "In a conversation servers do not give the probabilities of the options. Use --method letters."
            )
        return ("chat",)
    return ("completions",) if api == "completions" or chat is False else ("completions", "chat")
