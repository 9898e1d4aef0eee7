"""Random numbers that depend on what they are for, never on who draws them.

A stream is named by (seed, purpose, permutation, column). It is a counter-based generator, so any
worker can begin any stream without the ones before it, and results do not depend on how the work
was divided.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


def stream_key(seed: int) -> NDArray[np.uint64]:
    """The two 32-bit words that a seed contributes to every stream.

    Args:
        seed: any non-negative integer.
    """
    return np.random.SeedSequence(seed).generate_state(2, np.uint32).astype(np.uint64)


def generator(seed: int, purpose: int, *place: int) -> np.random.Generator:
    """NumPy's generator for one place of one purpose, where a kernel of our own is not needed.

    Args:
        seed: any non-negative integer.
        purpose: as above.
        place: such as the number of a block; each place has a stream of its own.
    """
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(purpose, *place))))
