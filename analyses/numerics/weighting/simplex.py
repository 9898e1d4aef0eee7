"""Weighted means of scores when the weights are random: their distribution, and who beats whom, without sampling.

Weights are ``Dirichlet(α)``; all ``α = 1`` is the uniform distribution on the simplex. A weighted mean of scores with
two values is then a beta variable, and one of two such models is ahead with the chance that one gamma variable exceeds
another. All other scores go through `dirichlet_tail`.

Source: Rubin 1981, "The Bayesian bootstrap".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analyses.numerics.weighting.dirichlet_tail import both_tails
from tracker.statistics.jit import jit, popcount
from tracker.statistics.parallel.blocks import map_blocks
from tracker.statistics.ranking import TIE_TOLERANCE

MAX_STEPS = 200
MAX_STEP = 1e-8
"""A quantile is found when a step is less than this share of the way to the nearest end; the error is its square."""

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeadChances:
    """Every model against every other.

    Attributes:
        beats: ``(k, k)`` chance that the weighted mean of the row exceeds that of the column; 0.5 where the two have
            the same scores, and on the diagonal. ``beats + beats.T`` is 1.
        better: ``(k, k)`` int64 prompts on which the row has the higher score.
    """

    beats: NDArray[np.float64]
    better: NDArray[np.int64]


def compute_lead_chances(X: NDArray[np.float64], alpha: Vector) -> LeadChances:
    """Chances of every model being ahead of every other.

    Args:
        X: ``(n, k)`` finite scores; higher is better.
        alpha: ``(n,)`` positive parameters of the Dirichlet distribution of the weights.
    """
    X = np.ascontiguousarray(X)  # kernels are compiled once per layout
    least, most = float(X.min()), float(X.max())
    if _is_two_valued(X, least, most):
        return _two_valued_duels(X, most, alpha)
    k = X.shape[1]
    columns, slack = np.ascontiguousarray(X.T), TIE_TOLERANCE * max(abs(least), abs(most))
    beats, better = np.full((k, k), 0.5), np.zeros((k, k), np.int64)
    for i, (ahead, behind, wins, losses) in enumerate(map_blocks(lambda i: _row(columns, alpha, slack, i), k)):
        beats[i, i + 1 :], beats[i + 1 :, i] = ahead, behind
        better[i, i + 1 :], better[i + 1 :, i] = wins, losses
    return LeadChances(beats=beats, better=better)


@jit
def _packed(X: Any, right: float) -> Any:
    """``(k, n_words)`` uint64: a bit for each prompt on which a model has the score ``right``."""
    n, k = X.shape
    words = np.zeros((k, (n + 63) // 64), np.uint64)
    for word in range(words.shape[1]):
        for prompt in range(word * 64, min(n, word * 64 + 64)):
            for j in range(k):
                words[j, word] |= np.uint64(X[prompt, j] == right) << np.uint64(prompt & 63)
    return words


@jit
def _only_one(words: Any) -> Any:
    """``(k, k)`` int64 prompts that the row has right and the column has not."""
    k = words.shape[0]
    counts = np.zeros((k, k), np.int64)
    for i in range(k):
        for j in range(k):
            total = np.uint64(0)
            for word in range(words.shape[1]):
                total += popcount(words[i, word] & ~words[j, word])
            counts[i, j] = np.int64(total)
    return counts


def _two_valued_duels(X: NDArray[np.float64], best: float, alpha: Vector) -> LeadChances:
    counts = _only_one(_packed(X, best))
    ahead = counts.astype(np.float64)
    if (alpha != 1).any():
        right = np.asarray(best == X, np.float64)
        ahead = np.where(counts > 0, (right * alpha[:, None]).T @ (1 - right), 0.0)
    i, j = np.triu_indices(X.shape[1], 1)
    only_i, only_j = ahead[i, j], ahead[j, i]
    is_open = (only_i > 0) & (only_j > 0)
    fewer, more = np.minimum(only_i, only_j)[is_open], np.maximum(only_i, only_j)[is_open]
    upset = special.betainc(more, fewer, 0.5)
    chance = np.where(only_i > only_j, 1.0, np.where(only_i < only_j, 0.0, 0.5))
    opposite = 1 - chance
    i_leads = (only_i >= only_j)[is_open]
    chance[is_open] = np.where(i_leads, 1 - upset, upset)
    opposite[is_open] = np.where(i_leads, upset, 1 - upset)
    beats = np.full(counts.shape, 0.5)
    beats[i, j], beats[j, i] = chance, opposite
    return LeadChances(beats=beats, better=counts)


@jit
def _row(columns: Any, alpha: Any, slack: float, i: int) -> Any:
    """Model ``i`` against those after it: chances of being ahead and behind, and on how many prompts it is."""
    k, n = columns.shape
    ahead, behind = np.empty(k - i - 1), np.empty(k - i - 1)
    wins, losses = np.zeros(k - i - 1, np.int64), np.zeros(k - i - 1, np.int64)
    d, shapes = np.empty(n), np.empty(n)
    for j in range(i + 1, k):
        m = 0
        for prompt in range(n):
            gap = columns[i, prompt] - columns[j, prompt]
            if abs(gap) > slack:
                d[m] = gap
                shapes[m] = alpha[prompt]
                m += 1
                wins[j - i - 1] += gap > 0.0
                losses[j - i - 1] += gap < 0.0
        ahead[j - i - 1], behind[j - i - 1], _ = both_tails(d[:m], shapes[:m], False)
    return ahead, behind, wins, losses


def moments(X: NDArray[np.float64], alpha: Vector) -> tuple[Vector, Vector]:
    """Mean and standard deviation of each model's weighted mean.

    Args:
        X: ``(n, k)`` finite scores.
        alpha: ``(n,)`` positive.

    Returns:
        ``(k,)`` each; the variance is that of the scores under the mean weights, over ``Σα + 1``.
    """
    if (alpha == alpha[0]).all():
        mean, variance = X.mean(axis=0), X.var(axis=0)
    else:
        share = alpha / alpha.sum()
        mean = share @ X
        variance = share @ (X - mean) ** 2
    constant = X.max(axis=0) == X.min(axis=0)
    mean = np.where(constant, X[0], mean)
    return mean, np.where(constant, 0.0, np.sqrt(variance / (alpha.sum() + 1)))


def quantiles(x: Vector, alpha: Vector, levels: Vector) -> Vector:
    """Quantiles of one model's weighted mean.

    Newton's method on the normal score of the exact distribution function, kept inside a bracket.

    Args:
        x: ``(n,)`` finite scores.
        alpha: ``(n,)`` positive.
        levels: ``(m,)`` in (0, 1).
    """
    values, shapes = _collapsed(x, alpha)
    low, high = float(values[0]), float(values[-1])
    if len(values) == 1:
        return np.full(len(levels), low)
    if len(values) == 2:
        share = special.betaincinv(shapes[1], shapes[0], levels)
        rest = special.betainccinv(shapes[1], shapes[0], 1 - levels)
        return np.asarray(low + (high - low) * np.where(levels <= 0.5, share, rest))
    mean, sd = (float(of[0]) for of in moments(values[:, None], shapes))
    targets = special.ndtri(levels)
    below, above = np.full(len(levels), low), np.full(len(levels), high)
    quantile: Vector = np.clip(mean + sd * targets, low + 0.05 * (mean - low), high - 0.05 * (high - mean))
    moving = np.ones(len(levels), bool)
    for _ in range(MAX_STEPS):
        at = quantile[moving]
        less, more, density = _distribution(values, shapes, at)
        score = np.where(less < more, special.ndtri(less), -special.ndtri(more))
        short = score < targets[moving]
        below[moving], above[moving] = np.where(short, at, below[moving]), np.where(short, above[moving], at)
        slope = density / np.maximum(np.exp(-0.5 * score * score) / np.sqrt(2 * np.pi), np.finfo(float).tiny)
        usable = np.isfinite(score) & np.isfinite(slope) & (slope > 0)
        step = np.divide(targets[moving] - score, slope, out=np.full(len(at), np.inf), where=usable)
        trial, is_stable = at + step, np.abs(step) <= MAX_STEP * np.minimum(at - low, high - at)
        outside = ~is_stable & ~((trial > below[moving]) & (trial < above[moving]))
        trial[outside] = 0.5 * (below[moving] + above[moving])[outside]
        quantile[moving] = trial
        is_stable |= above[moving] - below[moving] <= np.spacing(np.abs(at))
        moving[moving] = ~is_stable
        if not moving.any():
            break
    return quantile


def density(x: Vector, alpha: Vector, at: Vector) -> Vector:
    """Density of one model's weighted mean.

    Args:
        x: ``(n,)`` finite scores, not constant.
        alpha: ``(n,)`` positive.
        at: ``(m,)`` strictly between the least and the largest score.
    """
    values, shapes = _collapsed(x, alpha)
    if len(values) > 2:
        return _distribution(values, shapes, at)[2]
    a, b, width = shapes[1], shapes[0], values[1] - values[0]
    z = (at - values[0]) / width
    return np.asarray(np.exp(special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)) / width)


def distribution(x: Vector, alpha: Vector, at: Vector) -> Vector:
    """Chance that one model's weighted mean is below each of some values.

    Args:
        x: ``(n,)`` finite scores.
        alpha: ``(n,)`` positive.
        at: ``(m,)``.
    """
    return _distribution(*_collapsed(x, alpha), at)[0]


@jit
def _tails_at(values: Any, shapes: Any, at: Any) -> Any:
    below, above, densities, gaps = np.empty(at.size), np.empty(at.size), np.empty(at.size), np.empty(values.size)
    for i in range(at.size):
        for j in range(values.size):
            gaps[j] = values[j] - at[i]
        above[i], below[i], densities[i] = both_tails(gaps, shapes, True)
    return below, above, densities


def _distribution(values: Vector, shapes: Vector, at: Vector) -> tuple[Vector, Vector, Vector]:
    """Chances of being below and above each value, and the density there."""
    below, above, densities = _tails_at(values, shapes, np.ascontiguousarray(at, np.float64))
    return below, above, densities


def _collapsed(x: Vector, alpha: Vector) -> tuple[Vector, Vector]:
    """Distinct scores, ascending, and the summed shapes of the prompts that have them."""
    values, place = np.unique(x, return_inverse=True)
    return values, np.bincount(place, weights=alpha, minlength=len(values)).astype(np.float64)


@jit
def _is_two_valued(X: Any, least: float, most: float) -> Any:
    for prompt in range(X.shape[0]):
        n_between = 0
        for j in range(X.shape[1]):  # without a branch, so that several scores are compared at once
            n_between += (X[prompt, j] != least) & (X[prompt, j] != most)
        if n_between:
            return False
    return True
