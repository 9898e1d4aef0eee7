"""Cosine distances of pairs of vectors, exact, and matrix products that say which pairs to look at.

The distance of two prompts is worked out in double precision, its sum in one fixed order, so that it is the same
everywhere. Products in single precision are many times as fast, but are rounded differently by one library, block or
number of threads and the next. So they only choose the pairs: where their rounding leaves something open, the distance
itself decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.compilation import INT, kernel
from analyses.numerics.resampling import blocks_of

LANES = 64
"""Partial sums of a dot product: a processor works on several at once, and their order is still fixed."""
ROWS_AT_A_TIME = 512
"""Rows of a product. Fewer, and the library spends its time on arranging the other side."""
FLOATS_AT_A_TIME = 2**26
"""Entries of a product held by a worker, 256 MB: beyond 131,072 prompts there are fewer rows at a time."""
ROUNDING = 2.0**-24
"""Largest relative error of rounding to single precision once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Directions:
    """Vectors made ready for products and for distances.

    Attributes:
        E: ``(n, d)`` the vectors as they are.
        squares: ``(n,)`` product of each vector with itself.
        unit: ``(n, d)`` vectors of length 1, rounded.
        slack: by how much the product of two rows of `unit` can be off their cosine, whatever the order of its sum.
    """

    E: NDArray[np.float32]
    squares: NDArray[np.float64]
    unit: NDArray[np.float32]
    slack: float

    @classmethod
    def of(cls, E: NDArray[np.float32]) -> Directions:
        """Prepare ``(n, d)`` finite vectors, none of them zero."""
        E = np.ascontiguousarray(E, np.float32)
        squares, unit = np.empty(len(E)), np.empty_like(E)
        _normalize(E, squares, unit)
        # An entry of either row, the product of the two and each sum it goes into are rounded once; the products'
        # sizes sum to 1 at most.
        return cls(E=E, squares=squares, unit=unit, slack=(E.shape[1] + 4) * ROUNDING)

    def take(self, rows: NDArray[np.int64]) -> Directions:
        """Some of the vectors."""
        return Directions(E=self.E[rows], squares=self.squares[rows], unit=self.unit[rows], slack=self.slack)


def products(rows: NDArray[np.float32], columns: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The products of some vectors with others, a block of rows at a time.

    Args:
        rows: ``(m, d)``.
        columns: ``(n, d)``, not empty.

    Yields:
        Place of the block's first row, and ``(b, n)`` products, which the next block overwrites.
    """
    size = max(1, min(ROWS_AT_A_TIME, FLOATS_AT_A_TIME // len(columns)))
    held = np.empty((min(size, len(rows)), len(columns)), np.float32)
    for block in blocks_of(len(rows), size):
        yield block.start, np.matmul(rows[block.start : block.stop], columns.T, out=held[: len(block)])


@kernel
def _normalize(E: Any, squares: Any, unit: Any) -> None:
    sums = np.empty(LANES)
    for i in range(len(E)):
        squares[i] = _dot(E[i], E[i], sums)
        length = np.sqrt(squares[i])
        for t in range(E.shape[1]):
            unit[i, t] = np.float32(np.float64(E[i, t]) / length)


@kernel
def _dot(a: Any, b: Any, sums: Any) -> Any:
    """Entry ``t`` of the product goes to partial sum ``t % LANES``; those are then added one after the other."""
    for lane in range(LANES):
        sums[lane] = 0.0
    whole = INT(a.size - a.size % LANES)
    for start in range(INT(0), whole, INT(LANES)):
        for lane in range(LANES):
            sums[lane] += np.float64(a[start + lane]) * np.float64(b[start + lane])
    for t in range(whole, INT(a.size)):
        sums[t - whole] += np.float64(a[t]) * np.float64(b[t])
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    return total


@kernel
def pair_distance(E: Any, squares: Any, i: Any, j: Any, sums: Any) -> Any:
    """Cosine distance of rows ``i`` and ``j``, in [0, 2]: the same for ``j`` and ``i``, and exactly 0 for equal rows.

    The root of the rounded square of a number is that number, so that the cosine of equal rows is exactly 1. Products
    and squares of single-precision numbers neither overflow nor vanish in double precision.

    Args:
        E: ``(n, d)`` float32.
        squares: ``(n,)`` of `Directions`.
        i, j: rows.
        sums: ``(LANES,)`` float64, to work in.
    """
    distance = 1.0 - _dot(E[i], E[j], sums) / np.sqrt(squares[i] * squares[j])
    return min(max(distance, 0.0), 2.0)
