"""How fast a server is asked, and how long one waits after a fault."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MINUTE = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BackOff:
    """How long to wait before one asks again.

    Attributes:
        tries: how often a request is sent at most.
        first_s: seconds before the second try; twice as many before each further one.
        most_s: but never more, where the server says nothing itself.
        patience_s: where it asks for a longer wait than this, one stops.
    """

    tries: int = 6
    first_s: float = 1.0
    most_s: float = 30.0
    patience_s: float = 600.0

    def seconds(self, n_failed: int, draws: random.Random) -> float:
        """After so many failures in a row: half of it fixed, half drawn, so that threads do not return together."""
        longest = min(self.most_s, self.first_s * 2.0 ** (n_failed - 1))
        return longest * (0.5 + 0.5 * draws.random())


class Pace:
    """At most so many requests and tokens a minute, spread evenly over it.

    Requests are never closer than a minute divided by the limit, so no minute, wherever it begins, holds more. Tokens
    are estimated when a request is sent, and set right when the server has counted them.

    Args:
        requests_per_minute: None for as many as one likes.
        tokens_per_minute: those read and written together.
        minute_s: how long a minute is.
    """

    def __init__(
        self, requests_per_minute: float | None, tokens_per_minute: float | None, minute_s: float = MINUTE
    ) -> None:
        self._per_request = minute_s / requests_per_minute if requests_per_minute else 0.0
        self._per_token = minute_s / tokens_per_minute if tokens_per_minute else 0.0
        self._lock = threading.Lock()
        self._next_request = self._next_tokens = self._paused_until = 0.0

    def turn(self, n_tokens: int) -> float:
        """Takes the next free moment; how many seconds there are until then."""
        with self._lock:
            now = time.monotonic()
            at = max(now, self._next_request, self._next_tokens)
            self._next_request = at + self._per_request
            self._next_tokens = at + n_tokens * self._per_token
            return at - now

    def correct(self, n_tokens: int) -> None:
        """So many tokens more, or fewer, than were estimated."""
        with self._lock:
            self._next_tokens += n_tokens * self._per_token

    def pause(self, seconds: float) -> None:
        """Nobody sends anything for so long."""
        with self._lock:
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def paused(self) -> float:
        """How many seconds of a pause are left."""
        with self._lock:
            return max(0.0, self._paused_until - time.monotonic())


def retry_after(said: str | None) -> float | None:
    """Seconds to wait, from the header Retry-After, which holds seconds or a date; None where it says none."""
    if not said:
        return None
    try:
        seconds = float(said)
    except ValueError:
        try:
            date = parsedate_to_datetime(said)
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None
