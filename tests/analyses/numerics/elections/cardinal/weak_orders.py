"""The slow, obvious reference: every weak order of the models, each asked of a linear program."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from analyses.numerics.elections.diversity.ranking_distance import ranking_distance


@functools.cache
def weak_orders(m: int) -> list[np.ndarray]:
    """Average ranks of every weak order of m models."""
    levels = {item for item in itertools.product(range(m), repeat=m) if set(item) == set(range(max(item) + 1))}
    orders = []
    for level in sorted(levels):
        at = np.array(level)
        orders.append(np.array([(at < item).sum() + ((at == item).sum() + 1) / 2 for item in at]))
    return orders


def is_reached(X: np.ndarray, ranks: np.ndarray, epsilon: float) -> bool:
    """Whether some weights in [epsilon, 1] order the columns of X so, by the largest margin a linear program finds."""
    n = len(X)
    above, equal = [], []
    order = np.argsort(ranks, kind="stable")
    for a, b in itertools.pairwise(order):
        (equal if ranks[a] == ranks[b] else above).append(X[:, a] - X[:, b])
    tight = {"A_eq": np.c_[np.array(equal), np.zeros(len(equal))], "b_eq": np.zeros(len(equal))} if equal else {}
    strict = {"A_ub": np.c_[-np.array(above), np.ones(len(above))], "b_ub": np.zeros(len(above))} if above else {}
    result = linprog(np.r_[np.zeros(n), -1.0], **tight, **strict, bounds=[(epsilon, 1)] * n + [(None, 1)])
    return bool(result.status == 0 and result.x[-1] > 1e-9)


def largest_distances(T: np.ndarray, before: np.ndarray, scale: np.ndarray, epsilon: Fraction) -> tuple[float, float]:
    """The largest tau and the largest MRC over all orders that some weights reach."""
    X = T / scale[:, None]
    orders = weak_orders(T.shape[1])
    distances = [ranking_distance(before, order) for order in orders]
    reached: dict[int, bool] = {}
    largest = []
    for measure in ("tau", "mrc"):
        by_size = sorted(range(len(orders)), key=lambda item: -getattr(distances[item], measure))
        for item in by_size:
            if item not in reached:
                reached[item] = is_reached(X, orders[item], float(epsilon))
            if reached[item]:
                largest.append(getattr(distances[item], measure))
                break
    return largest[0], largest[1]
