"""What each step of a filter removes alone: parts that add up, where the steps' own shares overlap."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.step_flags import StepFlags

SEVERAL = "several steps"
"""Name of the part that more than one step removes."""


def split_removed(steps: Mapping[str, StepFlags]) -> Mapping[str, NDArray[np.bool_]]:
    """The removed prompts in parts: those that one step alone removes, by its name, then `SEVERAL`.

    Every removed prompt is in one part, every kept one in none. Parts that are empty are there too.

    Args:
        steps: by name, at least one, of the same prompts.
    """
    removed = np.array([step.removed for step in steps.values()])
    times = removed.sum(axis=0)
    return {name: removed[place] & (times == 1) for place, name in enumerate(steps)} | {SEVERAL: times > 1}


def count_by_task(
    tasks: NDArray[np.str_], parts: Mapping[str, NDArray[np.bool_]]
) -> tuple[NDArray[np.str_], NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """How many prompts of each task are there, and in each part.

    Args:
        tasks: ``(n_prompts,)`` name of each prompt's task.
        parts: by name, ``(n_prompts,)`` each.

    Returns:
        Names of the tasks in ascending order, ``(n_tasks,)`` their prompts, and by part ``(n_tasks,)`` those in it.
    """
    names, place = np.unique(tasks, return_inverse=True)
    size = np.bincount(place, minlength=len(names)).astype(np.int64)
    inside = {part: np.bincount(place[chosen], minlength=len(names)).astype(np.int64) for part, chosen in parts.items()}
    return names, size, inside
