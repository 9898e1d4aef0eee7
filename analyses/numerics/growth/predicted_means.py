"""The mean of a model over all prompts, predicted by item response from its scores on the first ones.

Every model is predicted from prompts whose difficulties were found without it: the models are divided into groups, and
each group takes no part in the fit that predicts it. So the errors are those for a new model like the stored ones.

Source: Polo et al. 2024, "tinyBenchmarks" (the prediction from observed scores and expected ones).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.item_response import TwoParameterFit, fit_two_parameter
from analyses.numerics.growth.information_first import order_by_information, prompt_information
from tracker.statistics.jit import jit

N_GROUPS = 5
"""Groups of models, of which each in turn takes no part in the fit."""
MIN_MODELS = 10
"""With fewer, a group would be predicted from fewer than eight models."""
N_STEPS = 8
"""Newton steps of an ability at each size, from that at the size before."""
MAX_STEP = 1.0
"""Longest step of an ability."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupFit:
    """A fit in which some models take no part.

    Attributes:
        columns: ``(m,)`` int64, those models.
        fit: of the other models.
        order: ``(n,)`` int64, prompts in the order of their information about the other models.
    """

    columns: NDArray[np.int64]
    fit: TwoParameterFit
    order: NDArray[np.int64]


def fit_other_models(right: NDArray[np.float64], floors: NDArray[np.float64]) -> list[GroupFit]:
    """Fit the prompts without one group of models after the other.

    Each group has strong and weak models: by mean, the models are dealt out in turn.

    Args:
        right: ``(n, k)`` of 0 and 1, at least `MIN_MODELS` columns.
        floors: ``(n,)`` chance to guess each answer.
    """
    by_mean = np.argsort(right.mean(axis=0), kind="stable")
    fits = []
    for group in range(N_GROUPS):
        columns = np.sort(by_mean[group::N_GROUPS])
        fit = fit_two_parameter(np.delete(right, columns, axis=1), floors)
        order = order_by_information(prompt_information(fit, floors, fit.ability)).rows
        fits.append(GroupFit(columns=columns, fit=fit, order=order))
    return fits


@jit
def _predict(
    scores: Any, order: Any, sizes: Any, weights: Any, a: Any, b: Any, floors: Any, predicted: Any, plain: Any
) -> None:
    """Fill ``(n_sizes, k)`` means of some models, one after the other."""
    n = order.size
    total = 0.0
    for i in range(n):
        total += weights[i]
    for j in range(scores.shape[1]):
        ability = 0.0
        for place in range(sizes.size):
            size = sizes[place]
            for _ in range(N_STEPS):
                slope, curvature = -ability, 1.0  # of the standard normal prior
                for step in range(size):
                    i = order[step]
                    p = 1 / (1 + np.exp(-a[i] * (ability - b[i])))
                    P = floors[i] + (1 - floors[i]) * p
                    share = (1 - floors[i]) * p / P if P > 0 else 1.0
                    if scores[i, j] == 1:
                        slope += a[i] * share * (1 - p)
                    else:
                        slope -= a[i] * p
                    curvature += a[i] * a[i] * share * p * (1 - p)
                move = min(MAX_STEP, max(-MAX_STEP, slope / curvature))
                ability += move
                if abs(move) < 1e-6:
                    break
            observed, weight, unseen = 0.0, 0.0, 0.0
            for step in range(n):
                i = order[step]
                if step < size:
                    observed += weights[i] * scores[i, j]
                    weight += weights[i]
                else:
                    p = 1 / (1 + np.exp(-a[i] * (ability - b[i])))
                    unseen += weights[i] * (floors[i] + (1 - floors[i]) * p)
            predicted[place, j] = (observed + unseen) / total
            plain[place, j] = observed / weight


def predict_means(
    right: NDArray[np.float64],
    floors: NDArray[np.float64],
    weights: NDArray[np.float64],
    sizes: NDArray[np.int64],
    fits: list[GroupFit],
    order: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predict each model's mean over all prompts from its first scores, with the fit in which it takes no part.

    Args:
        right: ``(n, k)`` of 0 and 1.
        floors: ``(n,)`` chance to guess each answer.
        weights: ``(n,)`` positive.
        sizes: ascending numbers of first prompts.
        fits: of `fit_other_models`.
        order: ``(n,)`` of the prompts; None takes the order of each fit.

    Returns:
        ``(n_sizes, k)`` predicted means, and the plain means of the same prompts.
    """
    predicted, plain = (np.empty((sizes.size, right.shape[1])) for _ in range(2))
    for group in fits:
        values = np.empty((sizes.size, group.columns.size)), np.empty((sizes.size, group.columns.size))
        numbers = group.fit.discrimination, group.fit.difficulty, floors
        scores = np.ascontiguousarray(right[:, group.columns])
        _predict(scores, group.order if order is None else order, sizes, weights, *numbers, *values)
        predicted[:, group.columns], plain[:, group.columns] = values
    return predicted, plain
