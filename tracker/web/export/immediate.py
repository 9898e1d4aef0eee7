"""Values that the server computes in the background, computed at once."""

from __future__ import annotations

from collections.abc import Hashable

from tracker.errors import SuffrageError
from tracker.web.background import BackgroundTasks, Compute, Outcome


class ImmediateTasks(BackgroundTasks):
    """Computes each value when it is requested."""

    def request(self, key: Hashable, compute: Compute) -> Outcome:
        """Return a value, or why it cannot be computed."""
        try:
            return Outcome(value=self.cache.get(key, lambda: compute(lambda _: None)))
        except SuffrageError as error:
            return Outcome(problem=str(error))
