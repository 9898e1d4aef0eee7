"""Sets of tasks of one size: all of them, or a sample."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit
from tracker.statistics.rng_kernels import fill_below
from tracker.statistics.rng_streams import SUBSETS, stream_key


@dataclass(frozen=True, kw_only=True)
class SubsetSample:
    """Sets of one size, numbered: all of them in lexicographic order, or independent uniform draws.

    Attributes:
        n_tasks, size: sets of ``size`` among so many.
        n_examined: how many there are here.
        is_exhaustive: whether that is all.
        seed: of the draws; the first draws do not depend on how many there are.
    """

    n_tasks: int
    size: int
    n_examined: int
    is_exhaustive: bool
    seed: int

    @classmethod
    def enumerate_or_draw(
        cls, n_tasks: int, size: int, *, largest_enumeration: int, n_samples: int, seed: int
    ) -> SubsetSample:
        """All sets where there are at most ``largest_enumeration``, else ``n_samples`` draws."""
        n_subsets = comb(n_tasks, size)
        is_exhaustive = n_subsets <= largest_enumeration
        n_examined = n_subsets if is_exhaustive else n_samples
        return cls(n_tasks=n_tasks, size=size, n_examined=n_examined, is_exhaustive=is_exhaustive, seed=seed)

    @property
    def n_subsets(self) -> int:
        """All sets of this size."""
        return comb(self.n_tasks, self.size)

    def subsets(self, start: int, stop: int) -> NDArray[np.int64]:
        """``(stop - start, size)`` sets by number, each ascending."""
        out = np.empty((stop - start, self.size), np.int64)
        if self.is_exhaustive:
            _enumerate(self.n_tasks, self._unrank(start), out)
        else:
            _draw(self.n_tasks, start, stream_key(self.seed), out)
            out.sort(axis=1)
        return out

    def _unrank(self, number: int) -> NDArray[np.int64]:
        """The set with this number in lexicographic order."""
        chosen: list[int] = []
        task = 0
        while len(chosen) < self.size:
            n_with_task = comb(self.n_tasks - task - 1, self.size - len(chosen) - 1)
            if number < n_with_task:
                chosen.append(task)
            else:
                number -= n_with_task
            task += 1
        return np.array(chosen, np.int64)


@jit
def _enumerate(n: Any, first: Any, out: Any) -> None:
    """Fill ``out`` with ``first`` and the sets after it."""
    size = first.size
    current = first.copy()
    for s in range(out.shape[0]):
        for i in range(size):
            out[s, i] = current[i]
        position = size - 1
        while position >= 0 and current[position] == n - size + position:
            position -= 1
        if position >= 0:
            current[position] += 1
            for i in range(position + 1, size):
                current[i] = current[i - 1] + 1


@jit
def _draw(n: Any, start: Any, key: Any, out: Any) -> None:
    """Fill ``out`` with uniform draws of sets, by the beginning of a Fisher-Yates shuffle."""
    size = out.shape[1]
    tasks, steps = np.arange(n), np.empty(size, np.int64)
    for s in range(out.shape[0]):
        fill_below(steps, INT(n), INT(-1), key, INT(SUBSETS), INT(start + s), INT(size))
        for i in range(size):
            j = i + steps[i]
            tasks[i], tasks[j] = tasks[j], tasks[i]
            out[s, i] = tasks[i]
        for i in range(size - 1, -1, -1):
            j = i + steps[i]
            tasks[i], tasks[j] = tasks[j], tasks[i]
