"""Hash many numbers at once, for order-free checksums.

Source: the finalizer of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
"""Offsets of the two 64-bit words of a checksum; the first is also the step of the generator."""

WORD = 1 << 64
"""Checksums are sums modulo this."""


def mix_bits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash words so that every bit depends on every input bit; distinct words have distinct hashes."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
