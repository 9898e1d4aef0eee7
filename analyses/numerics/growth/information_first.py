"""The order in which prompts are added one by one, each the most informative about the abilities of the models.

Abilities are standard normal beforehand. With the prompts of a set, the posterior variance of a model's ability is
about 1 / (1 + the sum of their Fisher information at its ability). The next prompt is the one that lowers the mean
variance of all models most. What a prompt lowers only falls while others are added, so a heap of earlier values finds
the next prompt.

Source: Lord 1980 (information of a response with guessing); Minoux 1978 (lazy evaluation).
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.item_response import TwoParameterFit
from analyses.numerics.growth.farthest_first import Order
from tracker.statistics.jit import INT, jit


def know_probabilities(fit: TwoParameterFit, ability: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(n_prompts, n_models)`` probability that a model knows the answer, without guessing.

    Args:
        fit: difficulty and discrimination of the prompts.
        ability: ``(n_models,)``.
    """
    odds = fit.discrimination[:, None] * (ability - fit.difficulty[:, None])
    return np.asarray(1 / (1 + np.exp(-odds)))


def prompt_information(
    fit: TwoParameterFit, floors: NDArray[np.float64], ability: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``(n_prompts, n_models)`` Fisher information of each response about the ability, ``a² (1 - g) p² (1 - p) / P``.

    Args:
        fit: difficulty and discrimination ``a`` of the prompts.
        floors: ``(n_prompts,)`` chance ``g`` to guess the answer; ``P = g + (1 - g) p``.
        ability: ``(n_models,)``.
    """
    p, g = know_probabilities(fit, ability), floors[:, None]
    P = g + (1 - g) * p
    share = np.divide((1 - g) * p, P, out=np.ones_like(p), where=P > 0)
    return np.asarray(fit.discrimination[:, None] ** 2 * share * p * (1 - p))


@jit
def _gain(precision: Any, information: Any, i: Any) -> Any:
    """How much prompt ``i`` lowers the sum of the variances."""
    total = 0.0
    for j in range(precision.size):
        total += 1 / precision[j] - 1 / (precision[j] + information[i, j])
    return total


@jit
def _order(information: Any, start: Any, rows: Any, gains: Any) -> None:
    n, k = information.shape
    precision = np.ones(k)
    heap = [(-_gain(precision, information, INT(i)), INT(i), INT(0)) for i in range(n)]
    heapq.heapify(heap)
    for step in range(n):
        best, value = INT(start), 0.0
        if step > 0 or start < 0:
            while True:
                negative, best, last = heapq.heappop(heap)
                if start >= 0 and best == start:
                    continue  # it came first
                if last == step:
                    value = -negative
                    break
                heapq.heappush(heap, (-_gain(precision, information, best), best, INT(step)))
        else:
            value = _gain(precision, information, best)
        rows[step], gains[step] = best, value / k
        for j in range(k):
            precision[j] += information[best, j]


def order_by_information(information: NDArray[np.float64], start: int | None = None) -> Order:
    """Prompts one by one, each lowering the mean posterior variance of the abilities most.

    Of prompts that lower it equally, the first comes first.

    Args:
        information: ``(n_prompts, n_models)``, from `prompt_information`.
        start: the first prompt; None takes the most informative one.

    Returns:
        The order; in place of distances by how much each prompt lowers the mean variance, in [0, 1].
    """
    rows, gains = np.empty(len(information), np.int64), np.empty(len(information))
    _order(np.ascontiguousarray(information), -1 if start is None else start, rows, gains)
    return Order(rows=rows, distances=gains)
