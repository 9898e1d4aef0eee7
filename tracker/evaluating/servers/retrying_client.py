"""Requests that are repeated until the server answers: retries, limits, and when to stop."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Never, TypeVar

from tracker.errors import ServerError
from tracker.evaluating.servers.address import Address, ApiKey
from tracker.evaluating.servers.connection import Connection, HttpResponse, format_redirect_target
from tracker.evaluating.servers.protocol import MalformedError, Usage, get_text, get_usage, parse_error
from tracker.evaluating.servers.rate_limiter import BackOff, RateLimiter, parse_retry_after

T = TypeVar("T")

RETRYABLE_STATUSES = (408, 409, 425, 429)
"""Statuses after which the same request may succeed; so do those from 500."""
NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")
TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|too (long|large|many tokens)|maximum.{0,40}(token|length)", re.I
)
MAX_REASON_LENGTH = 300


class RequestRejectedError(Exception):
    """The server rejects this request, however often it is sent; others it may answer.

    Attributes:
        status: of HTTP.
        message: of the server, without the key.
        is_too_long: whether the message is that the text is longer than the model can read.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message
        self.is_too_long = status == 413 or bool(TOO_LONG.search(message))
        super().__init__(f"The server refuses it: {message} (HTTP {status})")


class RetriesExhaustedError(Exception):
    """The server did not answer a request in as many tries as are allowed.

    Attributes:
        status: of the last try; 0 where nothing came back.
    """

    def __init__(self, status: int, message: str, n_tries: int) -> None:
        self.status = status
        times = "once" if n_tries == 1 else f"{n_tries} times"
        super().__init__(f"The server did not answer, asked {times}; last: {message}")


class HaltedError(Exception):
    """Everything is being stopped; what was under way has no outcome."""


class RetryingClient:
    """Sends requests to one server, from several threads.

    Args:
        address: the server.
        key: to it.
        rate_limiter: limits requests and tokens per minute.
        back_off: what is done after a fault.
        timeout_s: seconds of silence after which a try is given up.
        key_env: the variable that the key is from, for messages.

    Attributes:
        faults: how often each kind of fault was met and the request repeated.
        n_read, n_written: tokens of all requests that were answered.
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
    ) -> None:
        self.address, self._key = address, key
        self._rate_limiter, self._back_off, self._timeout_s, self._key_env = rate_limiter, back_off, timeout_s, key_env
        self._lock = threading.Lock()
        self._draws = random.Random(0)
        self.faults: Counter[str] = Counter()
        self.n_read = self.n_written = self.n_estimated = 0

    def connection(self) -> Connection:
        """A connection for one thread."""
        return Connection(self.address, self._key, self._timeout_s)

    def known_models(self, connection: Connection) -> list[str]:
        """Names of the models that a server says it has; none where it does not say."""
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
        """Send a request; what ``read`` makes of the response, and the tokens of the request.

        Args:
            connection: the thread's.
            path: such as ``/completions``.
            body: what is sent.
            read: parses the response; raises `MalformedError` where it is not as promised.
            n_letters: of the text that is sent, from which its tokens are estimated.
            n_letters_back: of the text that may come back.
            stop: ends the waiting.
            is_first: nothing was answered yet; a server that cannot be reached then gets no further request.

        Raises:
            RequestRejectedError: the server rejects this request.
            RetriesExhaustedError: all tries failed.
            HaltedError: ``stop`` was set.
            ServerError: no request will be answered: key, model, address, credit.
        """
        expected = (n_letters + n_letters_back) // 4 + 1
        status, message = 0, ""
        for n_failed in range(1, self._back_off.tries + 1):
            self._wait(expected, stop)
            response = connection.post(path, body)
            if stop.is_set() and (response.trouble or response.status != 200):
                raise HaltedError  # an answer that came all the same is paid for, and kept
            status, wait = response.status, None
            if response.trouble:
                message = response.message
                if is_first and response.trouble == "unreachable":
                    self._raise_server_error(
                        f"cannot be reached ({message}). Start it, or correct host and port in --api-base."
                    )
            elif status == 200:
                understood, message = self._parse_response(response.body, read)
                if understood is not None:
                    result, parsed = understood
                    received = 0 if body.get("echo") else len(get_text(parsed))
                    usage = get_usage(parsed, sent=n_letters, received=received)
                    self._count(usage, expected)
                    return result, usage
            else:
                message = self._check_rejection(response)
                wait = parse_retry_after(response.headers.get("retry-after"))
            with self._lock:
                self.faults[response.trouble or (f"HTTP {status}" if status != 200 else "broken reply")] += 1
            if n_failed < self._back_off.tries:
                self._back_off_for(n_failed, wait, stop)
        raise RetriesExhaustedError(status, message, self._back_off.tries)

    def _wait(self, n_tokens: int, stop: threading.Event) -> None:
        if stop.wait(self._rate_limiter.reserve(n_tokens)):
            raise HaltedError
        while remaining := self._rate_limiter.remaining_pause():
            if stop.wait(remaining):
                raise HaltedError

    def _back_off_for(self, n_failed: int, requested_s: float | None, stop: threading.Event) -> None:
        with self._lock:
            seconds = self._back_off.draw_seconds(n_failed, self._draws)
            jitter = 1.0 + 0.1 * self._draws.random()
        if requested_s is not None:
            if requested_s > self._back_off.patience_s:
                self._raise_server_error(
                    f"asks to wait for {requested_s:,.0f} s. What was answered is stored; run the same command again "
                    "then."
                )
            self._rate_limiter.pause(requested_s)
            seconds = max(seconds, requested_s * jitter) if requested_s else seconds
        if stop.wait(seconds):
            raise HaltedError

    def _parse_response(
        self, body: str, read: Callable[[Mapping[str, Any]], T]
    ) -> tuple[tuple[T, Mapping[str, Any]] | None, str]:
        """What ``read`` makes of a response, and its JSON; None and the reason where it is malformed."""
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError):
            return None, "a reply that is no JSON"
        if not isinstance(parsed, dict):
            return None, "a reply that is no object"
        if parsed.get("error") and not parsed.get("choices"):
            return None, self._redact(parse_error(parsed)[0] or "an error without words")
        try:
            get_text(parsed)
            return (read(parsed), parsed), ""
        except MalformedError as error:
            return None, str(error)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError):
            return None, "a reply of an unknown form"

    def _check_rejection(self, response: HttpResponse) -> str:
        """The message of a rejection, where the request may be repeated.

        Raises:
            RequestRejectedError, ServerError: the request may not be repeated.
        """
        status = response.status
        try:
            message, code = parse_error(json.loads(response.body))
        except (ValueError, RecursionError):
            message, code = response.body, ""
        message = self._redact(message) or "no reason given"
        if status == 401:
            self._raise_server_error(f"does not accept the key (HTTP 401). {self._key_advice()}")
        if status == 403:
            self._raise_server_error(f"does not allow it with this key (HTTP 403: {message}). {self._key_advice()}")
        if status == 402 or code in NO_CREDIT:
            self._raise_server_error(
                f"says that there is no credit left (HTTP {status}: {message}). What was answered is stored; "
                "run the same command again when there is."
            )
        if 300 <= status < 400:
            to = format_redirect_target(response.headers.get("location", ""))
            self._raise_server_error(
                f"sends one elsewhere (HTTP {status}, to {to}). Give that address, up to where /completions begins."
            )
        if status in RETRYABLE_STATUSES or status >= 500:
            return f"HTTP {status}: {message}"
        raise RequestRejectedError(status, message)

    def _key_advice(self) -> str:
        key_state = "The environment variable {} holds a key" if self._key else "There is no key in the variable {}"
        return f"{key_state.format(self._key_env)}; put the right one there, or name another variable with --key-env."

    def _raise_server_error(self, reason: str) -> Never:
        raise ServerError(f"The server {self.address.host} {reason}")

    def _redact(self, message: str) -> str:
        """A server's words in one line, not too long and without the key."""
        line = " ".join(self._key.redact(message).split())
        return (line if len(line) <= MAX_REASON_LENGTH else f"{line[:MAX_REASON_LENGTH]} ...").rstrip(".")

    def _count(self, usage: Usage, expected: int) -> None:
        self._rate_limiter.correct(usage.n_read + usage.n_written - expected)
        with self._lock:
            self.n_read += usage.n_read
            self.n_written += usage.n_written
            self.n_estimated += usage.is_estimated
