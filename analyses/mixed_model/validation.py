"""Scores and options that a mixed model cannot use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.validation import ValidationErrors
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.score_validation import check_finite

MAX_MODELS = 2_000
MAX_CELLS = 2 * 10**8
"""Largest number of tasks times the square of the number of models: three such arrays are in memory."""


def find_problems(scores: PerformanceMatrix, *, response: str, likelihood: str, level: float) -> ValidationErrors:
    """List the reasons why these scores have no mixed model, with the fix.

    Args:
        scores: of the models that have any.
        response, likelihood, level: as the user set them.
    """
    Q, k = scores.Q, scores.n_models
    n_tasks = len(np.unique(scores.tasks))
    return {
        f"level is {level:g}; it must be between 0 and 1, such as 0.95.": not 0 < level < 1,
        **check_finite(Q),
        f"A mixed model needs 2 models with scores, here: {k}. Select more models.": k < 2,
        f"A mixed model needs 2 prompts, here: {scores.n_prompts}. Select more tasks.": scores.n_prompts < 2,
        f"A mixed model of {k:,} models on {n_tasks:,} tasks is too large: at most {MAX_MODELS:,} models, and "
        f"{MAX_CELLS:,} tasks times models squared. Select fewer with --models.": (
            k > MAX_MODELS or n_tasks * k**2 > MAX_CELLS
        ),
        "Every score is the same, so there is no variance to explain. Select another metric or other models.": (
            is_constant(Q)
        ),
        "The logistic model is for scores of 0 and 1. Choose --response gaussian.": (
            response == "logistic" and not scores.is_binary
        ),
        "The full likelihood is available for the linear model. Add --response gaussian, or leave out --likelihood.": (
            likelihood == "full" and chosen_response(scores, response) == "logistic"
        ),
    }


def is_constant(Q: NDArray[np.float64]) -> bool:
    """Return whether all scores that are not missing are equal."""
    values = Q[~np.isnan(Q)]
    return len(values) == 0 or bool(values.min() == values.max())


def chosen_response(scores: PerformanceMatrix, response: str) -> str:
    """Return ``gaussian`` or ``logistic``: as chosen, else logistic for scores of 0 and 1."""
    if response != "auto":
        return response
    return "logistic" if scores.is_binary else "gaussian"
