"""Random streams that depend only on their purpose, not on the worker.

A stream is identified by (seed, purpose, permutation, column). It is a counter-based generator, so any worker can begin
any stream without the previous ones, and results do not depend on the distribution of work.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COLUMNS, BACKWARD, FORWARD = 1, 2, 3
"""Purposes: shuffled columns; backward Markov chains from the observed table; forward chains."""
STARTS, ROWS, ORDERS, SIMPLEX, RESTARTS = 4, 5, 6, 7, 8
"""Purposes: k-means initialization; shuffled rows; random orders of prompts; random weights; restarts of a search."""
SUBSETS, HALVES = 21, 22
"""Purposes: random sets of tasks; random halves of the models."""
DESCENT = 23
"""Purpose: starts and draws of gradient descent."""
RETAINED, DUPLICATES, REVIEWED = 32, 33, 34
"""Purposes of a filter: sampled easy prompts; sampled equal or similar prompts; review samples."""
RANDOM_SUBSETS, RESAMPLED_MODELS, SPLITS = 35, 36, 37
"""Purposes: random sets of prompts; models drawn with replacement; random halves of the models."""
SIGN_FLIPS, RESAMPLED_UNITS, SHOWN_PROMPTS, RESAMPLED_RANKS = 41, 42, 43, 44
"""Purposes of model comparisons: flipped signs; prompts or clusters drawn with replacement; example prompts; bootstrap
of ranks.
"""
PAIRS = 16
"""Offset of a chain's purpose for the streams that choose its pairs of columns."""


def stream_key(seed: int) -> NDArray[np.uint64]:
    """Return the two 32-bit words that a seed contributes to every stream.

    Args:
        seed: any non-negative integer.
    """
    return np.random.SeedSequence(seed).generate_state(2, np.uint32).astype(np.uint64)


def generator(seed: int, purpose: int, *place: int) -> np.random.Generator:
    """Return a NumPy generator for one place of one purpose, if no custom kernel is needed.

    Args:
        seed: any non-negative integer.
        purpose: as above.
        place: such as a block number; each place has a separate stream.
    """
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(purpose, *place))))
