"""Embeddings of the simulated prompts: edits are close to their original, prompts of a task less so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 48
TASK_SHARE = 0.3
"""Cosine similarity of two prompts of a task, on average, neither of which is an edit."""
GROUP_SHARE = 0.96
"""Cosine similarity of two edits of one original, on average; of an edit and its original, the square root of it."""
DECIMALS = 5
"""Coarse enough that rounding errors, which differ between machines, do not reach the file."""


def simulate_vectors(
    task: NDArray[np.int64], group: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float32]:  # fmt: skip
    """Return a vector of length 1, up to rounding, for each prompt.

    The first prompt of a group is the original, and the others are edits that deviate from it,
    each in a different direction. Two edits are twice as far from each other, in cosine distance, as from the original.

    Args:
        task: ``(n,)`` number of each prompt's task.
        group: ``(n,)`` number of its group of near-duplicates, -1 = in none.
        rng: random number generator.

    Returns:
        ``(n, DIMENSIONS)`` float32.
    """
    of_task = _directions(int(task.max()) + 1, rng)[task]
    of_prompt, deviation = _directions(len(task), rng), _directions(len(task), rng)
    meaning = _unit(np.sqrt(TASK_SHARE) * of_task + np.sqrt(1 - TASK_SHARE) * of_prompt)
    original = find_originals(group)
    is_edit = original != np.arange(len(group))
    edits = np.sqrt(GROUP_SHARE) * meaning[original] + np.sqrt(1 - GROUP_SHARE) * deviation
    return _unit(np.where(is_edit[:, None], edits, meaning)).round(DECIMALS).astype(np.float32)


def find_originals(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """``(n,)`` row of the prompt that each is an edit of: the first of its group, itself where it is in none."""
    original = np.arange(len(group))
    grouped = group >= 0
    _, first, inverse = np.unique(group[grouped], return_index=True, return_inverse=True)
    original[grouped] = np.flatnonzero(grouped)[first][inverse]
    return original


def _directions(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return _unit(rng.standard_normal((n, DIMENSIONS)))


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(rows / np.sqrt((rows**2).sum(axis=1, keepdims=True)))
