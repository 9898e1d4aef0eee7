"""What the simulated prompts mean, as vectors: near-duplicates close together, prompts of a task a little."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 48
TASK_SHARE = 0.3
"""Cosine similarity of two prompts of a task, on average."""
GROUP_SHARE = 0.95
"""Cosine similarity of two near-duplicates, on average."""
DECIMALS = 5
"""Coarse enough that rounding errors, which differ between machines, do not reach the file."""


def meanings(
    task: NDArray[np.int64], group: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float32]:  # fmt: skip
    """A vector of length 1 for each prompt, but for rounding.

    Args:
        task: ``(n,)`` number of each prompt's task.
        group: ``(n,)`` number of its group of near-duplicates, -1 = in none.
        rng: chance.

    Returns:
        ``(n, DIMENSIONS)`` float32.
    """
    of_task = _directions(int(task.max()) + 1, rng)[task]
    of_group = _directions(max(int(group.max()) + 1, 1), rng)[group]
    own, rest = _directions(len(task), rng), _directions(len(task), rng)
    of_prompt = np.where(group[:, None] >= 0, of_group, own)
    shared = np.sqrt(TASK_SHARE) * of_task + np.sqrt(1 - TASK_SHARE) * of_prompt
    return _unit(np.sqrt(GROUP_SHARE) * shared + np.sqrt(1 - GROUP_SHARE) * rest).round(DECIMALS).astype(np.float32)


def _directions(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return _unit(rng.standard_normal((n, DIMENSIONS)))


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(rows / np.sqrt((rows**2).sum(axis=1, keepdims=True)))
