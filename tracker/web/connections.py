"""Connections of readers: those that do not complete a request in time are closed."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 20.0
"""Time limit from the first byte of a request to the last of its headers, and from the connection to that byte."""
MAX_CONNECTIONS = 500
"""Maximum number of connections at once; later ones are answered with status 503."""
MAX_HEADER_BYTES = 65_536
"""Maximum size of the address and the headers of a request."""


class TimedConnection(H11Protocol):
    """A connection that is closed if the headers of a request do not arrive in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(REQUEST_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def on_response_complete(self) -> None:
        """Wait for the next request; uvicorn closes a connection that is silent."""
        self._stop_timer()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


SERVER_OPTIONS: dict[str, Any] = {
    "http": TimedConnection,
    "ws": "none",
    "access_log": False,  # it would print tokens in addresses
    "server_header": False,
    "limit_concurrency": MAX_CONNECTIONS,
    "h11_max_incomplete_event_size": MAX_HEADER_BYTES,
}
"""Options of uvicorn."""
