"""The rows of a table in groups of one direction, in which they are ordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.directions import find_directions
from tracker.statistics.jit import jit, sum_kernel


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """The rows of a table in groups of one direction.

    Attributes:
        units: ``(m, k)`` float64 of length 1; zeros for rows of zeros. In the order of their similarity to all rows
            together, so that those that come early are neighbours; nothing else depends on it.
        group: ``(n,)`` int64, which of them each row has.
        members: ``(n,)`` int64, the rows of each group in ascending order, group after group.
        starts: ``(m + 1,)`` int64, where each group begins in ``members``.
        n_zero: rows of zeros.
        is_nonnegative: whether no number is below 0, so that similarities are not either.
        is_binary: whether the numbers of each row that are not 0 are equal and positive.
    """

    units: NDArray[np.float64]
    group: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    n_zero: int
    is_nonnegative: bool
    is_binary: bool

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.group.size

    def next_places(self, start: int) -> NDArray[np.int64]:
        """``(m,)`` where the first row of each group stands in ``members``, the start being taken."""
        first = self.starts[:-1]
        return np.asarray(first + (self.members[first] == start))


@sum_kernel
def dot(a: Any, b: Any) -> Any:
    """The scalar product, in the precision of both."""
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@sum_kernel
def row_dot(matrix: Any, i: Any, vector: Any) -> Any:
    """The scalar product of a row with a vector; a view of the row would cost as much as a short product."""
    total = matrix.dtype.type(0)
    for j in range(vector.size):
        total += matrix[i, j] * vector[j]
    return total


@jit
def go_on(g: int, start: int, members: Any, starts: Any, at: Any) -> Any:
    """Turn to a group's next row, the start being taken already.

    Returns:
        Whether there is one.
    """
    at[g] += 1
    if at[g] < starts[g + 1] and members[at[g]] == start:
        at[g] += 1
    return at[g] < starts[g + 1]


@jit
def _scale(row: Any, largest: float, unit: Any) -> None:
    """Bring a row to length 1: divided by its largest entry, so that multiples agree, and then by its length."""
    for j in range(row.size):
        unit[j] = row[j] / largest + 0.0  # no negative zeros
    length = np.sqrt(dot(unit, unit))
    for j in range(row.size):
        unit[j] /= length


@jit
def _fill_units(X: Any, largest: Any, first_rows: Any, units: Any) -> Any:
    """Fill the unit vectors; zeros for a row of zeros.

    Returns:
        Whether no number is below 0, and whether those of each row that are not 0 are equal and positive.
    """
    is_nonnegative, is_binary = True, True
    for g in range(first_rows.size):
        row, most = X[first_rows[g]], largest[first_rows[g]]
        if most == 0:
            units[g] = 0.0
            continue
        _scale(row, most, units[g])
        for j in range(row.size):
            is_nonnegative &= row[j] >= 0
            is_binary &= (row[j] == 0) | (row[j] == most)
    return is_nonnegative, is_binary


@jit
def _similarity_to_all(units: Any, sizes: Any, similarity: Any) -> None:
    """The scalar product of each direction with the sum of the unit vectors of all rows."""
    m, k = units.shape
    total = np.zeros(k)
    for g in range(m):
        for j in range(k):
            total[j] += sizes[g] * units[g, j]
    for g in range(m):
        similarity[g] = dot(units[g], total)


@jit
def _reorder(units: Any, sorting: Any) -> None:
    """Bring the rows into an order, without a copy of them all."""
    is_done, kept = np.zeros(sorting.size, np.bool_), np.empty(units.shape[1])
    for first in range(sorting.size):
        if is_done[first]:
            continue
        kept[:] = units[first]
        i = first
        while sorting[i] != first:
            units[i] = units[sorting[i]]
            is_done[i] = True
            i = sorting[i]
        units[i] = kept
        is_done[i] = True


def group_rows(rows: NDArray[np.float64]) -> Groups:
    """The rows of a table by direction; those of zeros are a separate group.

    Args:
        rows: ``(n, k)`` finite.

    Raises:
        ValueError: an entry is not finite.
    """
    X = np.ascontiguousarray(rows, dtype=np.float64)
    distinct = find_directions(X)
    is_zero = distinct.of_row < 0
    n_zero, m = int(is_zero.sum()), distinct.first_rows.size
    group = np.where(is_zero, m, distinct.of_row) if n_zero else distinct.of_row
    first_rows = np.append(distinct.first_rows, np.flatnonzero(is_zero)[:1])
    units = np.empty((first_rows.size, X.shape[1]))
    is_nonnegative, is_binary = _fill_units(X, distinct.largest, first_rows, units)
    sizes, similarity = np.bincount(group, minlength=first_rows.size), np.zeros(first_rows.size)
    _similarity_to_all(units, sizes, similarity)
    sorting = np.argsort(similarity, kind="stable")
    rank = np.empty(sorting.size, dtype=np.int64)
    rank[sorting] = np.arange(sorting.size)
    group = rank[group]
    _reorder(units, sorting)
    return Groups(
        units=units,
        group=group,
        members=np.argsort(group, kind="stable"),
        starts=np.append(0, np.cumsum(sizes[sorting])),
        n_zero=n_zero,
        is_nonnegative=bool(is_nonnegative),
        is_binary=bool(is_binary),
    )
