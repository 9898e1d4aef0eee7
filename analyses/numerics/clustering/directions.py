"""Rows as points on the sphere: which of them point the same way, and how much weight each direction has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit

INFINITE = 0x7FF0_0000_0000_0000
"""The bits of infinity; those of every finite number without its sign are less, those of NaN are more."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class DirectionRows:
    """Which rows of a table have the same direction; directions are numbered in the order of their first rows.

    Attributes:
        of_row: ``(n,)`` int64 direction of each row; -1 for rows of zeros.
        first_rows: ``(m,)`` int64 first row of each direction.
        largest: ``(n,)`` float64 largest absolute entry of each row.
    """

    of_row: NDArray[np.int64]
    first_rows: NDArray[np.int64]
    largest: NDArray[np.float64]


@jit
def _largest_bits(bits: Any, largest: Any) -> None:
    """The bits of each row's largest absolute entry; without the sign, bits are in the order of the numbers."""
    for i in range(bits.shape[0]):
        most = INT(0)
        for j in range(bits.shape[1]):
            most = max(most, bits[i, j] & INT(0x7FFF_FFFF_FFFF_FFFF))
        largest[i] = most


@jit
def _number_directions(X: Any, largest: Any, factors: Any, slots: Any, of_row: Any, first_rows: Any) -> Any:
    """Find each row's direction in a hash table with linear probing.

    Args:
        X: ``(n, k)`` finite.
        largest: ``(n,)`` largest absolute entries.
        factors: ``(k,)`` random odd uint64; the hash of a row is the sum of its folded bits times these.
        slots: a power of two of int64, all -1, more than there are rows.
        of_row, first_rows: filled; see `DirectionRows`.

    Returns:
        The number of directions.
    """
    n, k = X.shape
    scaled, hashes = np.empty(k), np.empty(n, np.uint64)
    bits = scaled.view(np.uint64)
    half, last_slot, n_directions = np.uint64(32), np.uint64(slots.size - 1), INT(0)
    for i in range(n):
        if largest[i] == 0:  # no direction
            of_row[i] = -1
            continue
        for j in range(k):
            scaled[j] = X[i, j] / largest[i] + 0.0  # no negative zeros
        hashed = np.uint64(0)
        for j in range(k):  # the low bits of 0 and 1 are equal, so the high ones are folded into them
            hashed += (bits[j] ^ (bits[j] >> half)) * factors[j]
        hashed ^= hashed >> half
        slot = hashed & last_slot
        while slots[slot] >= 0:  # a full slot: this direction, or another one
            g = slots[slot]
            if hashes[g] == hashed:
                f, j = first_rows[g], 0
                while j < k and X[f, j] / largest[f] == scaled[j]:
                    j += 1
                if j == k:
                    break
            slot = (slot + np.uint64(1)) & last_slot
        if slots[slot] < 0:  # a new direction
            slots[slot], hashes[n_directions], first_rows[n_directions] = n_directions, hashed, i
            n_directions += 1
        of_row[i] = slots[slot]
    return n_directions


def find_directions(X: NDArray[np.float64]) -> DirectionRows:
    """Which rows of a table have the same direction.

    Args:
        X: ``(n, k)`` finite numbers, C-contiguous.

    Raises:
        ValueError: an entry is not finite.
    """
    n, k = X.shape
    bits = np.empty(n, dtype=np.int64)
    _largest_bits(X.view(np.int64), bits)
    if bits.max(initial=0) >= INFINITE:
        raise ValueError("rows must hold finite numbers only")
    largest, of_row, first_rows = bits.view(np.float64), np.empty(n, np.int64), np.empty(n, np.int64)
    factors = np.random.default_rng(0).integers(2**63, size=k, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    slots = np.full(2 << n.bit_length(), -1, dtype=np.int64)
    n_directions = _number_directions(X, largest, factors, slots, of_row, first_rows)
    return DirectionRows(of_row=of_row, first_rows=first_rows[:n_directions].copy(), largest=largest)


def group_directions(X: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> Directions:
    """The distinct directions of the rows of a table.

    Args:
        X: ``(n, k)`` finite numbers.
        weights: ``(n,)`` positive; None weighs every row 1.

    Raises:
        ValueError: an entry is not finite, or a weight is not positive and finite.
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    w = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    distinct = find_directions(X)
    if not (np.isfinite(w) & (w > 0)).all():
        raise ValueError("weights must be positive and finite")
    scaled = X[distinct.first_rows] / distinct.largest[distinct.first_rows, None] + 0.0  # no negative zeros
    binary = bool(((scaled == 0) | (scaled == 1)).all())
    key = np.packbits(scaled == 1, axis=1) if binary else scaled.view(np.uint8)
    words = np.ascontiguousarray(np.pad(key, ((0, 0), (0, -key.shape[1] % 8)))).view(np.uint64)
    opaque = words[:, 0] if words.shape[1] == 1 else words.view(np.dtype((np.void, 8 * words.shape[1]))).ravel()
    sorting = np.argsort(opaque)
    rank = np.empty(sorting.size + 1, dtype=np.int64)
    rank[sorting], rank[-1] = np.arange(sorting.size), -1
    of_row = rank[distinct.of_row]
    has_direction = of_row >= 0
    units = scaled[sorting]
    units /= np.sqrt((units * units).sum(axis=1))[:, None]
    return Directions(
        units=units,
        of_row=of_row,
        weights=np.bincount(of_row[has_direction], weights=w[has_direction], minlength=sorting.size).astype(np.float64),
        first_rows=distinct.first_rows[sorting],
    )
