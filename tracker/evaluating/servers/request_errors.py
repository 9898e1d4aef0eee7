"""Why a request to a server has no response."""

from __future__ import annotations

import re

TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|too (long|large|many tokens)|maximum.{0,40}(token|length)", re.I
)
"""A message that rejects a text as too long."""


class RequestRejectedError(Exception):
    """The server rejects this request permanently; it may accept others.

    Attributes:
        status: HTTP status.
        message: the server's message, without the key.
        is_too_long: whether the text exceeds the model's context.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message
        self.is_too_long = status == 413 or bool(TOO_LONG.search(message))
        super().__init__(f"The server rejects the request: {message} (HTTP {status})")


class RetriesExhaustedError(Exception):
    """The server did not answer a request within the allowed attempts.

    Attributes:
        status: HTTP status of the last attempt; 0 without a response.
    """

    def __init__(self, status: int, message: str, n_tries: int) -> None:
        self.status = status
        times = "once" if n_tries == 1 else f"{n_tries} attempts"
        super().__init__(f"The server did not answer after {times}. Last error: {message}")


class HaltedError(Exception):
    """The evaluation is being stopped; unfinished requests have no outcome."""


class AttemptFailedError(Exception):
    """An attempt failed, and the request can be sent again.

    Attributes:
        status: HTTP status; 0 without a response.
        requested_s: seconds that the server requests to wait; None if it requests none.
    """

    def __init__(self, status: int, message: str, requested_s: float | None) -> None:
        self.status, self.requested_s = status, requested_s
        super().__init__(message)
