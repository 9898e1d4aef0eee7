"""Rows as points on the sphere: which of them point the same way, and how much weight each direction has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Directions:
    """The distinct directions of a table's rows, in an order that does not depend on the order of the rows.

    Two rows have one direction where they are the same after division by their largest absolute entry. A correctly
    rounded quotient depends on the ratio alone, so rows that are exact multiples of one another always are.

    Attributes:
        units: ``(m, k)`` float64 vectors of length 1.
        of_row: ``(n,)`` int64 direction of each row; -1 for rows of zeros, which have none.
        weights: ``(m,)`` float64 sum of the weights of the rows behind each.
        first_rows: ``(m,)`` int64 smallest row number behind each.
    """

    units: NDArray[np.float64]
    of_row: NDArray[np.int64]
    weights: NDArray[np.float64]
    first_rows: NDArray[np.int64]

    @property
    def n_distinct(self) -> int:
        """Number of directions."""
        return int(self.units.shape[0])

    def restrict(self, kept: NDArray[np.bool_]) -> Directions:
        """Some of the directions; rows of the others have none.

        Args:
            kept: ``(m,)`` which.
        """
        if kept.all():
            return self
        number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        return Directions(
            units=self.units[kept],
            of_row=number[self.of_row],
            weights=self.weights[kept],
            first_rows=self.first_rows[kept],
        )


def group_directions(X: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> Directions:
    """The distinct directions of the rows of a table.

    Args:
        X: ``(n, k)`` finite numbers.
        weights: ``(n,)`` positive; None weighs every row 1.

    Raises:
        ValueError: an entry is not finite, or a weight is not positive and finite.
    """
    X = np.asarray(X, dtype=np.float64)
    w = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    if not np.isfinite(X).all():
        raise ValueError("rows must hold finite numbers only")
    if not (np.isfinite(w) & (w > 0)).all():
        raise ValueError("weights must be positive and finite")
    largest = np.abs(X).max(axis=1, initial=0.0)
    rows = np.flatnonzero(largest > 0)
    scaled = np.ascontiguousarray(X[rows] / largest[rows, None]) + 0.0  # no negative zeros
    binary = bool(((scaled == 0) | (scaled == 1)).all())
    key = np.packbits(scaled == 1, axis=1) if binary else scaled.view(np.uint8)
    words = np.ascontiguousarray(np.pad(key, ((0, 0), (0, -key.shape[1] % 8)))).view(np.uint64)
    if words.shape[1] == 1:
        _, first, inverse = np.unique(words[:, 0], return_index=True, return_inverse=True)
    else:
        opaque = words.view(np.dtype((np.void, 8 * words.shape[1]))).ravel()
        _, first, inverse = np.unique(opaque, return_index=True, return_inverse=True)
    of_row = np.full(X.shape[0], -1, dtype=np.int64)
    of_row[rows] = inverse
    units = scaled[first]
    units /= np.sqrt((units * units).sum(axis=1))[:, None]
    return Directions(
        units=np.ascontiguousarray(units),
        of_row=of_row,
        weights=np.bincount(inverse, weights=w[rows], minlength=first.size).astype(np.float64),
        first_rows=rows[first],
    )
