"""Rate limits of requests and tokens per minute, and waits after a failure."""

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
    """How long to wait before a retry.

    Attributes:
        tries: maximum number of attempts.
        first_s: seconds before the second attempt; doubled before each further one.
        max_s: maximum wait, unless the server requests one itself.
        patience_s: if the server requests a longer wait, the evaluation stops.
    """

    tries: int = 6
    first_s: float = 1.0
    max_s: float = 30.0
    patience_s: float = 600.0

    def draw_seconds(self, n_failed: int, draws: random.Random) -> float:
        """Return the wait after consecutive failures: half fixed, half random, so that threads do not retry at once."""
        max_seconds = min(self.max_s, self.first_s * 2.0 ** (n_failed - 1))
        return max_seconds * (0.5 + 0.5 * draws.random())


class RateLimiter:
    """Limits requests and tokens per minute, spread evenly over it.

    Requests are at least a minute divided by the limit apart, so no minute, wherever it begins, holds more. Tokens are
    estimated when a request is sent, and corrected when the server has counted them.

    Args:
        requests_per_minute: None for no limit.
        tokens_per_minute: input and output tokens together; None for no limit.
        minute_s: length of a minute, in seconds.
    """

    def __init__(
        self, requests_per_minute: float | None, tokens_per_minute: float | None, minute_s: float = MINUTE
    ) -> None:
        self._per_request = minute_s / requests_per_minute if requests_per_minute else 0.0
        self._per_token = minute_s / tokens_per_minute if tokens_per_minute else 0.0
        self._lock = threading.Lock()
        self._next_request = self._next_tokens = self._paused_until = 0.0

    def reserve(self, n_tokens: int) -> float:
        """Reserve the next free time; return the seconds until then."""
        with self._lock:
            now = time.monotonic()
            at = max(now, self._next_request, self._next_tokens)
            self._next_request = at + self._per_request
            self._next_tokens = at + n_tokens * self._per_token
            return at - now

    def correct(self, n_tokens: int) -> None:
        """Correct the estimated number of tokens."""
        with self._lock:
            self._next_tokens += n_tokens * self._per_token

    def pause(self, seconds: float) -> None:
        """Pause all requests for some seconds."""
        with self._lock:
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def remaining_pause(self) -> float:
        """Return the remaining seconds of a pause."""
        with self._lock:
            return max(0.0, self._paused_until - time.monotonic())


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds to wait from the header Retry-After, which holds seconds or a date; None if missing."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None
