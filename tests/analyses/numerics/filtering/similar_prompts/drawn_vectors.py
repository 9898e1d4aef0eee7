"""Vectors for the tests of distances, and all their distances by the definition."""

from __future__ import annotations

import numpy as np


def whole_numbers(n: int, d: int, largest: int, seed: int) -> np.ndarray:
    """Vectors with many ties and repeats, whose products and squares are exact in any order of summation."""
    E = np.random.default_rng(seed).integers(-largest, largest + 1, (n, d))
    E[~E.any(axis=1), 0] = 1
    return E.astype(np.float32)


def topics(n: int, d: int, seed: int, spread: float = 0.5) -> np.ndarray:
    """Clouds around a middle for each forty."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(1, n // 40), d))
    return (centres[rng.integers(0, len(centres), n)] + rng.normal(0, spread, (n, d))).astype(np.float32)


def all_distances(E: np.ndarray) -> np.ndarray:
    """Every pair, by the definition."""
    wide = E.astype(np.float64)
    squares = (wide * wide).sum(axis=1)
    return np.clip(1 - wide @ wide.T / np.sqrt(np.outer(squares, squares)), 0, 2)
