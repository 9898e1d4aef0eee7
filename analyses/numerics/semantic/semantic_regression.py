"""For each prompt, the line of performance similarity on semantic similarity over all other prompts.

Both similarities are products of rows, so that every sum over partners is a product of small matrices: with unit
vectors ``e`` and performance rows ``u``, ``sum_j (u_i . u_j) (e_i . e_j) = u_i' (U' E) e_i``. No table of all pairs
is made. The prompt's similarity to itself is taken out of each sum afterwards. Where the line has an intercept, rows
are centred first: it moves all similarities of one prompt by the same amount, and spares the sums their cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

Floats = NDArray[np.float64]

CONSTANT = 1e-12
"""A similarity whose sum of squares around its mean is below this share of the sum it was found from does not vary."""
FLAT = 1e-20
"""Neither does one with a variance below this; similarities are of the order of 1."""
PERFECT = 1e-12
"""Least unexplained share of the variance: closer to a perfect fit rounding decides."""
SQUARE_ROWS = 256
"""Rows of similarities held at a time where they must be squared one by one."""


def unit_rows(rows: NDArray[Any]) -> Floats:
    """Rows of length 1; rows of zeros stay."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0).astype(np.float64)
    scaled = np.divide(rows, largest, out=np.zeros(rows.shape), where=largest > 0)
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return np.asarray(np.divide(scaled, norms, out=scaled, where=norms > 0))


def performance_rows(Q: Floats, similarity: str) -> Floats:
    """Rows whose products are the similarities of performance vectors.

    Args:
        Q: ``(n, k)`` scores.
        similarity: "cosine" (zero rows stay zero), or "hamming", the share of models with the same score, for
            scores of 0 and 1.

    Returns:
        ``(n, k)`` or, for Hamming, ``(n, k + 1)``.
    """
    if similarity == "cosine":
        return unit_rows(Q)
    n, k = Q.shape
    return np.column_stack([(2 * Q - 1) / np.sqrt(2 * k), np.full(n, np.sqrt(0.5))])


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """The embeddings' part of the sums.

    Attributes:
        rows: ``(n, d)`` unit vectors.
        centred: the same less their weighted mean; as they are for a line through the origin.
        weights: ``(n,)`` of partners, 0 for prompts that are none.
        intercept: whether the line has one.
        products: ``(n,)`` of each row with its centred self.
        squares: ``(n,)`` weighted sum over all prompts of squared similarities.
    """

    rows: Floats
    centred: Floats
    weights: Floats
    intercept: bool
    products: Floats
    squares: Floats

    @classmethod
    def of(cls, E: NDArray[Any], weights: Floats, *, intercept: bool) -> Meaning:
        """Prepare embeddings.

        Args:
            E: ``(n, d)`` vectors, none of them zero.
            weights: ``(n,)``, some positive.
            intercept: whether the line has one.
        """
        rows = unit_rows(E)
        centred = rows - weights @ rows / weights.sum() if intercept else rows
        if rows.shape[1] > len(rows):
            basis = np.linalg.qr(centred.T).Q
            rows, centred = rows @ basis, centred @ basis
        gram = centred.T @ (weights[:, None] * centred)
        return cls(
            rows=rows,
            centred=centred,
            weights=weights,
            intercept=intercept,
            products=np.einsum("ij,ij->i", rows, centred),
            squares=np.einsum("ij,ij->i", rows @ gram, rows),
        )

    def squares_under(self, weights: Floats) -> Floats:
        """Weighted sums of squared similarities under other weights.

        Args:
            weights: ``(n, b)``, one column for each set of them.

        Returns:
            ``(n, b)``.
        """
        squares = np.repeat(self.squares[:, None], weights.shape[1], axis=1)
        changed = np.flatnonzero((weights != self.weights[:, None]).any(axis=0))
        if changed.size:
            for start in range(0, len(self.rows), SQUARE_ROWS):
                block = slice(start, start + SQUARE_ROWS)
                similarities = self.rows[block] @ self.centred.T
                np.square(similarities, out=similarities)
                squares[block, changed] = similarities @ weights[:, changed]
        return squares


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """A line for each prompt of each of ``b`` tables; NaN for prompts without one.

    Attributes:
        slope, stderr, t: ``(n, b)``.
        pvalue: ``(n, b)``, two-sided, of Student's t.
        spread: ``(n, b)`` standard deviation of performance similarity over that of semantic similarity: the slope
            of a perfect fit.
    """

    slope: Floats
    stderr: Floats
    t: Floats
    pvalue: Floats
    spread: Floats


def fit_lines(meaning: Meaning, U: Floats, weights: Floats, squares: Floats) -> Lines:
    """The lines of several tables of performance rows against the same embeddings.

    A prompt has no line if its weight is 0, or if either similarity is the same for all its partners. A fit that leaves
    less than `PERFECT` of the variance unexplained counts as leaving that much.

    Source: weighted least squares with analytic weights; degrees of freedom are the partners of positive weight less
    the coefficients.

    Args:
        meaning: ``n`` prompts.
        U: ``(n, b, k)`` performance rows of ``b`` tables.
        weights: ``(n, b)`` of partners; 0 for those that are none.
        squares: ``(n, b)`` of `Meaning.squares_under` them.
    """
    n, b, k = U.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        total = weights.sum(axis=0)
        mean = np.einsum("nb,nbk->bk", weights, U) / total[:, None]
    V = U - mean if meaning.intercept else U
    weighted = V if (weights == 1).all() else weights[:, :, None] * V
    squares_own = np.einsum("nbk,nbk->nb", U, V)
    across = meaning.rows @ (meaning.centred.T @ weighted.reshape(n, b * k))
    xy = np.einsum("nbk,nbk->nb", across.reshape(n, b, k), U)
    del across  # each of these arrays is as large as the tables
    gram = V.transpose(1, 2, 0) @ weighted.transpose(1, 0, 2)
    del V, weighted
    by_table = U.transpose(1, 0, 2)
    squares_y = np.einsum("bnk,bnk->nb", by_table @ gram, by_table)
    products = meaning.products[:, None]
    xx = squares - weights * products**2
    xy -= weights * products * squares_own
    yy = squares_y - weights * squares_own**2
    rest = total - weights
    with np.errstate(divide="ignore", invalid="ignore"):
        if meaning.intercept:
            sum_x = meaning.rows @ (meaning.centred.T @ weights) - weights * products
            sum_y = -weights * squares_own
            xx -= sum_x**2 / rest
            xy -= sum_x * sum_y / rest
            yy -= sum_y**2 / rest
        freedom = (weights > 0).sum(axis=0) - (3 if meaning.intercept else 2)
        has_line = (weights > 0) & (freedom > 0)
        has_line &= xx > np.maximum(CONSTANT * squares, FLAT * rest)
        has_line &= yy > np.maximum(CONSTANT * squares_y, FLAT * rest)
        unexplained = np.where(has_line, np.maximum(1 - xy / xx * (xy / yy), PERFECT), np.nan)
        slope = np.where(has_line, xy / xx, np.nan)
        stderr = np.sqrt(unexplained * yy / xx / freedom)
        return Lines(
            slope=slope,
            stderr=stderr,
            t=slope / stderr,
            pvalue=betainc(np.maximum(freedom, 1) / 2, 0.5, unexplained),
            spread=np.sqrt(np.where(has_line, yy / xx, np.nan)),
        )
