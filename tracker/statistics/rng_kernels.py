"""Kernels that draw random numbers from a stream of `tracker.statistics.rng_streams`.

Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox 4x32, ten rounds); Lemire 2019, "Fast
random integer generation in an interval" (unbiased bounded integers).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracker.statistics.jit import INT, jit

BATCH = 16
"""Counters converted to words at a time; a stream's words come in batches of four times as many."""
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_MULTIPLY = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_ROUNDS = 10


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
    """Fill ``draws``: entry ``i`` is an unbiased uniform integer in ``[0, bound + i * step)``.

    Args:
        draws: ``(n,)`` int64.
        bound, step: every bound is in ``[1, 2**32)``.
        key: key of the seed.
        purpose, permutation, column: identify the stream.
    """
    words = np.empty((4, BATCH), np.uint64)
    flat = words.reshape(4 * BATCH)
    batch: Any = INT(0)
    done: Any = INT(0)
    while done < draws.size:
        fill_words(words, key, purpose, permutation, column, batch)
        batch += 1
        for used in range(4 * BATCH):
            limit = np.uint64(bound + done * step)
            product = flat[np.uint64(used)] * limit
            rest = product & _MASK
            draws[np.uint64(done)] = np.int64(product >> _SHIFT)
            if rest >= limit or rest >= ((np.uint64(1) << _SHIFT) - limit) % limit:
                done += 1
                if done == draws.size:
                    break
