"""Pairs of prompts by semantic similarity: the nearest of a few, and the average over all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.semantic.semantic_regression import SQUARE_ROWS, Floats
from tracker.statistics.ranking import TIE_TOLERANCE

N_BINS = 400
"""Of semantic similarity between -1 and 1."""
MAX_PAIRS = 2**25
"""Beyond so many pairs, those of every second, third, ... prompt with all others stand for all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Partners:
    """The semantically most similar partners of a few prompts, nearest first.

    Attributes:
        places: ``(m, n_nearest)`` rows of the partners.
        semantic, performance: ``(m, n_nearest)`` similarities.
        contribution: ``(m, n_nearest)`` shares of the sum that is the slope's numerator; NaN where that is 0.
    """

    places: NDArray[np.int64]
    semantic: Floats
    performance: Floats
    contribution: Floats


def find_nearest_partners(
    prompts: NDArray[np.int64], rows: Floats, U: Floats, weights: Floats, n_nearest: int, *, intercept: bool
) -> Partners:
    """The nearest partners of some prompts, among all others.

    Args:
        prompts: ``(m,)`` rows to look at.
        rows: ``(n, d)`` unit vectors of meaning.
        U: ``(n, k)`` performance rows.
        weights: ``(n,)`` of partners.
        n_nearest: how many, fewer than ``n``.
        intercept: whether the lines have one.
    """
    x, y = rows[prompts] @ rows.T, U[prompts] @ U.T
    w = np.tile(weights, (len(prompts), 1))
    w[np.arange(len(prompts)), prompts] = 0.0
    means = [(w * s).sum(axis=1, keepdims=True) / w.sum(axis=1, keepdims=True) * intercept for s in (x, y)]
    parts = w * (x - means[0]) * (y - means[1])
    total, size = parts.sum(axis=1, keepdims=True), np.abs(parts).sum(axis=1, keepdims=True)
    parts = np.divide(parts, total, out=np.full_like(parts, np.nan), where=np.abs(total) > TIE_TOLERANCE * size)
    ranked = np.round(x / TIE_TOLERANCE) * TIE_TOLERANCE
    ranked[np.arange(len(prompts)), prompts] = -np.inf
    places = np.argsort(-ranked, axis=1, kind="stable")[:, :n_nearest]
    of_most_one = (np.minimum(x, 1.0), np.minimum(y, 1.0), parts)  # rounding can take a similarity past 1
    semantic, performance, contribution = (np.take_along_axis(values, places, axis=1) for values in of_most_one)
    return Partners(places=places, semantic=semantic, performance=performance, contribution=contribution)


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Similarity of performance on pairs of prompts, by the pairs' semantic similarity.

    Attributes:
        edges: ``(m + 1,)`` of semantic similarity.
        share: ``(m,)`` of the pairs' weight.
        excess: ``(m,)`` mean performance similarity of a prompt and its partners less that prompt's mean over all
            partners; NaN where there is no pair.
        n_pairs: ordered pairs behind it all.
    """

    edges: Floats
    share: Floats
    excess: Floats
    n_pairs: int


def bin_similarities(rows: Floats, U: Floats, weights: Floats) -> Curve:
    """Performance similarity in narrow bins of semantic similarity, relative to each prompt's own mean as its line is.

    Each pair weighs the product of its two weights.

    Args:
        rows: ``(n, d)`` unit vectors of meaning.
        U: ``(n, k)`` performance rows.
        weights: ``(n,)``.
    """
    n = len(rows)
    usual = (U @ (weights @ U) - weights * np.einsum("ij,ij->i", U, U)) / (weights.sum() - weights)
    looked_at = np.arange(0, n, -(-n * n // MAX_PAIRS))
    mass, sums = np.zeros(N_BINS), np.zeros(N_BINS)
    for start in range(0, len(looked_at), SQUARE_ROWS):
        block = looked_at[start : start + SQUARE_ROWS]
        place = np.clip((rows[block] @ rows.T + 1) * (N_BINS / 2), 0, N_BINS - 1).astype(np.intp).ravel()
        pairs = weights[block, None] * weights
        pairs[np.arange(len(block)), block] = 0.0
        mass += np.bincount(place, weights=pairs.ravel(), minlength=N_BINS)
        excess = U[block] @ U.T - usual[block, None]
        sums += np.bincount(place, weights=(pairs * excess).ravel(), minlength=N_BINS)
    return Curve(
        edges=np.linspace(-1, 1, N_BINS + 1),
        share=mass / mass.sum(),
        excess=np.divide(sums, mass, out=np.full(N_BINS, np.nan), where=mass > 0),
        n_pairs=len(looked_at) * (n - 1),
    )
