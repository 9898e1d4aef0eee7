"""Intervals of the mean of independent scores in [0, 1] by betting, for any distribution.

A gambler bets on scores above a mean m. If m is the mean, the expected capital remains 1, whatever the bets, so that
it reaches 2 / (1 − level) with a probability of (1 − level) / 2 at most (Markov). The lower end is the lowest mean at
which it does not; for the upper end, a second gambler bets on scores below m.

The bets are those that would make the capital of normal scores 2 / (1 − level) beyond the normal quantile and 0 below
it, with the variance of the scores before: such an interval is as narrow as that of normal scores. They are made in
one order of the scores, which is fixed by a seed and does not depend on the scores.

Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting"; Voráček and Orabona
2025, "STaR-Bets" (bets towards the capital still needed).
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tracker.statistics.jit import INT, jit, sum_kernel

SEED = 0
"""Of the order, so that the same scores have the same interval."""
LARGEST_SHARE = 0.995
"""Largest share of the capital that a score can lose."""
MAX_BETS = 512
"""Bets in an order; each is on as many scores as needed."""
HALVINGS, N_SCANNED, SPACING = 22, 64, 1 / 96
"""Steps of the search for an end; means below it that are looked at, and their distances, in units of its distance from
the mean of the scores: a few means beyond an end that halving finds may not be rejected either."""
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
    order = np.random.default_rng(SEED).permutation(len(Y))
    columns, chance, rates = np.ascontiguousarray(Y[order].T), (1 - level) / 2, _hedge_rates()
    with ThreadPoolExecutor(max_workers=2) as pool:
        low, high = pool.map(lambda scores: _lower_ends(scores, chance, rates), (columns, 1 - columns))
    return low, 1 - high


def _hedge_rates() -> NDArray[np.float64]:
    """Return φ(d) / Φ(d), where Φ(d) is (i / N_RATES)⁴: the bet in units of the remaining standard deviation."""
    shares = (np.arange(1, N_RATES + 1) / N_RATES) ** 4
    quantiles = special.ndtri(np.concatenate([[shares[0]], shares]))
    quantiles[-1] = np.inf
    return np.asarray(np.exp(-(quantiles**2) / 2) / math.sqrt(2 * math.pi) / special.ndtr(quantiles))


@jit
def _lower_ends(columns: Any, chance: Any, rates: Any) -> Any:
    """Return the lowest mean of each row of ``(k, n)`` scores at which the capital does not reach 1 / ``chance``."""
    ends = np.empty(len(columns))
    for j in range(len(columns)):
        y = columns[j]
        low = _halve(y, 0.0, 1.0, chance, rates)
        spacing = max(y.mean() - low, 0.0) * SPACING
        lowest = low
        for i in range(1, N_SCANNED + 1):
            mean = low - i * spacing
            if 0 < mean < low and _final_share(y, mean, chance, rates) < 1:
                lowest = mean
        if lowest < low:
            low = _halve(y, max(lowest - spacing, 0.0), lowest, chance, rates)
        ends[j] = min(low, y.mean())
    return ends


@jit
def _halve(y: Any, low: Any, high: Any, chance: Any, rates: Any) -> Any:
    """Return a mean in between at which the capital reaches 1 / ``chance``, next to one where it does not."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _final_share(y, middle, chance, rates) >= 1:
            low = middle
        else:
            high = middle
    return low


@sum_kernel
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
        growth, added = 1.0, 0.0
        for t in range(start, min(start + step, n)):
            deviation = y[t] - mean
            growth *= 1 + bet * deviation
            added += deviation * deviation
        share *= growth
        squares += added
    return share
