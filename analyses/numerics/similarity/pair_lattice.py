"""The values that a similarity of two binary rows can take, and where each pair of rows falls.

Two rows share ``o`` measured cells, in which they have ``s`` and ``t`` ones and ``c`` ones in common.
Every similarity is a function of these four integers, so the distribution over all pairs is a table
of counts over a few hundred to a few thousand values, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_sqrt import ExactSqrtSum

MAX_COSINE_COLUMNS = 300
"""The cells of the cosine grow with the cube of the columns; above this they take more than half a gigabyte."""
MAX_COLUMNS = 2000
"""Those of the Jaccard, and of Hamming with missing cells, grow with the square."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lattice:
    """The values of one similarity, each once, in ascending order.

    Attributes:
        values: ``(m,)`` float64, strictly ascending.
        index: int32, the position in ``values`` of a cell; how it is addressed is said where it is made.
        numbers: ``(m, 3)`` int64, integers that stand for each value, see ``exact``.
        exact: the value of one row of ``numbers`` without rounding.
    """

    values: NDArray[np.float64]
    index: NDArray[np.int32]
    numbers: NDArray[np.int64]
    exact: Callable[[int, int, int], ExactSqrtSum]

    @property
    def size(self) -> int:
        """Number of values."""
        return self.values.size

    def exact_value(self, i: int) -> ExactSqrtSum:
        """Value ``i`` without rounding."""
        a, b, c = self.numbers[i]
        return self.exact(int(a), int(b), int(c))


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
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.reshape(-1).astype(np.int32)


def hamming_lattice(n_columns: int, overlaps: NDArray[np.int64]) -> Lattice:
    """Share of the shared cells in which two rows agree; ``index[o, agreements]``, -1 where ``o`` does not occur."""
    o = np.repeat(overlaps, overlaps + 1)
    agree = np.concatenate([np.arange(n + 1) for n in overlaps])
    first, position = _distinct(agree / o)
    index = np.full((n_columns + 1, n_columns + 1), -1, np.int32)
    index[o, agree] = position
    numbers = np.stack([agree[first], o[first], np.zeros_like(first)], axis=1)
    return Lattice(values=agree[first] / o[first], index=index, numbers=numbers, exact=_fraction)


def jaccard_lattice(n_columns: int) -> Lattice:
    """Common ones over ones in either row; ``index[union, common]``, and an empty union counts as 1."""
    union = np.repeat(np.arange(n_columns + 1), np.arange(n_columns + 1) + 1)
    common = np.concatenate([np.arange(n + 1) for n in range(n_columns + 1)])
    numerator, denominator = np.where(union == 0, 1, common), np.maximum(union, 1)
    first, position = _distinct(numerator / denominator)
    index = np.full((n_columns + 1, n_columns + 1), -1, np.int32)
    index[union, common] = position
    numbers = np.stack([numerator[first], denominator[first], np.zeros_like(first)], axis=1)
    return Lattice(values=numerator[first] / denominator[first], index=index, numbers=numbers, exact=_fraction)


def cosine_lattice(n_columns: int) -> Lattice:
    """Common ones over the root of the product of both rows' ones; 0 where a row has none.

    ``index`` is flat: the cells of ``s <= t`` begin at ``cosine_starts(n_columns)[s, t]``, one for each
    number of common ones from 0 to ``s``.
    """
    s = np.concatenate([np.full((n_columns + 1 - a) * (a + 1), a) for a in range(n_columns + 1)])
    t = np.concatenate([np.repeat(np.arange(a, n_columns + 1), a + 1) for a in range(n_columns + 1)])
    c = np.concatenate([np.tile(np.arange(a + 1), n_columns + 1 - a) for a in range(n_columns + 1)])
    product = np.maximum(s * t, 1)
    first, position = _distinct(c * c / product)
    numbers = np.stack([c[first], np.maximum(s[first], 1), np.maximum(t[first], 1)], axis=1)
    return Lattice(
        values=c[first] / np.sqrt(product[first]), index=position, numbers=numbers.astype(np.int64), exact=_cosine
    )


def no_cosine_lattice(n_columns: int) -> Lattice:
    """Stands in where the cosine is not wanted: every pair falls on its only value."""
    return Lattice(
        values=np.zeros(1), index=np.zeros(n_columns + 1, np.int32), numbers=np.zeros((1, 3), np.int64), exact=_cosine
    )


def cosine_starts(n_columns: int) -> NDArray[np.int64]:
    """``(k + 1, k + 1)``: where the cells of two rows with ``s`` and ``t`` ones begin in `cosine_lattice`."""
    s, t = np.meshgrid(np.arange(n_columns + 1), np.arange(n_columns + 1), indexing="ij")
    low, high = np.minimum(s, t), np.maximum(s, t)
    of_row = np.concatenate([[0], np.cumsum((n_columns + 1 - np.arange(n_columns)) * (np.arange(n_columns) + 1))])
    return np.asarray(of_row[low] + (high - low) * (low + 1), dtype=np.int64)
