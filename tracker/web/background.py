"""Computations that take longer than a page may: they run in the background, each once for a state of the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from tracker.errors import SuffrageError
from tracker.web.store_cache import StoreCache

COMPUTING = "computing"


class BackgroundTasks:
    """Values that are computed in the background and kept in a cache.

    Args:
        cache: keeps the values.
    """

    def __init__(self, cache: StoreCache) -> None:
        self.cache = cache
        self._lock = threading.Lock()
        self._running: set[tuple[Any, Hashable]] = set()
        self._problems: dict[tuple[Any, Hashable], str] = {}

    def request(self, key: Hashable, compute: Callable[[], Any]) -> tuple[Any, str]:
        """Return a value if it is present; else begin to compute it, unless that has begun already.

        Returns:
            The value and ''; or None and `COMPUTING`, or None and why it cannot be computed.
        """
        value = self.cache.peek(key)
        if value is not None:
            return value, ""
        state = (self.cache.refresh(), key)
        with self._lock:
            if state in self._problems:
                return None, self._problems[state]
            if state not in self._running:
                self._running.add(state)
                threading.Thread(target=self._compute, args=(state, key, compute), daemon=True).start()
        return None, COMPUTING

    def _compute(self, state: tuple[Any, Hashable], key: Hashable, compute: Callable[[], Any]) -> None:
        try:
            self.cache.get(key, compute)
        except Exception as error:  # noqa: BLE001 - a page that asks again would begin a failing computation anew
            message = str(error) if isinstance(error, SuffrageError) else f"{type(error).__name__}: {error}"
            with self._lock:
                self._problems = {known: text for known, text in self._problems.items() if known[0] == state[0]}
                self._problems[state] = message
        finally:
            with self._lock:
                self._running.discard(state)
