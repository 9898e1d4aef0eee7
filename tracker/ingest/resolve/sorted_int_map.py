"""A large mapping from integers to integers that takes 16 bytes per entry."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class SortedIntMap:
    """Get and set many values at once. Values are stored in sorted arrays; arrays of similar size are merged."""

    def __init__(self) -> None:
        self._parts: list[tuple[IntArray, IntArray]] = []

    def get(self, keys: IntArray, missing: int) -> IntArray:
        """Return the value of each key, ``(n,)``; ``missing`` if it has none."""
        result = np.full(len(keys), missing, dtype=np.int64)
        for known, values in self._parts:  # oldest first; later arrays override earlier ones
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            present = known[at] == keys
            result[present] = values[at[present]]
        return result

    def put(self, keys: IntArray, values: IntArray) -> None:
        """Set values; of duplicate keys, the last one counts."""
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
