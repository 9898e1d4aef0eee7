"""Scores of a benchmark in as few bytes as they need."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NO_SCORE = -128
"""Placeholder of a missing score among small integers."""
BLOCK_CELLS = 100_000
"""Cells that are expanded at once: they fit in the cache of a core."""
MIN_THREADED = 1_000_000
"""Cells of a matrix from which two threads expand it."""


@dataclass(frozen=True, kw_only=True)
class CompactScores:
    """The scores of some runs of a benchmark under one metric, averaged over trials, in as few bytes as they need.

    Attributes:
        run_ids: ``(n_runs,)`` int64 keys, ascending.
        prompt_ids: ``(n_prompts,)`` int64 keys, ascending.
        values: ``(n_prompts, n_runs)``: int8 with `NO_SCORE` for a missing score, else float32 or float64 with NaN. The
            smallest type that holds every score exactly.
        counts: ``(n_prompts, n_runs)`` trials of each; None if no prompt has several.
    """

    run_ids: NDArray[np.int64]
    prompt_ids: NDArray[np.int64]
    values: NDArray[np.generic]
    counts: NDArray[np.integer] | None

    def take(self, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
        """Return the scores of some runs and prompts as `read_averages` does.

        Args:
            run_ids: keys, all among ``self.run_ids``.
            prompt_ids: ``(m,)`` keys, all among ``self.prompt_ids``.
        """
        rows, columns = np.searchsorted(self.prompt_ids, prompt_ids), np.searchsorted(self.run_ids, run_ids)
        Q = np.empty((len(rows), len(columns)))
        if Q.size < MIN_THREADED:
            self._expand(rows, columns, Q)
        else:
            half = len(rows) // 2
            with ThreadPoolExecutor(1) as thread:
                second = thread.submit(self._expand, rows[half:], columns, Q[half:])
                self._expand(rows[:half], columns, Q[:half])
                second.result()
        return Q, 1 if self.counts is None else int(self.counts[np.ix_(rows, columns)].max(initial=1))

    def _expand(self, rows: NDArray[np.intp], columns: NDArray[np.intp], Q: NDArray[np.float64]) -> None:
        """Write the scores of some rows and columns to a matrix of their shape."""
        step = max(1, BLOCK_CELLS // max(1, self.values.shape[1]))
        for first in range(0, len(rows), step):
            part = self.values.take(rows[first : first + step], axis=0).take(columns, axis=1)
            block = Q[first : first + step]
            block[...] = part
            if part.dtype == np.int8 and part.min(initial=0) == NO_SCORE:
                block[part == NO_SCORE] = np.nan


def make_compact(Q: NDArray[np.float64]) -> NDArray[np.generic]:
    """Return scores in the smallest type that holds each exactly; see `CompactScores`.

    Args:
        Q: ``(n_prompts, n_runs)`` scores, NaN = missing.
    """
    small = _convert(Q, np.dtype(np.int8))
    if small is not None:
        return small
    single = _convert(Q, np.dtype(np.float32))
    return Q if single is None else single


def _convert(Q: NDArray[np.float64], dtype: np.dtype[np.generic]) -> NDArray[np.generic] | None:
    """Return scores in a type; None if it does not hold each of them exactly."""
    values = np.empty(Q.shape, dtype=dtype)
    step = max(1, BLOCK_CELLS // max(1, Q.shape[1]))
    for first in range(0, len(Q), step):
        scores, block = Q[first : first + step], values[first : first + step]
        is_missing = np.isnan(scores)
        with np.errstate(invalid="ignore", over="ignore"):
            block[...] = scores
        if dtype == np.int8:
            block[is_missing] = 0
            # a negative zero, and a score that is the placeholder
            is_inexact = (np.signbit(scores) != (block < 0)) | (block == NO_SCORE)
        else:
            is_inexact = np.zeros(scores.shape, dtype=np.bool_)
        if (((block != scores) | is_inexact) & ~is_missing).any():
            return None
        if dtype == np.int8:
            block[is_missing] = NO_SCORE
    return values


def widen(values: NDArray[np.generic], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """Return compact values in a type that holds them all: int8 < float32 < float64."""
    if values.dtype != np.int8 or dtype == np.int8:
        return values.astype(dtype, copy=False)
    return np.where(values == NO_SCORE, np.nan, values).astype(dtype)


def widest(types: Sequence[np.dtype[np.generic]]) -> np.dtype[np.generic]:
    """Return the type that holds the values of arrays of some types."""
    return max(types, key=lambda dtype: dtype.itemsize)
