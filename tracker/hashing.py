"""Hashing many numbers at once, for checksums that do not depend on the order of rows.

Source: the finalizer of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
"""Of the two 64-bit words of a checksum; the first is also the step of the generator."""

WORD = 1 << 64
"""Checksums are sums modulo this."""


def mix_bits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words in which every bit depends on every bit of the given ones; no two are made alike."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
