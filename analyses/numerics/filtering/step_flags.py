"""The flags that one filter step gives each prompt, and what all steps together leave.

Every step looks at the full set, so that their order does not matter: a prompt stays if no step removes it.
Source: Gupta et al. 2024, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFlags:
    """A step's flags.

    Attributes:
        flagged: ``(n_prompts,)`` whether the step's reason applies.
        removed: ``(n_prompts,)`` whether the step removes the prompt for it; only flagged ones.
        groups: ``(n_prompts,)`` int32 number of the group of like prompts that it is in; -1 = in none.
    """

    flagged: NDArray[np.bool_]
    removed: NDArray[np.bool_]
    groups: NDArray[np.int32]


def make_flags(
    flagged: NDArray[np.bool_], removed: NDArray[np.bool_] | None = None, groups: NDArray[np.int32] | None = None
) -> StepFlags:
    """By default, a step removes what it flags and has no groups."""
    return StepFlags(
        flagged=flagged,
        removed=flagged if removed is None else removed,
        groups=np.full(len(flagged), -1, dtype=np.int32) if groups is None else groups,
    )


def find_kept(steps: Iterable[StepFlags], n_prompts: int) -> NDArray[np.bool_]:
    """``(n_prompts,)`` whether no step removes the prompt."""
    stays = np.ones(n_prompts, dtype=np.bool_)
    for step in steps:
        stays &= ~step.removed
    return stays


def find_confident_answers(
    right: NDArray[np.bool_], probabilities: NDArray[np.float64] | None, confidence: float
) -> NDArray[np.bool_]:
    """``(n_prompts, n_models)`` whether each model is right, and gives that answer more than this probability.

    Args:
        right: ``(n_prompts, n_models)``; a model without a response is not right.
        probabilities: ``(n_prompts, n_models)`` in [0, 1]; one that is not known (NaN) is not above any bound. None:
            being right is enough.
        confidence: strictly less than the probability.
    """
    return right if probabilities is None else right & (probabilities > confidence)


def find_confidently_right(
    right: NDArray[np.bool_], probabilities: NDArray[np.float64] | None, confidence: float
) -> NDArray[np.bool_]:
    """``(n_prompts,)`` whether every model is right, and gives the gold answer more than this probability.

    Args:
        right, probabilities, confidence: of the filter models, as for `find_confident_answers`.
    """
    return np.asarray(find_confident_answers(right, probabilities, confidence).all(axis=1))


def find_confidently_wrong(
    wrong: NDArray[np.bool_], probabilities: NDArray[np.float64] | None, confidence: float
) -> NDArray[np.bool_]:
    """``(n_prompts,)`` whether every model is wrong, and gives its own answer more than this probability.

    Args:
        wrong: ``(n_prompts, n_models)`` of the filter models; one without a response is not wrong.
        probabilities: ``(n_prompts, n_models)`` of the answer given, in [0, 1]; None: being wrong is enough.
        confidence: strictly less than the probability.
    """
    return find_confidently_right(wrong, probabilities, confidence)
