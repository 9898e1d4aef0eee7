"""Send requests with retries and rate limits."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Never, TypeVar

from tenacity import RetryCallState, RetryError, Retrying, retry_if_exception_type, stop_after_attempt

from tracker.errors import ServerError
from tracker.evaluating.servers.address import Address, ApiKey
from tracker.evaluating.servers.budget import Budget
from tracker.evaluating.servers.connection import Connection, HttpResponse, format_redirect_target
from tracker.evaluating.servers.protocol import MalformedError, Usage, get_usage, get_written, parse_error
from tracker.evaluating.servers.rate_limiter import BackOff, RateLimiter, parse_retry_after
from tracker.evaluating.servers.rejected_parameters import RequestParameters
from tracker.evaluating.servers.request_errors import (
    TOO_LONG,
    AttemptFailedError,
    HaltedError,
    RequestRejectedError,
    RetriesExhaustedError,
)

T = TypeVar("T")

RETRYABLE_STATUSES = (408, 409, 425, 429)
"""Statuses that are retried, besides those from 500."""
NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")
MAX_REASON_LENGTH = 300


class RetryingClient:
    """Sends requests to one server, from several threads.

    Args:
        address: the server.
        key: its API key.
        rate_limiter: limits requests and tokens per minute.
        back_off: waits after a failure.
        timeout_s: seconds of silence after which an attempt fails.
        key_env: environment variable of the key, for messages.
        parameters: adapts the parameters of requests to the server.
        budget: limits the cost of requests; None for no limit.

    Attributes:
        faults: number of retried failures, by kind.
        n_read, n_written: input and output tokens of all answered requests.
        n_estimated: requests whose tokens the server did not count.
    """

    def __init__(
        self,
        address: Address,
        key: ApiKey,
        *,
        rate_limiter: RateLimiter,
        back_off: BackOff,
        timeout_s: float,
        key_env: str,
        parameters: RequestParameters | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._budget = budget
        self.parameters = parameters or RequestParameters()
        self.address, self._key = address, key
        self._rate_limiter, self._back_off, self._timeout_s, self._key_env = rate_limiter, back_off, timeout_s, key_env
        self._lock = threading.Lock()
        self._draws = random.Random(0)
        self.faults: Counter[str] = Counter()
        self.n_read = self.n_written = self.n_estimated = 0

    def connection(self) -> Connection:
        """Return a connection for one thread."""
        return Connection(self.address, self._key, self._timeout_s)

    def known_models(self, connection: Connection) -> list[str]:
        """Return the names of the server's models; none if it does not list them."""
        response = connection.get("/models")
        try:
            data = json.loads(response.body).get("data") if response.status == 200 else []
            return [self._redact(str(model["id"])) for model in data]
        except (ValueError, KeyError, TypeError, AttributeError):
            return []

    def send(
        self,
        connection: Connection,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], T],
        *,
        n_letters: int,
        n_letters_back: int = 4,
        stop: threading.Event,
        is_first: bool = False,
    ) -> tuple[T, Usage]:
        """Send a request; return the parsed response, and the tokens of the request.

        Args:
            connection: the thread's connection.
            path: such as ``/completions``.
            body: the request.
            read: parses the response; raises `MalformedError` if it violates the protocol.
            n_letters: length of the sent text, from which its tokens are estimated.
            n_letters_back: maximum length of the response.
            stop: ends waiting.
            is_first: whether no request was answered yet; an unreachable server is then not retried.

        Raises:
            RequestRejectedError: the server rejects this request.
            RetriesExhaustedError: all attempts failed.
            HaltedError: ``stop`` was set.
            ServerError: no request will succeed: wrong key, model or address, no credit, or the budget is spent.
        """
        options: dict[str, Any] = {
            "n_letters": n_letters, "n_letters_back": n_letters_back, "stop": stop, "is_first": is_first
        }  # fmt: skip
        if self._budget is None:
            return self._send(connection, path, body, read, **options)
        with self._budget.reserve(self.parameters.adapt(body), stop) as reservation:
            result, reservation.usage = self._send(connection, path, body, read, **options)
            return result, reservation.usage

    def _send(
        self,
        connection: Connection,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], T],
        *,
        n_letters: int,
        n_letters_back: int,
        stop: threading.Event,
        is_first: bool,
    ) -> tuple[T, Usage]:
        """Send a request until it is answered, rejected, or all attempts have failed."""
        attempts = Retrying(
            retry=retry_if_exception_type(AttemptFailedError),
            stop=stop_after_attempt(self._back_off.tries),
            wait=self._choose_wait,
            sleep=partial(_sleep, stop),
        )
        options = {"n_letters": n_letters, "n_letters_back": n_letters_back, "stop": stop, "is_first": is_first}
        try:
            return attempts(self._try_once, connection, path, body, read, **options)
        except RetryError as error:
            last = error.last_attempt.exception()
        assert isinstance(last, AttemptFailedError)
        raise RetriesExhaustedError(last.status, str(last), self._back_off.tries)

    def _try_once(
        self,
        connection: Connection,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], T],
        *,
        n_letters: int,
        n_letters_back: int,
        stop: threading.Event,
        is_first: bool,
    ) -> tuple[T, Usage]:
        """Send a request once; raise `AttemptFailedError` if it can be sent again."""
        expected = (n_letters + n_letters_back) // 4 + 1
        response = self._post(connection, path, body, expected, stop)
        if stop.is_set() and (response.trouble or response.status != 200):
            raise HaltedError  # an answer that still arrived is paid for, and kept
        wait = None
        if response.trouble:
            message = response.message
            if is_first and response.trouble == "unreachable":
                self._raise_server_error(
                    f"cannot be reached ({message}). Start it, or correct host and port in --api-base."
                )
        elif response.status == 200:
            understood, message = self._parse_response(response.body, read)
            if understood is not None:
                result, parsed = understood
                written = get_written(parsed)
                received = 0 if body.get("echo") else len(written.text) + len(written.reasoning)
                usage = get_usage(parsed, sent=n_letters, received=received)
                self._count(usage, expected)
                return result, usage
        else:
            message = self._check_rejection(response)
            wait = parse_retry_after(response.headers.get("retry-after"))
        kind = response.trouble or (f"HTTP {response.status}" if response.status != 200 else "malformed response")
        with self._lock:
            self.faults[kind] += 1
        raise AttemptFailedError(response.status, message, wait)

    def _post(
        self, connection: Connection, path: str, body: Mapping[str, Any], n_tokens: int, stop: threading.Event
    ) -> HttpResponse:
        """Send the request, and again without each parameter that the server rejects."""
        while True:
            self._wait(n_tokens, stop)
            sent = self.parameters.adapt(body)
            response = connection.post(path, sent)
            if response.trouble or response.status == 200 or stop.is_set():
                return response
            message, parameter = _parse_rejection(response.body)
            is_too_long = bool(TOO_LONG.search(message))
            if is_too_long or not self.parameters.learn(sent, response.status, message, parameter):
                return response

    def _wait(self, n_tokens: int, stop: threading.Event) -> None:
        if stop.wait(self._rate_limiter.reserve(n_tokens)):
            raise HaltedError
        while remaining := self._rate_limiter.remaining_pause():
            if stop.wait(remaining):
                raise HaltedError

    def _choose_wait(self, state: RetryCallState) -> float:
        """Return the seconds until the next attempt: as the server requests, else with exponential back-off."""
        n_failed = state.attempt_number
        failure = state.outcome.exception() if state.outcome is not None else None
        if n_failed >= self._back_off.tries:
            return 0.0
        with self._lock:
            seconds = self._back_off.draw_seconds(n_failed, self._draws)
            jitter = 1.0 + 0.1 * self._draws.random()
        requested_s = failure.requested_s if isinstance(failure, AttemptFailedError) else None
        if requested_s is not None:
            if requested_s > self._back_off.patience_s:
                self._raise_server_error(
                    f"requests a wait of {requested_s:,.0f} s. Responses received so far are stored. Run the same "
                    "command again then to resume."
                )
            self._rate_limiter.pause(requested_s)
            seconds = max(seconds, requested_s * jitter) if requested_s else seconds
        return seconds

    def _parse_response(
        self, body: str, read: Callable[[Mapping[str, Any]], T]
    ) -> tuple[tuple[T, Mapping[str, Any]] | None, str]:
        """Return the parsed response, and its JSON; None and the reason if it is malformed."""
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError):
            return None, "a response that is not JSON"
        if not isinstance(parsed, dict):
            return None, "a response that is not a JSON object"
        if parsed.get("error") and not parsed.get("choices"):
            return None, self._redact(parse_error(parsed)[0] or "an error without a message")
        try:
            get_written(parsed)
            return (read(parsed), parsed), ""
        except MalformedError as error:
            return None, str(error)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError):
            return None, "a response of unknown form"

    def _check_rejection(self, response: HttpResponse) -> str:
        """Return the message of a rejection if the request may be retried.

        Raises:
            RequestRejectedError, ServerError: the request must not be retried.
        """
        status = response.status
        try:
            message, code = parse_error(json.loads(response.body))
        except (ValueError, RecursionError):
            message, code = response.body, ""
        message = self._redact(message) or "no reason given"
        if status == 401:
            self._raise_server_error(f"rejects the key (HTTP 401). {self._key_advice()}")
        if status == 403:
            self._raise_server_error(
                f"does not allow the request with this key (HTTP 403: {message}). {self._key_advice()}"
            )
        if status == 402 or code in NO_CREDIT:
            self._raise_server_error(
                f"reports that no credit is left (HTTP {status}: {message}). Responses received so far are stored. "
                "Run the same command again to resume once there is credit."
            )
        if 300 <= status < 400:
            to = format_redirect_target(response.headers.get("location", ""))
            self._raise_server_error(
                f"redirects (HTTP {status}, to {to}). Use that address, up to where /completions begins."
            )
        if status in RETRYABLE_STATUSES or status >= 500:
            return f"HTTP {status}: {message}"
        raise RequestRejectedError(status, message)

    def _key_advice(self) -> str:
        key_state = "The environment variable {} holds a key" if self._key else "The variable {} holds no key"
        return f"{key_state.format(self._key_env)}. Set the right key there, or name another variable with --key-env."

    def _raise_server_error(self, reason: str) -> Never:
        raise ServerError(f"The server {self.address.host} {reason}")

    def _redact(self, message: str) -> str:
        """Return a server's message in one line, shortened and without the key."""
        line = " ".join(self._key.redact(message).split())
        return (line if len(line) <= MAX_REASON_LENGTH else f"{line[:MAX_REASON_LENGTH]} ...").rstrip(".")

    def _count(self, usage: Usage, expected: int) -> None:
        self._rate_limiter.correct(usage.n_read + usage.n_written - expected)
        with self._lock:
            self.n_read += usage.n_read
            self.n_written += usage.n_written
            self.n_estimated += usage.is_estimated


def _sleep(stop: threading.Event, seconds: float) -> None:
    """Wait before the next attempt; ends at once when the evaluation is stopped."""
    if stop.wait(seconds):
        raise HaltedError


def _parse_rejection(body: str) -> tuple[str, str]:
    """Return the message of a rejection, and the parameter that it names in a separate field; '' if missing."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return body, ""
    details = parsed.get("error") if isinstance(parsed, dict) else None
    parameter = details.get("param") if isinstance(details, dict) else None
    return parse_error(parsed)[0], parameter if isinstance(parameter, str) else ""
