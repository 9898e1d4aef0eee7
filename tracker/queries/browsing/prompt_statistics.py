"""Difficulty, discrimination and disagreement of prompts, and lists of prompts by them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.queries.performance import PerformanceMatrix


@dataclass(frozen=True, kw_only=True)
class PromptStatistics:
    """Statistics of each prompt over the models; NaN where undefined.

    Attributes:
        prompt_ids: ``(n_prompts,)`` int64.
        tasks: ``(n_prompts,)`` task names.
        mean: ``(n_prompts,)`` mean score over the models that have one.
        spread: ``(n_prompts,)`` standard deviation of the scores: how far models disagree.
        discrimination: ``(n_prompts,)`` correlation of a prompt's scores with the models' means over all other prompts.
        n_models: ``(n_prompts,)`` models with a score.
    """

    prompt_ids: NDArray[np.int64]
    tasks: NDArray[np.str_]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    discrimination: NDArray[np.float64]
    n_models: NDArray[np.int64]


def compute_prompt_statistics(scores: PerformanceMatrix) -> PromptStatistics:
    """Compute the statistics of every prompt of a matrix."""
    Q = scores.Q
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # prompts without scores are NaN
        mean, spread = np.nanmean(Q, axis=1), np.nanstd(Q, axis=1)
    return PromptStatistics(
        prompt_ids=scores.prompt_ids,
        tasks=scores.tasks,
        mean=mean,
        spread=spread,
        discrimination=compute_discrimination(Q),
        n_models=np.sum(~np.isnan(Q), axis=1),
    )


def compute_discrimination(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the item-rest correlation of each prompt: of its scores with the models' means over all other prompts.

    Args:
        Q: ``(n_prompts, n_models)`` scores, NaN = missing.

    Returns:
        ``(n_prompts,)``; NaN where all scores or all means are equal, or fewer than three models have a score.
    """
    known = ~np.isnan(Q)
    filled = np.where(known, Q, 0.0)
    counts = known.sum(axis=0)[None, :] - known
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = (filled.sum(axis=0)[None, :] - filled) / counts
        is_used = known & (counts > 0)
        n = is_used.sum(axis=1)
        x, y = np.where(is_used, Q, 0.0), np.where(is_used, rest, 0.0)
        x = np.where(is_used, x - (x.sum(axis=1) / n)[:, None], 0.0)
        y = np.where(is_used, y - (y.sum(axis=1) / n)[:, None], 0.0)
        variances = (x * x).sum(axis=1) * (y * y).sum(axis=1)
        correlation = (x * y).sum(axis=1) / np.sqrt(variances)
    return np.where((n >= 3) & (variances > 1e-24), correlation, np.nan)
