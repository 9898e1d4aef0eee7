"""Differences between models: by the difficulty of prompts, and between each two models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.ranking import TIE_TOLERANCE


@dataclass(frozen=True, kw_only=True)
class ByDifficulty:
    """Means of models over prompts of similar difficulty.

    Attributes:
        means: ``(n_models, n_bins)`` mean score; NaN if a model has none of a bin's prompts.
        overall: ``(n_bins,)`` mean over its prompts of the prompt's mean over all models.
        edges: ``(n_bins + 1,)`` positions in the order of difficulty where bins begin and end.
    """

    means: NDArray[np.float64]
    overall: NDArray[np.float64]
    edges: NDArray[np.intp]


def bin_by_difficulty(Q: NDArray[np.float64], n_bins: int) -> ByDifficulty:
    """Compute means over prompts sorted by the mean of all models and cut into bins of similar size.

    Prompts with equal means stay in the order of the rows. The lowest mean comes first. With fewer prompts than bins,
    each prompt has a separate bin.

    Args:
        Q: ``(n_prompts, n_models)`` scores, NaN = missing; each row and each column has a score.
        n_bins: maximum number of bins.
    """
    difficulty = np.nanmean(Q, axis=1)
    order = np.argsort(difficulty, kind="stable")
    count = min(n_bins, len(Q))
    edges = np.round(np.linspace(0, len(Q), count + 1)).astype(np.intp)
    is_measured = ~np.isnan(Q)[order]
    sums = np.add.reduceat(np.where(is_measured, Q[order], 0.0), edges[:-1], axis=0)
    counts = np.add.reduceat(is_measured.astype(np.float64), edges[:-1], axis=0)
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    overall = np.add.reduceat(difficulty[order], edges[:-1]) / np.diff(edges)
    return ByDifficulty(means=means.T, overall=overall, edges=edges)


def compute_agreement(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of prompts on which two models have the same score, ``(n_models, n_models)``.

    Only prompts with scores from both models are used; NaN without any.

    Args:
        Q: ``(n_prompts, n_models)`` scores, NaN = missing; others are 0 or 1.
    """
    is_measured = (~np.isnan(Q)).astype(np.float64)
    ones = np.where(Q == 1, 1.0, 0.0)
    zeros = is_measured - ones
    both = is_measured.T @ is_measured
    same = ones.T @ ones + zeros.T @ zeros
    return np.divide(same, both, out=np.full_like(both, np.nan), where=both > 0)


def compute_correlations(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Pearson correlation of the scores of each two models, ``(n_models, n_models)``, over their common
    prompts.

    NaN with fewer than two prompts, for a model with constant scores on them, and for scores too large to be squared.

    Args:
        Q: ``(n_prompts, n_models)`` scores, NaN = missing.
    """
    is_measured = (~np.isnan(Q)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        centred = np.nan_to_num(Q - np.nanmean(Q, axis=0))  # smaller numbers give more exact sums of squares
        n = is_measured.T @ is_measured
        sums = centred.T @ is_measured  # of the row's model, over the prompts that the column's model has too
        squares = (centred**2).T @ is_measured
        spread = squares - sums**2 / n
        covered = (centred.T @ centred - sums * sums.T / n) / np.sqrt(spread * spread.T)
    flat = (spread <= TIE_TOLERANCE * squares) | (n < 2)
    return np.where(flat | flat.T, np.nan, np.clip(covered, -1.0, 1.0))
