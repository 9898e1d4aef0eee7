"""Errors of a model's mean over all prompts as predicted from its first ones, by item response and by plain means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.growth.predicted_means import fit_other_models, predict_means
from analyses.numerics.growth.trajectories import draw_order

SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000)
"""Numbers of prompts from which means are predicted, as far as there are more."""
N_ORDERS = 20
"""Random orders, at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionErrors:
    """Mean absolute errors over the models, each predicted by a fit in which it takes no part.

    Attributes:
        sizes: ``(m,)`` int64 numbers of prompts.
        informative, informative_plain: ``(m,)`` float64 with the most informative prompts, by item response and by the
            plain mean.
        random, random_plain: ``(m,)`` float64 the same with random prompts, on average over orders.
        n_orders: random orders.
    """

    sizes: NDArray[np.int64]
    informative: NDArray[np.float64]
    informative_plain: NDArray[np.float64]
    random: NDArray[np.float64]
    random_plain: NDArray[np.float64]
    n_orders: int


def measure_prediction_errors(
    right: NDArray[np.float64],
    floors: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    n_orders: int,
    key: NDArray[np.uint64],
) -> PredictionErrors:
    """Predict every model's mean from its scores on a part of the prompts.

    Args:
        right: ``(n, k)`` of 0 and 1, at least `predicted_means.MIN_MODELS` columns.
        floors: ``(n,)`` chance to guess each answer.
        weights: ``(n,)`` positive.
        n_orders: random orders; at most `N_ORDERS` are used.
        key: of the seed; the orders are the first of benchmark growth.
    """
    n = len(right)
    sizes = np.array([size for size in SIZES if size < n], dtype=np.int64)
    fits, final = fit_other_models(right, floors), weights @ right / weights.sum()
    n_orders = min(n_orders, N_ORDERS)

    def errors(order: NDArray[np.int64] | None) -> NDArray[np.float64]:
        means = predict_means(right, floors, weights, sizes, fits, order)
        return np.array([np.abs(values - final).mean(axis=1) for values in means])

    informative = errors(None)
    random = np.mean([errors(draw_order(n, key, number)) for number in range(n_orders)], axis=0)
    return PredictionErrors(
        sizes=sizes,
        informative=informative[0],
        informative_plain=informative[1],
        random=random[0],
        random_plain=random[1],
        n_orders=n_orders,
    )
