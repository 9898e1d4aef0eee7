"""Intervals of the mean of independent scores in [0, 1] by betting, which hold for any distribution.

A gambler bets on scores above a mean m. If m is the mean, the expected capital remains 1, whatever the bets, so that
it reaches 2 / (1 − level) with a probability of (1 − level) / 2 at most. The lower end is the mean at which it does;
for the upper end, a second gambler bets on scores below m.

The bets are those that would make the capital of normal scores 2 / (1 − level) beyond the normal quantile and 0 below
it, with the variance of the scores before: such an interval is as narrow as that of normal scores. Capitals from
several orders of the scores are exchangeable, so that their running mean may be compared after each.

Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting"; Voráček and Orabona
2025, "STaR-Bets" (bets towards the capital still needed); Ramdas and Manole 2023, "Randomized and exchangeable
improvements of Markov's, Chebyshev's and Chernoff's inequalities".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tracker.statistics.jit import INT, jit

MAX_ORDERS, MAX_ORDERED = 8, 4096
"""Orders of the scores, and scores in all of them together, unless a single order has more."""
SEED = 0
"""Of the orders, so that the same scores have the same interval."""
LARGEST_SHARE = 0.995
"""Largest share of the capital that a score can lose."""
MAX_BETS = 512
"""Bets in an order; each is on as many scores as needed."""
HALVINGS = 30
RUIN = 1e-12
"""A share of the capital to be reached, below which a gambler gives up."""
N_RATES = 1024

Interval = tuple[NDArray[np.float64], NDArray[np.float64]]


def betting_intervals(Y: NDArray[np.float64], level: float = 0.95) -> Interval:
    """Return the interval of the mean of each column.

    Args:
        Y: ``(n, k)`` independent scores in [0, 1], n ≥ 1.
        level: in (0, 1).
    """
    n = len(Y)
    rng = np.random.default_rng(SEED)
    orders = np.stack([rng.permutation(n) for _ in range(min(MAX_ORDERS, max(1, MAX_ORDERED // n)))])
    columns, chance, rates = np.ascontiguousarray(Y.T), (1 - level) / 2, _hedge_rates()
    low = _lower_ends(columns, orders, chance, rates)
    return low, 1 - _lower_ends(1 - columns, orders, chance, rates)


def _hedge_rates() -> NDArray[np.float64]:
    """Return φ(d) / Φ(d), where Φ(d) is (i / N_RATES)⁴: the bet in units of the remaining standard deviation."""
    shares = (np.arange(1, N_RATES + 1) / N_RATES) ** 4
    quantiles = special.ndtri(np.concatenate([[shares[0]], shares]))
    quantiles[-1] = np.inf
    return np.asarray(np.exp(-(quantiles**2) / 2) / math.sqrt(2 * math.pi) / special.ndtr(quantiles))


@jit
def _lower_ends(columns: Any, orders: Any, chance: Any, rates: Any) -> Any:
    """Return the mean of each row of ``(k, n)`` scores at which the capital is 1 / ``chance``."""
    k, n = columns.shape
    ends, ordered = np.empty(k), np.empty(orders.shape)
    for j in range(k):
        for i in range(orders.shape[0]):
            for t in range(n):
                ordered[i, t] = columns[j, orders[i, t]]
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if _is_rejected(ordered, middle, chance, rates):
                low = middle
            else:
                high = middle
        ends[j] = low
    return ends


@jit
def _is_rejected(ordered: Any, mean: Any, chance: Any, rates: Any) -> Any:
    """Whether the running mean of the capitals of ``(orders, n)`` scores reaches 1 / ``chance``."""
    total = 0.0
    for i in range(ordered.shape[0]):
        total += _final_share(ordered[i], mean, chance, rates)
        if total >= i + 1:
            return True
    return False


@jit
def _final_share(y: Any, mean: Any, chance: Any, rates: Any) -> Any:
    """Return the capital after the scores, as a share of 1 / ``chance``; the gambler stops at 1."""
    n = len(y)
    step = int((n + MAX_BETS - 1) // MAX_BETS)
    share, squares = chance, mean * (1 - mean)
    for start in range(0, n, step):
        if share >= 1 or share < RUIN:
            return share
        rate = rates[INT(math.sqrt(math.sqrt(share)) * N_RATES)]
        bet = min(rate / math.sqrt(squares / (start + 1) * (n - start)), LARGEST_SHARE / mean)
        for t in range(start, min(start + step, n)):
            deviation = y[t] - mean
            share *= 1 + bet * deviation
            squares += deviation * deviation
    return share
