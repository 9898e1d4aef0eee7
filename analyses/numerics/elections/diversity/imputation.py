"""Missing scores filled in from the models that resemble a model most."""

from __future__ import annotations

from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores

N_NEIGHBOURS = 5
"""As many as Zhang & Hardt 2024 average over."""


def impute_knn(scores: ExactScores, n_neighbours: int = N_NEIGHBOURS) -> ExactScores:
    """Each missing score replaced by the mean of the nearest models that have one.

    Two models are as far apart as the root of the mean squared difference over the tasks both have. Where models at
    the same distance compete for the last places among the neighbours, they share them evenly, so that the order of
    the models decides nothing. A model that shares no task with any that has the score gets the task's mean.
    Distances are floats; means are exact, so that two models with the same neighbours tie.

    Args:
        scores: every task and every model has at least one.
        n_neighbours: at least 1; where fewer have the score, all of them are averaged.

    Source: the imputer of Zhang & Hardt 2024, section 4.2 (five neighbours of equal weight).
    """
    is_present = scores.present
    if is_present.all():
        return scores
    known = np.where(is_present, scores.T, 0.0)
    # By a power of two, so that no square overflows and no digit changes.
    known = np.ldexp(known, -np.frexp(np.abs(known).max())[1])
    gaps: dict[tuple[int, int], tuple[int, int]] = {}
    for model in np.flatnonzero(~is_present.all(axis=0)).tolist():
        distance = _distances(known, is_present, model)
        for task in np.flatnonzero(~is_present[:, model]).tolist():
            donors = np.flatnonzero(is_present[task])
            neighbours = donors[~np.isnan(distance[donors])]
            if neighbours.size:
                gaps[task, model] = _mean_of_nearest(
                    scores.numerators[task, neighbours], distance[neighbours], n_neighbours
                )
            else:
                gaps[task, model] = scores.numerators[task, donors].sum(), donors.size
    common = lcm(*{divisor for _, divisor in gaps.values()})
    numerators, T, denominator = scores.numerators * common, scores.T.copy(), scores.denominator * common
    for cell, (total, divisor) in gaps.items():
        numerators[cell] = total * (common // divisor)
        T[cell] = numerators[cell] / denominator
    return ExactScores(T=T, numerators=numerators, denominator=denominator)


def _distances(known: NDArray[np.float64], is_present: NDArray[np.bool_], model: int) -> NDArray[np.float64]:
    """``(n_models,)`` mean squared difference of each model from one, NaN where they share no task."""
    both = is_present & is_present[:, model, None]
    squares = np.where(both, known - known[:, model, None], 0.0) ** 2
    shared = both.sum(axis=0)
    return np.asarray(np.divide(squares.sum(axis=0), shared, out=np.full(len(shared), np.nan), where=shared > 0))


def _mean_of_nearest(numerators: NDArray[Any], distance: NDArray[np.float64], n_neighbours: int) -> tuple[int, int]:
    """Mean over the nearest, as an integer and what to divide it by."""
    n = min(n_neighbours, len(numerators))
    last = np.partition(distance, n - 1)[n - 1]
    nearer, level = numerators[distance < last], numerators[distance == last]
    places = n - len(nearer)
    if places == len(level):
        return int(nearer.sum() + level.sum()), n
    return int(nearer.sum() * len(level) + level.sum() * places), n * len(level)
