"""Intervals of the mean of scores in [0, 1] by betting: proven for any distribution, and wider than Dirichlet shares.

A gambler bets on scores above a mean m, and another on scores below it. If m is the mean, the expected capital of each
remains 1, so that Markov's inequality bounds the probability that it reaches 2 / (1 − level). The interval holds the
means at which neither does. Bets are those of a fixed number of scores, from the variance of the scores before. The
capital is averaged over several orders of the scores, which leaves its expectation as it is.

Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting" (hedged capital with
predictable plug-in bets, section 4).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

N_ORDERS = 4
SEED = 0
"""Of the orders, so that the same scores have the same interval."""
LARGEST_SHARE = 0.5
"""Largest share of the capital that a gambler loses by one score."""
HALVINGS = 30
MAX_CELLS = 1 << 20
"""Scores, in all orders, of columns that are processed together."""

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]


def betting_intervals(Y: NDArray[np.float64], level: float = 0.95) -> Interval:
    """Return the interval of the mean of each column.

    Args:
        Y: ``(n, k)`` independent scores in [0, 1], n ≥ 1.
        level: in (0, 1).
    """
    n, k = Y.shape
    rng = np.random.default_rng(SEED)
    orders = np.stack([rng.permutation(n) for _ in range(N_ORDERS)])
    low, high = np.empty(k), np.empty(k)
    step = max(1, MAX_CELLS // (n * N_ORDERS))
    for start in range(0, k, step):
        columns = slice(start, start + step)
        ordered = Y[:, columns][orders]
        bets = _bets(ordered, level)
        low[columns] = _lower_ends(ordered, bets, level)
        high[columns] = 1 - _lower_ends(1 - ordered, bets, level)
    return low, high


def _bets(Y: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Return the bet on each score from those before it, ``(orders, n, k)``."""
    n = Y.shape[1]
    counts = np.arange(2, n + 2)[:, None]
    centers = (0.5 + Y.cumsum(axis=1)) / counts
    variances = (0.25 + ((Y - centers) ** 2).cumsum(axis=1)) / counts
    before = np.concatenate([np.full_like(variances[:, :1], 0.25), variances[:, :-1]], axis=1)
    return np.asarray(np.sqrt(2 * math.log(2 / (1 - level)) / (n * before)))


def _lower_ends(Y: NDArray[np.float64], bets: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Return the mean of each column at which the capital of bets on larger scores is 2 / (1 − level).

    The capital falls as the mean grows, so that halving finds it.
    """
    low, high = np.zeros(Y.shape[2]), np.ones(Y.shape[2])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        gains = np.minimum(bets, LARGEST_SHARE / middle) * (Y - middle)
        logs = special.logsumexp(np.log1p(gains).sum(axis=1), axis=0) - math.log(len(Y))
        is_rich = logs >= math.log(2 / (1 - level))
        low, high = np.where(is_rich, middle, low), np.where(is_rich, high, middle)
    return low
