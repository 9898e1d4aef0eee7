"""Asks a server until it answers: retries, limits, and when to stop."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Never, TypeVar

from tracker.errors import ServerError
from tracker.evaluating.servers.address import Address, Key
from tracker.evaluating.servers.connection import Connection, Response, place_of
from tracker.evaluating.servers.protocol import MalformedError, Usage, error_text, usage, written
from tracker.evaluating.servers.rate_limiter import BackOff, Pace, retry_after

T = TypeVar("T")

AGAIN = (408, 409, 425, 429)
"""Statuses after which the same request may succeed; so do those from 500."""
NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")
TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|too (long|large|many tokens)|maximum.{0,40}(token|length)", re.I
)
LONGEST_REASON = 300


class RefusedError(Exception):
    """The server will not answer this request, however often it is asked; others it may.

    Attributes:
        status: of HTTP.
        said: what it said, without the key.
        is_too_long: whether it said that the text is longer than the model can read.
    """

    def __init__(self, status: int, said: str) -> None:
        self.status, self.said = status, said
        self.is_too_long = status == 413 or bool(TOO_LONG.search(said))
        super().__init__(f"The server refuses it: {said} (HTTP {status})")


class GaveUpError(Exception):
    """The server did not answer a request in as many tries as are allowed.

    Attributes:
        status: of the last try; 0 where nothing came back.
    """

    def __init__(self, status: int, said: str, n_tries: int) -> None:
        self.status = status
        times = "once" if n_tries == 1 else f"{n_tries} times"
        super().__init__(f"The server did not answer, asked {times}; last: {said}")


class HaltedError(Exception):
    """Everything is being stopped; what was under way has no outcome."""


class Caller:
    """Asks one server, from several threads.

    Args:
        address: the server.
        key: to it.
        pace: how fast.
        back_off: what is done after a fault.
        timeout_s: seconds of silence after which a try is given up.
        key_env: the variable that the key is from, for messages.

    Attributes:
        faults: how often each kind of fault was met and asked again.
        n_read, n_written: tokens of all requests that were answered.
        n_estimated: requests whose tokens the server did not count.
    """

    def __init__(
        self, address: Address, key: Key, *, pace: Pace, back_off: BackOff, timeout_s: float, key_env: str
    ) -> None:
        self.address, self._key = address, key
        self._pace, self._back_off, self._timeout_s, self._key_env = pace, back_off, timeout_s, key_env
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
            return [self._shown(str(one["id"])) for one in data]
        except (ValueError, KeyError, TypeError, AttributeError):
            return []

    def ask(
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
        """What ``read`` makes of the reply, and the tokens of the request.

        Args:
            connection: the thread's.
            path: such as ``/completions``.
            body: what is sent.
            read: takes the reply apart; raises `MalformedError` where it is not as promised.
            n_letters: of the text that is sent, from which its tokens are estimated.
            n_letters_back: of the text that may come back.
            stop: ends the waiting.
            is_first: nothing was answered yet; a server that cannot be reached is then not asked again.

        Raises:
            RefusedError: this request is refused.
            GaveUpError: all tries failed.
            HaltedError: ``stop`` was set.
            ServerError: no request will be answered: key, model, address, credit.
        """
        expected = (n_letters + n_letters_back) // 4 + 1
        status, said = 0, ""
        for n_failed in range(1, self._back_off.tries + 1):
            self._wait(expected, stop)
            response = connection.post(path, body)
            if stop.is_set() and (response.trouble or response.status != 200):
                raise HaltedError  # an answer that came all the same is paid for, and kept
            status, wait = response.status, None
            if response.trouble:
                said = response.said
                if is_first and response.trouble == "unreachable":
                    self._stop(f"cannot be reached ({said}). Is it running, and is the address right?")
            elif status == 200:
                outcome, said = self._understood(response.body, read)
                if outcome is not None:
                    made, reply = outcome
                    received = 0 if body.get("echo") else len(written(reply))
                    counted = usage(reply, sent=n_letters, received=received)
                    self._count(counted, expected)
                    return made, counted
            else:
                said = self._refusal(response)
                wait = retry_after(response.headers.get("retry-after"))
            with self._lock:
                self.faults[response.trouble or (f"HTTP {status}" if status != 200 else "broken reply")] += 1
            if n_failed < self._back_off.tries:
                self._back_off_for(n_failed, wait, stop)
        raise GaveUpError(status, said, self._back_off.tries)

    def _wait(self, n_tokens: int, stop: threading.Event) -> None:
        if stop.wait(self._pace.turn(n_tokens)):
            raise HaltedError
        while left := self._pace.paused():
            if stop.wait(left):
                raise HaltedError

    def _back_off_for(self, n_failed: int, asked: float | None, stop: threading.Event) -> None:
        with self._lock:
            seconds = self._back_off.seconds(n_failed, self._draws)
            jitter = 1.0 + 0.1 * self._draws.random()
        if asked is not None:
            if asked > self._back_off.patience_s:
                self._stop(
                    f"asks to wait for {asked:,.0f} s. What was answered is stored; run the same command again then."
                )
            self._pace.pause(asked)
            seconds = max(seconds, asked * jitter) if asked else seconds
        if stop.wait(seconds):
            raise HaltedError

    def _understood(
        self, body: str, read: Callable[[Mapping[str, Any]], T]
    ) -> tuple[tuple[T, Mapping[str, Any]] | None, str]:
        """The reply taken apart, and as it came; else why not."""
        try:
            reply = json.loads(body)
        except (ValueError, RecursionError):
            return None, "a reply that is no JSON"
        if not isinstance(reply, dict):
            return None, "a reply that is no object"
        if reply.get("error") and not reply.get("choices"):
            return None, self._shown(error_text(reply)[0] or "an error without words")
        try:
            written(reply)
            return (read(reply), reply), ""
        except MalformedError as error:
            return None, str(error)
        except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError):
            return None, "a reply of an unknown form"

    def _refusal(self, response: Response) -> str:
        """What a refusal says, where one may ask again.

        Raises:
            RefusedError, ServerError: one may not.
        """
        status = response.status
        try:
            said, code = error_text(json.loads(response.body))
        except (ValueError, RecursionError):
            said, code = response.body, ""
        said = self._shown(said) or "no reason given"
        if status == 401:
            self._stop(f"does not accept the key (HTTP 401). {self._key_advice()}")
        if status == 403:
            self._stop(f"does not allow it with this key (HTTP 403: {said}). {self._key_advice()}")
        if status == 402 or code in NO_CREDIT:
            self._stop(
                f"says that there is no credit left (HTTP {status}: {said}). What was answered is stored; "
                "run the same command again when there is."
            )
        if 300 <= status < 400:
            to = place_of(response.headers.get("location", ""))
            self._stop(
                f"sends one elsewhere (HTTP {status}, to {to}). Give that address, up to where /completions begins."
            )
        if status in AGAIN or status >= 500:
            return f"HTTP {status}: {said}"
        raise RefusedError(status, said)

    def _key_advice(self) -> str:
        held = "The environment variable {} holds a key" if self._key else "There is no key in the variable {}"
        return f"{held.format(self._key_env)}; put the right one there, or name another variable with --key-env."

    def _stop(self, what: str) -> Never:
        raise ServerError(f"The server {self.address.host} {what}")

    def _shown(self, said: str) -> str:
        """A server's words in one line, not too long and without the key."""
        line = " ".join(self._key.redacted(said).split())
        return (line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]} ...").rstrip(".")

    def _count(self, counted: Usage, expected: int) -> None:
        self._pace.correct(counted.n_read + counted.n_written - expected)
        with self._lock:
            self.n_read += counted.n_read
            self.n_written += counted.n_written
            self.n_estimated += counted.is_estimated
