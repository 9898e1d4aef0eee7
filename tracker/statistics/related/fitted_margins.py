"""The binary table that row sums and column sums predict.

The logistic fit with one ability per model and one difficulty per prompt has the largest entropy among all tables of
probabilities with these sums. Its probabilities approximate the means of the cells over all binary tables with the same
sums, which is the null hypothesis of independent models.

Source: Rasch 1960; Barvinok 2010, "What does a random contingency table look like?", section 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_ITERATIONS = 200
ROW_TOLERANCE, COLUMN_TOLERANCE = 1e-6, 1e-8
"""Largest error of the sum of a row, and of a column as a share of the prompts."""
MAX_STEP, MAX_LOGIT = 2.0, 35.0
MAX_COUPLING_ITERATIONS, COUPLING_TOLERANCE = 80, 1e-9

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedMargins:
    """Fitted probabilities, one row for all prompts with the same measured models and the same number right.

    Attributes:
        counts: ``(m,)`` prompts of each row.
        row_sums: ``(m,)`` number of models right.
        measured: ``(m, k)`` float64, 1 where measured, else 0.
        probability: ``(m, k)`` that the score is 1; 0 where not measured.
        coupling: ``(m, k)``; within a row, the covariance of the scores of models a and b is minus the product of
            their couplings, since the sum of the row is fixed.
    """

    counts: Floats
    row_sums: Floats
    measured: Floats
    probability: Floats
    coupling: Floats


def fit_margins(Q: Floats) -> FittedMargins:
    """Fit the probabilities of a table's ones to its row sums and column sums.

    A model with equal scores on all prompts that tell models apart keeps these scores; so does a prompt with equal
    scores from all its models.

    Args:
        Q: ``(n, k)`` scores of 0 and 1, NaN = missing.
    """
    is_measured = ~np.isnan(Q)
    right = np.where(is_measured, Q, 0.0)
    sums = right.sum(axis=1)
    key = np.concatenate([np.packbits(is_measured, axis=1), sums.astype("<u4")[:, None].view(np.uint8)], axis=1)
    _, first, counts = np.unique(key, axis=0, return_index=True, return_counts=True)
    measured, row_sums = is_measured[first].astype(np.float64), sums[first]
    probability = _fit(measured, row_sums, counts.astype(np.float64), right.sum(axis=0))
    return FittedMargins(
        counts=counts.astype(np.float64),
        row_sums=row_sums,
        measured=measured,
        probability=probability,
        coupling=_couple(probability * (1 - probability) * measured),
    )


def _fit(measured: Floats, row_sums: Floats, counts: Floats, column_sums: Floats) -> Floats:
    """Return the fitted probabilities by Newton steps, of all difficulties, then of all abilities."""
    is_open = (row_sums > 0) & (row_sums < measured.sum(axis=1))
    closed = np.where(row_sums > 0, 1.0, 0.0)[:, None] * measured
    cells = measured * is_open[:, None]
    left = column_sums - counts @ (closed * ~is_open[:, None])
    possible = counts @ cells
    varies = (left > 0) & (left < possible)
    ability = np.where(varies, 0.0, np.where(left > 0, MAX_LOGIT, -MAX_LOGIT))
    difficulty = np.zeros(len(measured))

    def probabilities() -> Floats:
        logits = np.clip(ability - difficulty[:, None], -MAX_LOGIT, MAX_LOGIT)
        return np.asarray(cells / (1 + np.exp(-logits)))

    for _ in range(MAX_ITERATIONS):
        p = probabilities()
        row_error = np.where(is_open, p.sum(axis=1) - row_sums, 0.0)
        difficulty += _newton_step(row_error, (p * (1 - p)).sum(axis=1))
        p = probabilities()
        column_error = np.where(varies, left - counts @ p, 0.0)
        ability += _newton_step(column_error, counts @ (p * (1 - p)))
        if (
            np.abs(row_error).max(initial=0.0) < ROW_TOLERANCE
            and np.abs(column_error).max(initial=0.0) < COLUMN_TOLERANCE * counts.sum()
        ):
            break
    return np.where(is_open[:, None], probabilities(), closed)


def _newton_step(error: Floats, slope: Floats) -> Floats:
    return np.asarray(np.clip(error / np.maximum(slope, np.finfo(float).tiny), -MAX_STEP, MAX_STEP))


def _couple(variance: Floats) -> Floats:
    """Return couplings c whose covariances −c_a c_b in a row of fixed sum add up to minus each variance.

    That is c_a (Σ c − c_a) = v_a, solved by damped fixed-point steps. It is exact for two models, and for any number of
    equal ones.

    Source: Deville and Tillé 2005, "Variance approximation under balanced sampling", section 4.
    """
    total = variance.sum(axis=1, keepdims=True)
    coupling = variance / np.sqrt(np.maximum(total, np.finfo(float).tiny))
    for _ in range(MAX_COUPLING_ITERATIONS):
        rest = coupling.sum(axis=1, keepdims=True) - coupling
        step = (np.divide(variance, rest, out=np.zeros_like(rest), where=rest > 0) - coupling) / 2
        coupling = coupling + step
        if np.abs(step).max(initial=0.0) < COUPLING_TOLERANCE:
            break
    return np.asarray(coupling)
