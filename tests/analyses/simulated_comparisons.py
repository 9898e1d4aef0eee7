"""Benchmarks whose truth is known, for measuring how often intervals hold it."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

MMLU_PRO_SIZES = (1351, 1299, 1132, 1101, 969, 924, 844, 818, 798, 789, 717, 499, 410, 381)
"""Prompts of the 14 categories."""


def binary_pair(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Two models that find the same prompts hard; scores, and the difference over all prompts there could be.

    Prompts are drawn from a population: a model with ability t gets one of difficulty z right where t + noise > z.
    """
    z = rng.normal(size=n)
    a, b = (t + rng.normal(0, 0.7, n) > z for t in (0.45, 0.3))
    spread = np.sqrt(1 + 0.7**2)
    return a.astype(float), b.astype(float), float(ndtr(0.45 / spread) - ndtr(0.3 / spread))


def continuous_pair(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Skewed scores, as lengths or losses are."""
    shared = rng.gamma(2.0, 1.0, n)
    return shared + rng.gamma(1.0, 1.0, n), shared + rng.gamma(1.5, 0.5, n), 1.0 - 0.75


def clustered_binary(
    rng: np.random.Generator, sizes: tuple[int, ...], abilities: np.ndarray, *, by_cluster: float = 0.25
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of models on prompts in clusters that favour different models.

    Clusters are drawn from a population, in each of which a model is better or worse than elsewhere by a normal
    variable of standard deviation ``by_cluster``.

    Returns:
        scores, cluster of each prompt, and each model's mean over all clusters there could be.
    """
    codes = np.repeat(np.arange(len(sizes)), sizes)
    k = len(abilities)
    local = abilities + rng.normal(0, by_cluster, (len(sizes), k)) + rng.normal(0, 0.3, (len(sizes), 1))
    z = rng.normal(size=len(codes))
    right = local[codes] + rng.normal(0, 0.7, (len(codes), k)) > z[:, None]
    truth = ndtr(abilities / np.sqrt(1 + 0.7**2 + by_cluster**2 + 0.3**2))
    return right.astype(float), codes, truth
