"""A large table of whole numbers by whole numbers, in 16 bytes for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class SortedIntMap:
    """Values by key, looked up and set many at once: sorted arrays, of which those alike in size are merged."""

    def __init__(self) -> None:
        self._parts: list[tuple[Numbers, Numbers]] = []

    def get(self, keys: Numbers, absent: int) -> Numbers:
        """The value of each key, ``(n,)``; ``absent`` where it has none."""
        found = np.full(len(keys), absent, dtype=np.int64)
        for known, values in self._parts:  # the oldest first: later ones go before
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            there = known[at] == keys
            found[there] = values[at[there]]
        return found

    def put(self, keys: Numbers, values: Numbers) -> None:
        """Set values; of a key that stands several times the last one holds."""
        if not len(keys):
            return
        self._parts.append(_sorted(keys, values))
        while len(self._parts) > 1 and 2 * len(self._parts[-1][0]) > len(self._parts[-2][0]):
            (old, their), (new, our) = self._parts[-2:]
            self._parts[-2:] = [_sorted(np.concatenate([old, new]), np.concatenate([their, our]))]


def _sorted(keys: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    last = np.append(keys[1:] != keys[:-1], True)
    return keys[last], values[last]
