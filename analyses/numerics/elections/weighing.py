"""Models ranked by weighted means of tasks, decided in whole numbers."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.ranking_distance import average_ranks


def is_weighed(scores: ExactScores) -> NDArray[np.bool_]:
    """``(n_tasks,)`` whether a task tells any two models apart; the others move no ranking.

    Args:
        scores: complete, at least 1 model.
    """
    return np.asarray((scores.numerators != scores.numerators[:, :1]).any(axis=1), dtype=bool)


def scale_of(scores: ExactScores, *, standardised: bool) -> NDArray[np.float64]:
    """``(n_tasks,)`` what the scores of a task are divided by before they are weighed.

    Args:
        scores: complete, at least 2 models.
        standardised: by the standard deviation over the models (with m − 1); otherwise, and for a task that ties all
            models, by 1.
    """
    if not standardised:
        return np.ones(scores.n_tasks)
    spread = scores.T.std(axis=1, ddof=1)
    return np.where(is_weighed(scores) & (spread > 0), spread, 1.0)


def weighted_totals(scores: ExactScores, weights: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[Any]:
    """``(n_models,)`` Python integers in the order of Σ weight · score / scale, ties included.

    Args:
        scores: complete.
        weights: ``(n_tasks,)`` taken for exactly the numbers that these floats are; NaN counts as 0.
        scale: ``(n_tasks,)`` likewise, not 0.
    """
    shares = [
        Fraction(0) if w != w else Fraction(w) / Fraction(s)
        for w, s in zip(weights.tolist(), scale.tolist(), strict=True)
    ]
    common = lcm(1, *(one.denominator for one in shares))
    whole = np.array([one.numerator * (common // one.denominator) for one in shares], dtype=object)
    return np.asarray(whole @ scores.numerators, dtype=object)


def mean_ranks_before(scores: ExactScores) -> NDArray[np.float64]:
    """``(n_models,)`` ranks by the mean of the scores as they are (Zhang & Hardt 2024, equation 1).

    Args:
        scores: complete.
    """
    return average_ranks(scores.numerators.sum(axis=0))
