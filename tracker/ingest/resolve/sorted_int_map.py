"""A large table of whole numbers by whole numbers, in 16 bytes for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class SortedIntMap:
    """Values by key, looked up and set many at once: sorted arrays, of which those of similar size are merged."""

    def __init__(self) -> None:
        self._parts: list[tuple[IntArray, IntArray]] = []

    def get(self, keys: IntArray, missing: int) -> IntArray:
        """The value of each key, ``(n,)``; ``missing`` where it has none."""
        result = np.full(len(keys), missing, dtype=np.int64)
        for known, values in self._parts:  # the oldest first: later ones go before
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            present = known[at] == keys
            result[present] = values[at[present]]
        return result

    def put(self, keys: IntArray, values: IntArray) -> None:
        """Set values; of a key that stands several times the last one holds."""
        if not len(keys):
            return
        self._parts.append(_sorted(keys, values))
        while len(self._parts) > 1 and 2 * len(self._parts[-1][0]) > len(self._parts[-2][0]):
            (old, their), (new, our) = self._parts[-2:]
            self._parts[-2:] = [_sorted(np.concatenate([old, new]), np.concatenate([their, our]))]


def _sorted(keys: IntArray, values: IntArray) -> tuple[IntArray, IntArray]:
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    last = np.append(keys[1:] != keys[:-1], True)
    return keys[last], values[last]
