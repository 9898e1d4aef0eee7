"""The values that a similarity of two binary rows can take, and where each pair of rows falls.

Two rows share ``o`` measured cells, in which they have ``s`` and ``t`` ones and ``c`` ones in common.
Every similarity is a function of these four integers, so the distribution over all pairs is a table
of counts over a few hundred to a few thousand values, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_sqrt import ExactSqrtSum
from tracker.statistics.jit import jit

MAX_COSINE_COLUMNS = 300
"""The cells of the cosine grow with the cube of the columns; above this they take more than half a gigabyte."""
MAX_COLUMNS = 2000
"""Those of the Jaccard, and of Hamming with missing cells, grow with the square."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lattice:
    """The values of one similarity, each once, in ascending order.

    Attributes:
        values: ``(m,)`` float64, strictly ascending.
        index: int32, the position in ``values`` of each cell; that of two rows is number
            ``by_overlap[o] + by_ones[s, t] + stride * c``.
        by_overlap: ``(k + 1,)`` int64, by the number of shared cells.
        by_ones: ``(k + 1, k + 1)`` int32, by the number of ones of either row.
        stride: cells from one number of common ones to the next.
        numbers: ``(m, 3)`` int16, integers that stand for each value, see ``exact``.
        exact: the value of one row of ``numbers`` without rounding.
    """

    values: NDArray[np.float64]
    index: NDArray[np.int32]
    by_overlap: NDArray[np.int64]
    by_ones: NDArray[np.int32]
    stride: int
    numbers: NDArray[np.int16]
    exact: Callable[[int, int, int], ExactSqrtSum]

    @property
    def size(self) -> int:
        """Number of values."""
        return self.values.size

    def exact_value(self, i: int) -> ExactSqrtSum:
        """Value ``i`` without rounding."""
        a, b, c = self.numbers[i]
        return self.exact(int(a), int(b), int(c))

    def at(self, places: NDArray[np.intp]) -> Lattice:
        """Return some of the values, for statistics of tables without pairs at the others; cells keep their places."""
        return replace(self, values=self.values[places], numbers=self.numbers[places])


class LatticeCells(NamedTuple):
    """The cells of several lattices, whose values stand one after the other.

    Attributes:
        index: int32, the position of each cell among the values of all lattices.
        by_overlap: ``(n_lattices, k + 1)`` int64.
        by_ones: ``(n_lattices, k + 1, k + 1)`` int32.
        stride: ``(n_lattices,)`` int64.
    """

    index: Any
    by_overlap: Any
    by_ones: Any
    stride: Any


def join_cells(lattices: Sequence[Lattice]) -> LatticeCells:
    """The cells of lattices of equally many columns, for `cell_position`."""
    n_values = np.cumsum([0, *(lattice.size for lattice in lattices)])
    n_cells = np.cumsum([0, *(lattice.index.size for lattice in lattices)])
    return LatticeCells(
        index=np.concatenate([lattice.index + np.int32(n) for lattice, n in zip(lattices, n_values, strict=False)]),
        by_overlap=np.stack([lattice.by_overlap + n for lattice, n in zip(lattices, n_cells, strict=False)]),
        by_ones=np.stack([lattice.by_ones for lattice in lattices]),
        stride=np.array([lattice.stride for lattice in lattices], np.int64),
    )


@jit
def cell_position(cells: Any, lattice: Any, o: Any, s: Any, t: Any, c: Any) -> Any:
    """Where two rows with these numbers of shared cells and ones fall among the values of all lattices."""
    return cells.index[cells.by_overlap[lattice, o] + cells.by_ones[lattice, s, t] + cells.stride[lattice] * c]


def _fraction(a: int, b: int, _: int) -> ExactSqrtSum:
    return ExactSqrtSum.from_number(Fraction(a, b))


def _cosine(c: int, s: int, t: int) -> ExactSqrtSum:
    return ExactSqrtSum.cosine(c, s, t) if c else ExactSqrtSum({})


def _distinct(keys: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """First cell of each distinct key, ascending, and the position of every cell.

    Keys are quotients of integers below 2**53. Division rounds correctly, so equal quotients give equal
    floats; different ones differ by at least the inverse product of their denominators (above 1e-10
    for `MAX_COSINE_COLUMNS`), so they give different floats. Comparing the floats is therefore exact.
    """
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    is_first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    del ascending
    position = np.empty(keys.size, np.int32)
    position[order] = np.cumsum(is_first, dtype=np.int32) - np.int32(1)
    return order[is_first], position


def _stack(*numbers: NDArray[Any]) -> NDArray[np.int16]:
    """Return numbers of at most `MAX_COLUMNS` as columns."""
    return np.stack([part.astype(np.int16) for part in numbers], axis=1)


def _ones_of_both(n_columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    s, t = np.meshgrid(np.arange(n_columns + 1), np.arange(n_columns + 1), indexing="ij")
    return s, t


def hamming_lattice(n_columns: int, overlaps: NDArray[np.int64]) -> Lattice:
    """Share of the shared cells in which two rows agree; -1 in ``index`` where a number of them does not occur."""
    o = np.repeat(overlaps, overlaps + 1)
    agree = np.concatenate([np.arange(n + 1) for n in overlaps])
    first, position = _distinct(agree / o)
    index = np.full((n_columns + 1, n_columns + 1), -1, np.int32)
    index[o, agree] = position
    s, t = _ones_of_both(n_columns)
    return Lattice(
        values=agree[first] / o[first],
        index=index.ravel(),
        by_overlap=np.arange(n_columns + 1) * (n_columns + 2),
        by_ones=(-s - t).astype(np.int32),
        stride=2,
        numbers=_stack(agree[first], o[first], np.zeros_like(first)),
        exact=_fraction,
    )


def jaccard_lattice(n_columns: int, _: NDArray[np.int64]) -> Lattice:
    """Common ones over ones in either row; 0/0 = 1."""
    union = np.repeat(np.arange(n_columns + 1), np.arange(n_columns + 1) + 1)
    common = np.concatenate([np.arange(n + 1) for n in range(n_columns + 1)])
    numerator, denominator = np.where(union == 0, 1, common), np.maximum(union, 1)
    first, position = _distinct(numerator / denominator)
    index = np.full((n_columns + 1, n_columns + 1), -1, np.int32)
    index[union, common] = position
    s, t = _ones_of_both(n_columns)
    return Lattice(
        values=numerator[first] / denominator[first],
        index=index.ravel(),
        by_overlap=np.zeros(n_columns + 1, np.int64),
        by_ones=((s + t) * (n_columns + 1)).astype(np.int32),
        stride=-n_columns,
        numbers=_stack(numerator[first], denominator[first], np.zeros_like(first)),
        exact=_fraction,
    )


def cosine_lattice(n_columns: int, _: NDArray[np.int64]) -> Lattice:
    """Common ones over the root of the product of both rows' ones; 0 where a row has none.

    The cells of ``s <= t`` begin one after the other, one for each number of common ones from 0 to ``s``.
    """
    ones = np.arange(n_columns + 1, dtype=np.int32)  # in 4 bytes: 300 columns have 4.6 million cells
    s = np.concatenate([np.full((n_columns + 1 - a) * (a + 1), a) for a in ones])
    t = np.concatenate([np.repeat(ones[a:], a + 1) for a in ones])
    c = np.concatenate([np.tile(ones[: a + 1], n_columns + 1 - a) for a in ones])
    product = np.maximum(s * t, 1)
    first, position = _distinct(c * c / product)
    numbers = _stack(c[first], np.maximum(s[first], 1), np.maximum(t[first], 1))
    left, right = _ones_of_both(n_columns)
    low, high = np.minimum(left, right), np.maximum(left, right)
    of_row = np.concatenate([[0], np.cumsum((n_columns + 1 - np.arange(n_columns)) * (np.arange(n_columns) + 1))])
    return Lattice(
        values=c[first] / np.sqrt(product[first]),
        index=position,
        by_overlap=np.zeros(n_columns + 1, np.int64),
        by_ones=(of_row[low] + (high - low) * (low + 1)).astype(np.int32),
        stride=1,
        numbers=numbers,
        exact=_cosine,
    )
