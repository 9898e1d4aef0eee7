"""Values that the server computes in the background, computed at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from tracker.errors import SuffrageError
from tracker.web.background import BackgroundTasks


class ImmediateTasks(BackgroundTasks):
    """Computes each value when it is requested."""

    def request(self, key: Hashable, compute: Callable[[], Any]) -> tuple[Any, str]:
        """Return a value and ''; or None and why it cannot be computed."""
        try:
            return self.cache.get(key, compute), ""
        except SuffrageError as error:
            return None, str(error)
