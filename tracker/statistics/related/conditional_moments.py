"""Moments of the disagreements of few models, given all row sums and column sums.

Under the null hypothesis the scores of a prompt, given its number right, have the pattern x with probability
proportional to exp(Σⱼ θⱼ xⱼ). All patterns of a few models are enumerated, so that means and covariances within a
prompt are exact. The abilities θ solve the likelihood equations, expected column sum = column sum.

Source: Andersen 1970, "Asymptotic properties of conditional maximum-likelihood estimators" (the conditional likelihood
of the Rasch model).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_ITERATIONS, TOLERANCE = 100, 1e-9
MAX_STEP = 2.0
RIDGE = 1e-6
"""Weight of θ² / 2 in the likelihood: keeps the abilities finite of models whose scores are all equal."""
MIN_EIGENVALUE = 1e-9
"""Least share of the largest eigenvalue of the covariance of the column sums that counts as variance."""
MIN_VARIANCE = 1e-6
"""Smaller variances are rounding errors of 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _PatternClass:
    """Prompts with the same measured models and the same number right.

    Attributes:
        count: number of prompts.
        patterns: ``(m, k)`` float64, the possible scores; 0 where not measured.
        differs: ``(m, n_pairs)`` float64, whether a pattern is a disagreement of a pair with both scores.
    """

    count: float
    patterns: Floats
    differs: Floats

    def probabilities(self, ability: Floats) -> Floats:
        """Return the probability of each pattern, ``(m,)``."""
        logits = self.patterns @ ability
        weights = np.exp(logits - logits.max())
        return np.asarray(weights / weights.sum())


def compute_disagreement_moments(
    measured: Floats, row_sums: Floats, counts: Floats, column_sums: Floats
) -> tuple[Floats, Floats]:
    """Return mean and variance of the disagreements of all pairs, both ``(k, k)``.

    The variance is that given the column sums, of jointly normal disagreements and column sums. Time and memory grow
    with 2ᵏ.

    Args:
        measured: ``(n_rows, k)`` 1 where measured, else 0.
        row_sums: ``(n_rows,)`` number right.
        counts: ``(n_rows,)`` prompts of each row.
        column_sums: ``(k,)`` number right of each model.
    """
    k = measured.shape[1]
    classes = _list_classes(measured, row_sums, counts)
    ability = _fit_abilities(classes, column_sums, k)
    pairs = list(combinations(range(k), 2))
    mean, spread = np.zeros(len(pairs)), np.zeros(len(pairs))
    with_sums, of_sums = np.zeros((len(pairs), k)), np.zeros((k, k))
    for part in classes:
        p = part.probabilities(ability)
        expected, scores = p @ part.differs, p @ part.patterns
        weighted = p[:, None] * part.patterns
        mean += part.count * expected
        spread += part.count * expected * (1 - expected)
        with_sums += part.count * (part.differs.T @ weighted - np.outer(expected, scores))
        of_sums += part.count * (part.patterns.T @ weighted - np.outer(scores, scores))
    inverse = np.linalg.pinv(of_sums, rcond=MIN_EIGENVALUE, hermitian=True)
    variance = spread - np.einsum("ij,jk,ik->i", with_sums, inverse, with_sums)
    variance[variance < MIN_VARIANCE] = 0.0
    return _spread_pairs(mean, pairs, k), _spread_pairs(variance, pairs, k)


def _list_classes(measured: Floats, row_sums: Floats, counts: Floats) -> list[_PatternClass]:
    k = measured.shape[1]
    every = ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(np.float64)
    i, j = np.array(list(combinations(range(k), 2)), dtype=np.int64).reshape(-1, 2).T
    classes = []
    for mask, right, count in zip(measured, row_sums, counts, strict=True):
        patterns = every[(every.sum(axis=1) == right) & (every @ (1 - mask) == 0)]
        differs = (patterns[:, i] != patterns[:, j]) * (mask[i] * mask[j])
        classes.append(_PatternClass(count=float(count), patterns=patterns, differs=differs))
    return classes


def _fit_abilities(classes: list[_PatternClass], column_sums: Floats, k: int) -> Floats:
    """Return the abilities that maximize the conditional likelihood, ``(k,)``, by Newton steps."""
    ability = np.zeros(k)
    for _ in range(MAX_ITERATIONS):
        gradient, curvature = column_sums - RIDGE * ability, RIDGE * np.eye(k)
        for part in classes:
            weighted = part.probabilities(ability)[:, None] * part.patterns
            scores = weighted.sum(axis=0)
            gradient = gradient - part.count * scores
            curvature = curvature + part.count * (part.patterns.T @ weighted - np.outer(scores, scores))
        step = np.linalg.solve(curvature, gradient)
        ability = ability + step * min(1.0, MAX_STEP / max(np.abs(step).max(), MAX_STEP))
        if np.abs(step).max() < TOLERANCE:
            break
    return ability


def _spread_pairs(values: Floats, pairs: list[tuple[int, int]], k: int) -> Floats:
    matrix = np.zeros((k, k))
    for (i, j), value in zip(pairs, values.tolist(), strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix
