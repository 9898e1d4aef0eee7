"""Remove API keys from what the HTTP library logs."""

from __future__ import annotations

import logging
import weakref

from tracker.evaluating.servers.address import ApiKey

LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")
"""Loggers of the HTTP library. On the level DEBUG they record headers of responses, which may repeat a key."""


class _KeyFilter(logging.Filter):
    """Redacts the keys in use from each message of a logger."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: weakref.WeakSet[ApiKey] = weakref.WeakSet()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        for key in list(self.keys):
            message = key.redact(message)
        record.msg, record.args = message, ()
        return True


_FILTER = _KeyFilter()


def redact_logs(key: ApiKey) -> None:
    """Redact a key from the logs of the HTTP library for as long as the key is in use."""
    _FILTER.keys.add(key)
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # has no effect a second time
