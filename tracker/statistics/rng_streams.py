"""Random numbers that depend on what they are for, never on who draws them.

A stream is named by (seed, purpose, permutation, column). It is a counter-based generator, so any
worker can begin any stream without the ones before it, and results do not depend on how the work
was divided.

Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox 4x32, ten rounds);
Lemire 2019, "Fast random integer generation in an interval" (unbiased bounded integers).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit

COLUMNS, BACKWARD, FORWARD = 1, 2, 3
"""Purposes: shuffling columns; the chain back from the observed table; the chains forward again."""
STARTS, ROWS, ORDERS, SIMPLEX, RESTARTS = 4, 5, 6, 7, 8
"""Purposes: starts of k-means; shuffling rows; random orders of prompts; random weights; restarts of a search."""
SUBSETS, HALVES = 21, 22
"""Purposes: random sets of tasks; random halves of the models."""
DESCENT = 23
"""Purpose: starts and draws of gradient descent."""
RETAINED, DUPLICATES, REVIEWED = 32, 33, 34
"""Purposes of a filter: which easy prompts stay, which equal or similar ones go, which are read."""
RANDOM_SUBSETS, RESAMPLED_MODELS, SPLITS = 35, 36, 37
"""Purposes: random sets of prompts; models drawn with replacement; splits of the models into two parts."""
SIGN_FLIPS, RESAMPLED_UNITS, SHOWN_PROMPTS, RESAMPLED_RANKS = 41, 42, 43, 44
"""Purposes of comparing models: flipped signs; prompts or clusters drawn with replacement; prompts shown; the same for
ranks."""
PAIRS = 16
"""Added to the purpose of a chain for the streams that choose its pairs of columns."""

BATCH = 16
"""Counters turned into words at a time; a stream's words come in batches of four times as many."""
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_MULTIPLY = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_ROUNDS = 10


def stream_key(seed: int) -> NDArray[np.uint64]:
    """The two 32-bit words that a seed contributes to every stream.

    Args:
        seed: any non-negative integer.
    """
    return np.random.SeedSequence(seed).generate_state(2, np.uint32).astype(np.uint64)


@jit
def fill_words(words: Any, key: Any, purpose: Any, permutation: Any, column: Any, batch: Any) -> None:
    """Fill ``words``, ``(4, BATCH)`` uint64, with the 32-bit words of one batch of a stream."""
    for i in range(BATCH):
        c0 = np.uint64(batch * BATCH + i) & _MASK
        c1, c2, c3 = np.uint64(column), np.uint64(permutation), np.uint64(purpose)
        k0, k1 = key[0], key[1]
        for _ in range(_ROUNDS):
            left, right = _MULTIPLY[0] * c0, _MULTIPLY[1] * c2
            c0, c1, c2, c3 = (right >> _SHIFT) ^ c1 ^ k0, right & _MASK, (left >> _SHIFT) ^ c3 ^ k1, left & _MASK
            k0 = (k0 + _WEYL[0]) & _MASK
            k1 = (k1 + _WEYL[1]) & _MASK
        words[0, i], words[1, i], words[2, i], words[3, i] = c0, c1, c2, c3


@jit
def fill_below(draws: Any, bound: Any, step: Any, key: Any, purpose: Any, permutation: Any, column: Any) -> None:
    """Fill ``draws``: entry ``i`` is a uniform integer in ``[0, bound + i * step)``, without bias.

    Args:
        draws: ``(n,)`` int64.
        bound, step: every bound is in ``[1, 2**32)``.
        key: of the seed.
        purpose, permutation, column: the name of the stream.
    """
    words = np.empty((4, BATCH), np.uint64)
    flat = words.reshape(4 * BATCH)
    batch: Any = INT(0)
    used = 4 * BATCH
    for i in range(draws.size):
        limit = np.uint64(bound + i * step)
        while True:
            if used == 4 * BATCH:
                fill_words(words, key, purpose, permutation, column, batch)
                batch += 1
                used = 0
            product = flat[used] * limit
            used += 1
            rest = product & _MASK
            if rest >= limit or rest >= ((np.uint64(1) << _SHIFT) - limit) % limit:
                break
        draws[i] = np.int64(product >> _SHIFT)


def generator(seed: int, purpose: int, *place: int) -> np.random.Generator:
    """NumPy's generator for one place of one purpose, where a kernel of our own is not needed.

    Args:
        seed: any non-negative integer.
        purpose: as above.
        place: such as the number of a block; each place has a stream of its own.
    """
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(purpose, *place))))
