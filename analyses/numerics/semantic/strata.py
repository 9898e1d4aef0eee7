"""Strata of prompts of similar difficulty and length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STRATUM_SIZE = 5
"""Prompts in a stratum: few enough that difficulty and length hardly vary in it, enough to permute."""

MIN_PROMPTS_PER_PREDICTOR = 10
"""Fewer would leave a regression too little to learn from, and too much to fit."""


def difficulty_length_strata(
    difficulty: NDArray[np.float64], length: NDArray[np.float64], *, size: int = STRATUM_SIZE
) -> NDArray[np.int64]:
    """Return the stratum of each prompt: prompts are sorted by difficulty and cut, then each part by length.

    Args:
        difficulty: ``(n,)``, such as the mean score of each prompt.
        length: ``(n,)``, such as the number of characters.
        size: prompts in a stratum, about.

    Returns:
        ``(n,)`` int64, from 0.
    """
    n = len(difficulty)
    n_strata = max(1, n // size)
    n_parts = max(1, round(n_strata**0.5))
    strata = np.empty(n, dtype=np.int64)
    first = 0
    for part in np.array_split(np.lexsort((length, difficulty)), n_parts):
        by_length = part[np.lexsort((difficulty[part], length[part]))]
        groups = np.array_split(by_length, max(1, round(len(part) * n_strata / n)))
        for group in groups:
            strata[group] = first
            first += 1
    return strata


def remove_difficulty_length(
    E: NDArray[np.float64], difficulty: NDArray[np.float64], length: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return vectors less what difficulty and length predict of them, by least squares on both, squares and product.

    Lengths count by their ranks, since few texts are very long. The mean of the vectors stays. Below 50 prompts the
    vectors stay as they are.

    Args:
        E: ``(n, d)`` unit vectors.
        difficulty, length: ``(n,)``.
    """
    ranks = np.unique(length, return_inverse=True)[1].astype(np.float64)
    x, y = (values - values.mean() for values in (difficulty, ranks))
    x, y = (values / (np.abs(values).max() or 1.0) for values in (x, y))
    predictors = np.column_stack([x, y, x * x, y * y, x * y])
    if len(E) < MIN_PROMPTS_PER_PREDICTOR * predictors.shape[1]:
        return E
    predictors -= predictors.mean(axis=0)
    return np.asarray(E - predictors @ np.linalg.lstsq(predictors, E, rcond=None)[0])


def permute_within(strata: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Return a random order of the rows that keeps each row in its stratum."""
    order = np.empty(len(strata), dtype=np.int64)
    order[np.argsort(strata, kind="stable")] = np.lexsort((random.random(len(strata)), strata))
    return order
