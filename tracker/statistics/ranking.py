"""Ranks of scores, and distances between rankings.

Ties have a tolerance, so that means of the same scores summed in another order are equal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

TIE_TOLERANCE = 1e-12
"""Relative tolerance of ties: numbers closer than this share of the largest are equal, and an error below it is 0.

The only tolerance of the project. A module that needs another one documents the reason.
"""


MAX_SQUARED_EXPONENT = 400
"""Sums of squares of scores below 2**400, and above its reciprocal, neither overflow nor underflow."""


def scale_exponent(scores: NDArray[np.float64]) -> int:
    """Return the exponent of the largest finite magnitude: 2**-exponent scales it to at least 1 and below 2.

    Scores are scaled before they are squared or subtracted, and results are scaled back. Both are exact, so any finite
    score has a mean, an error and a rank. Returns 0 if all scores are 0.
    """
    largest = float(np.abs(scores).max(initial=0.0, where=np.isfinite(scores)))
    return math.frexp(largest)[1] - 1 if largest else 0


def overflow_exponent(scores: NDArray[np.float64]) -> int:
    """Return `scale_exponent` if squares of the scores can overflow or underflow, else 0.

    Scores of usual size stay exactly as they are, so that multiples of one number are found among them.
    """
    exponent = scale_exponent(scores)
    return exponent if abs(exponent) > MAX_SQUARED_EXPONENT else 0


def mean_ranks(scores: NDArray[np.float64], *, higher_is_better: bool = True) -> NDArray[np.float64]:
    """Return the rank of each score: 1 is best, ties share the mean of their ranks.

    Scores within `TIE_TOLERANCE` of the best of their group, relative to the largest finite magnitude, are tied with
    it. Equal infinities are tied. NaN comes last.

    Args:
        scores: ``(m,)``.
        higher_is_better: whether the largest is the best.

    Returns:
        ``(m,)`` float64.
    """
    scaled = np.ldexp(scores, -scale_exponent(scores))
    order = np.argsort(-scaled if higher_is_better else scaled, kind="stable")
    slack = TIE_TOLERANCE * float(np.abs(scaled).max(initial=0.0, where=np.isfinite(scaled)))
    ordered = scaled[order].tolist()
    ranks = np.empty(len(scores))
    start = 0
    while start < len(order):
        end = start + 1  # NaN is not equal to itself
        best = ordered[start]
        while end < len(order) and (ordered[end] == best or abs(ordered[end] - best) <= slack):
            end += 1
        ranks[order[start:end]] = (start + 1 + end) / 2
        start = end
    return ranks


def kendall_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the share of pairs of models that two rankings order differently, in [0, 1].

    A pair that one ranking orders and the other ties counts half; 0 if there are fewer than two models.

    Source: Fagin et al. 2004, "Comparing and aggregating rankings with ties", with p = 1/2, over C(m, 2).

    Args:
        a, b: ``(m,)`` ranks as returned by `mean_ranks`.
    """
    i, j = np.triu_indices(len(a), 1)
    if not len(i):
        return 0.0
    first, second = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
    return float(np.abs(first - second).sum() / 2 / len(i))


def kendall_tau_b(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Kendall's tau-b of two rankings; NaN if either ties all models.

    Source: Kendall 1945, "The treatment of ties in ranking problems".

    Args:
        a, b: ``(m,)`` ranks as returned by `mean_ranks`.
    """
    i, j = np.triu_indices(len(a), 1)
    first, second = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
    norm = float(np.abs(first).sum()) * float(np.abs(second).sum())
    return float((first * second).sum() / np.sqrt(norm)) if norm else float("nan")
