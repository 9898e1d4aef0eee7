"""Values that an export computes: each once, at once, from one state of the store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from tracker.errors import SuffrageError
from tracker.web.background import BackgroundTasks, Compute, Outcome
from tracker.web.store_cache import SnapshotCache, StoreCache

T = TypeVar("T")

MAX_VALUES = 64
"""Maximum number of values kept; the one unused for longest is dropped first."""


class ExportCache(SnapshotCache):
    """The values of one state of the store, kept although other programs change the store meanwhile.

    Args:
        cache: of the store.
        version: of the state.
    """

    def __init__(self, cache: StoreCache, version: Any) -> None:
        super().__init__(cache, version)
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of a key; the one unused for longest is dropped first."""
        if key not in self._values:
            self._values[key] = compute()
        self._values.move_to_end(key)
        if len(self._values) > MAX_VALUES:
            self._values.popitem(last=False)
        return self._values[key]  # type: ignore[no-any-return]


class ImmediateTasks(BackgroundTasks):
    """Computes each value when it is requested.

    Args:
        values: keeps the values.
    """

    def __init__(self, values: ExportCache) -> None:
        super().__init__(values.cache)
        self._kept = values

    def request(self, key: Hashable, compute: Compute) -> Outcome:
        """Return a value, or why it cannot be computed."""
        try:
            return Outcome(value=self._kept.get(key, lambda: compute(lambda _: None)))
        except SuffrageError as error:
            return Outcome(problem=str(error))
