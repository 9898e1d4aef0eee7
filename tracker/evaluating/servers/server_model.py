"""A language model behind a server with OpenAI's API."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tracker.errors import SelectionError
from tracker.evaluating.option_values import METHODS
from tracker.evaluating.plan_settings import ServerSettings
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import CONVERSATION_TOKENS, Response, Sampling, claim_each
from tracker.evaluating.scoring.options import MAX_UNLISTED_SHARE
from tracker.evaluating.servers.address import Address, ApiKey, list_address_warnings, read_address, read_key
from tracker.evaluating.servers.api_capabilities import Api, ApiCapabilities, detect_capabilities
from tracker.evaluating.servers.budget import Budget
from tracker.evaluating.servers.connection import Connection
from tracker.evaluating.servers.prompt_requests import PromptOutcome, PromptSender
from tracker.evaluating.servers.rate_limiter import MINUTE, BackOff, RateLimiter
from tracker.evaluating.servers.rejected_parameters import RequestParameters
from tracker.evaluating.servers.retrying_client import RetryingClient
from tracker.evaluating.servers.worker_pool import WorkerPool, flatten_responses

MILLION = 1_000_000


class ServerModel:
    """Sends prompts to a server, several at a time.

    Attributes:
        model: its name on the server.
        host: name and port of the server.
        sampling: sampling options.
        description: the endpoint and the kind of request, in one line.
        initial_warnings: warnings known before the first prompt.
        n_unlisted: total number of labels that the server did not list among the likeliest tokens.
        unlisted_bound: upper bound of the probability of such a label.
        n_shortened: prompts that were too long with all of their few-shot examples.
    """

    def __init__(
        self,
        client: RetryingClient,
        capabilities: ApiCapabilities,
        model: str,
        *,
        method: str,
        sampling: Sampling,
        concurrency: int,
        prices: tuple[float | None, float | None],
        initial_warnings: Sequence[str],
    ) -> None:
        self._client, self._capabilities, self._method, self.sampling = client, capabilities, method, sampling
        self._concurrency, self._prices = concurrency, prices
        self.model, self.host = model, client.address.host
        self.description = capabilities.describe(method)
        self.initial_warnings = (*initial_warnings, *client.parameters.list_warnings())
        self._n_dropped = len(client.parameters.dropped)
        self.n_unlisted, self.unlisted_bound, self.n_shortened = 0, 0.0, 0

    def __repr__(self) -> str:
        return f"ServerModel({self.model!r} at {self.host}: {self.description})"

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield the missing responses, about every second, in any order; all of a prompt's at once.

        A prompt that the server rejects, or does not answer in all attempts, has responses with an error.

        Raises:
            ServerError: no request will succeed; received responses have been yielded.
        """
        missing = [prompt for prompt in prompts if not is_stored(prompt.prompt_id)]
        n_examples = {prompt.prompt_id: len(prompt.examples) for prompt in missing}
        pool = WorkerPool(work=self._process, connect=self._client.connection, n_threads=self._concurrency)
        outcomes = pool.process(missing, partial(claim_each, is_stored))
        try:
            for portion in outcomes:
                for outcome in portion:
                    self.n_unlisted += outcome.n_unlisted
                    self.unlisted_bound = max(self.unlisted_bound, outcome.unlisted_bound)
                    first = outcome.responses[0]
                    self.n_shortened += not first.error and first.n_examples < n_examples[first.prompt_id]
                yield flatten_responses(portion)
        finally:
            outcomes.close()  # type: ignore[attr-defined]

    def cost(self, read: int, written: int) -> float | None:
        """Return the price of tokens, in the currency of the prices; None if a price is unknown."""
        price_read, price_written = self._prices
        if price_read is None or price_written is None:
            return None
        return (read * price_read + written * price_written) / MILLION

    @property
    def n_tokens_read(self) -> int:
        """Return the input tokens so far, including the probe and discarded responses."""
        return self._client.n_read

    @property
    def n_tokens_written(self) -> int:
        """Return the output tokens so far."""
        return self._client.n_written

    def as_settings(self) -> dict[str, Any]:
        """Return the settings that decide the responses, for the run's record: without key, speed and price."""
        address = self._client.address
        settings: dict[str, Any] = {
            "server": address.base,
            "server_model": self.model,
            "way": self.description,
            "endpoint": self._capabilities.path,
        }
        if self._capabilities.output == "letters":
            settings["n_top"] = self._capabilities.n_top
        if self._capabilities.output == "text":
            settings |= self.sampling.as_settings()
        return settings

    def list_warnings(self) -> list[str]:
        """Return the warnings about all requests so far."""
        warnings = self._client.parameters.list_warnings(self._n_dropped)
        if self.n_unlisted:
            warnings.append(
                f"{self.n_unlisted:,} labels were not among the {self._capabilities.n_top} likeliest tokens that the "
                "server lists, and have probability 0. The probability of each is at most "
                f"{self.unlisted_bound:.2g}. No gold probability is stored if they may have more than "
                f"{MAX_UNLISTED_SHARE:.0%} of the probability of all labels."
            )
        if self.n_shortened:
            warnings.append(
                f"{self.n_shortened:,} prompts were too long for the server with all few-shot examples; some "
                "examples were dropped."
            )
        if self._client.n_estimated:
            warnings.append(
                f"The server did not count the tokens of {self._client.n_estimated:,} requests; they are estimated "
                "from the length of the text."
            )
        if self._client.faults:
            kinds = ", ".join(f"{kind}: {n:,}" for kind, n in sorted(self._client.faults.items()))
            warnings.append(f"Some requests were retried ({kinds}).")
        return warnings

    def _process(self, prompt: RenderedPrompt, connection: Connection, stop: threading.Event) -> PromptOutcome:
        return PromptSender(
            client=self._client,
            connection=connection,
            capabilities=self._capabilities,
            model=self.model,
            sampling=self.sampling,
            is_written_method=self._method == "generation",
            stop=stop,
        ).send(prompt)


def open_server(
    model: str,
    settings: ServerSettings,
    *,
    method: str,
    sampling: Sampling | None = None,
    chat: bool | None = None,
    n_top: int = 20,
    back_off: BackOff | None = None,
    minute_s: float = MINUTE,
    budget: Budget | None = None,
) -> ServerModel:
    """Connect to a model on a server, and detect its capabilities by one request.

    Args:
        model: its name on the server.
        settings: address, endpoint, key, limits and prices.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        sampling: sampling options.
        chat: whether prompts are sent as turns of a conversation; must agree with ``settings.api``.
        n_top: number of likeliest tokens to request, for ``letters``.
        back_off: waits between attempts, instead of ``settings.tries``.
        minute_s: length of a minute of the rate limits, in seconds.
        budget: limits the cost of requests; None for no limit.

    Raises:
        ServerError: the server is not reachable, rejects the key, or does not support the method.
        SelectionError: options are invalid or contradict each other.
    """
    if method not in METHODS:
        raise SelectionError(f"No method {method!r}. Known: {', '.join(METHODS)}.")
    api_base, key_env = str(settings.api_base), settings.key_env
    address, key = read_address(api_base), read_key(key_env)
    if key.is_part_of(api_base):
        raise SelectionError(
            "The server address contains the API key, and addresses are stored with the run. Remove the key from "
            f"the address; the variable {key_env} suffices."
        )
    client = _make_client(address, key, settings, back_off=back_off, minute_s=minute_s, budget=budget)
    sampling = sampling or Sampling()
    apis = _list_apis(settings.api, chat, method)
    capabilities = detect_capabilities(client, model, method, apis=apis, n_top=n_top, sampling=sampling)
    if capabilities.api == "chat":
        sampling = sampling.for_conversation(CONVERSATION_TOKENS)
    return ServerModel(
        client,
        capabilities,
        model,
        method=method,
        sampling=sampling,
        concurrency=settings.concurrency,
        prices=(settings.price_read, settings.price_written),
        initial_warnings=list_address_warnings(address, key),
    )


def _make_client(
    address: Address,
    key: ApiKey,
    settings: ServerSettings,
    *,
    back_off: BackOff | None,
    minute_s: float,
    budget: Budget | None,
) -> RetryingClient:
    return RetryingClient(
        address,
        key,
        rate_limiter=RateLimiter(settings.requests_per_minute, settings.tokens_per_minute, minute_s),
        back_off=back_off or BackOff(tries=settings.tries),
        timeout_s=settings.timeout,
        key_env=settings.key_env,
        parameters=RequestParameters(settings.extra_fields()),
        budget=budget,
    )


def _list_apis(api: str, chat: bool | None, method: str) -> tuple[Api, ...]:
    """Return the allowed endpoints, the preferred one first."""
    if (api, chat) in (("completions", True), ("chat", False)):
        raise SelectionError(
            "--chat and --api contradict each other: turns of a conversation need the endpoint chat, texts need "
            "completions. Leave out one of the two."
        )
    if api == "chat" or chat:
        if method == "loglikelihood":
            raise SelectionError("Chat endpoints do not return the probabilities of options. Use --method letters.")
        return ("chat",)
    return ("completions",) if api == "completions" or chat is False else ("completions", "chat")
