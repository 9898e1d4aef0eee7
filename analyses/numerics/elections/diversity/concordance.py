"""How far tasks disagree on the order of models: Kendall's coefficient of concordance, reversed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import ExactScores

PAIR_BLOCK = 1 << 17
"""Pairs of models whose order by each task is held at a time."""


@dataclass(frozen=True, kw_only=True)
class Diversity:
    """Reversed Kendall's W of a table of ranks, in [0, 1], 0 = all tasks give the same ranking.

    Attributes:
        raw: 1 − 12 Σ (R − mean R)² / (n² (m³ − m)), R a model's sum of ranks: the paper's. A task that ties models
            counts as disagreeing, up to 1 where every task ties all. One task has 0 by definition.
        tie_corrected: 12 Σ … over the largest that these ties allow; NaN where every task ties all models.
        n_tasks, n_models: of the table.
    """

    raw: float
    tie_corrected: float
    n_tasks: int
    n_models: int


def task_ranks(scores: ExactScores) -> NDArray[np.float64]:
    """``(n_tasks, n_models)`` rank of each model by each task; ties share the mean of their ranks, decided exactly.

    Args:
        scores: complete.
    """
    return np.stack([average_ranks(row) for row in scores.numerators])


def diversity(scores: ExactScores) -> Diversity:
    """How far the tasks disagree.

    Args:
        scores: complete, at least 1 task and 2 models.
    """
    ranks = task_ranks(scores)
    n, m = ranks.shape
    doubled = np.rint(2 * ranks).astype(np.int64)
    # Sums of doubled ranks less their mean are integers, and so is all that follows.
    deviations = doubled.sum(axis=0) - n * (m + 1)
    spread = 3 * sum(deviation * deviation for deviation in deviations.tolist())
    max_spread = n * n * (m**3 - m)
    ties = sum(t**3 - t for row in doubled for t in np.unique(row, return_counts=True)[1].tolist())
    allowed = max_spread - n * ties
    return Diversity(
        raw=float(1 - Fraction(spread, max_spread)) if n > 1 else 0.0,
        tie_corrected=float(1 - Fraction(spread, allowed)) if allowed else float("nan"),
        n_tasks=n,
        n_models=m,
    )


def task_distances(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(n_tasks, n_tasks)`` share of the pairs of models, among those that both tasks order, on which they differ.

    NaN where two tasks order no pair in common; 0.5 is what unrelated tasks have.

    Args:
        ranks: ``(n_tasks, n_models)``, or scores; NaN where a model was not measured.
    """
    n, m = ranks.shape
    i, j = np.triu_indices(m, 1)
    ordered, agreement = np.zeros((n, n)), np.zeros((n, n))
    for start in range(0, len(i), PAIR_BLOCK):
        some = slice(start, start + PAIR_BLOCK)
        signs = np.nan_to_num(np.sign(ranks[:, i[some]] - ranks[:, j[some]])).astype(np.float32)
        agreement += signs @ signs.T
        if signs.all():
            ordered += signs.shape[1]
        else:
            np.abs(signs, out=signs)
            ordered += signs @ signs.T
    return np.asarray(np.divide(ordered - agreement, 2 * ordered, out=np.full((n, n), np.nan), where=ordered > 0))
