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

from tracker.statistics.jit import INT, jit
from tracker.statistics.parallel.blocks import split_blocks

LANES = 64
"""Partial sums of a dot product: a processor works on several at once, and their order is still fixed."""
ROWS_AT_A_TIME = 512
"""Rows of a product. Fewer, and the library spends its time on arranging the other side."""
ROWS_OF_A_STRIP = 2048
"""Rows multiplied with those after them before the next strip leaves them out."""
FLOATS_AT_A_TIME = 2**26
"""Entries of a product held by a worker, 256 MB: beyond 131,072 prompts there are fewer rows at a time."""
SINGLE_PRECISION_ERROR = 2.0**-24
"""Largest relative error of rounding to single precision once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalizedVectors:
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
    def of(cls, E: NDArray[np.float32]) -> NormalizedVectors:
        """Prepare vectors.

        Args:
            E: ``(n, d)``, finite and not zero.

        Raises:
            ValueError: one is not.
        """
        E = np.ascontiguousarray(E, np.float32)
        squares, unit = np.empty(len(E)), np.empty_like(E)
        _normalize(E, squares, unit)
        if not (np.isfinite(squares) & (squares > 0)).all():
            raise ValueError("a vector is zero or not finite")
        # An entry of either row, the product of the two and each sum it goes into are rounded once; the products'
        # sizes sum to 1 at most.
        return cls(E=E, squares=squares, unit=unit, slack=(E.shape[1] + 4) * SINGLE_PRECISION_ERROR)


def iterate_products(
    rows: NDArray[np.float32], columns: NDArray[np.float32]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The products of some vectors with others, a block of rows at a time.

    Args:
        rows: ``(m, d)``.
        columns: ``(n, d)``.

    Yields:
        Place of the block's first row, and ``(b, n)`` products, which the next block overwrites.
    """
    size = max(1, min(ROWS_AT_A_TIME, FLOATS_AT_A_TIME // max(1, len(columns))))
    buffer = np.empty((min(size, len(rows)), len(columns)), np.float32)
    for block in split_blocks(len(rows), size):
        yield block.start, np.matmul(rows[block.start : block.stop], columns.T, out=buffer[: len(block)])


def iterate_pair_products(unit: NDArray[np.float32]) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
    """The products of vectors with each other, most of them once.

    Args:
        unit: ``(n, d)``.

    Yields:
        Numbers of the first row and of the first column, and products of some rows with that column and all after it,
        which the next block overwrites. Every pair of a row and a column with a higher number is in one block.
    """
    for strip in split_blocks(len(unit), ROWS_OF_A_STRIP):
        rest = unit[strip.start :]
        for start, block in iterate_products(rest[: len(strip)], rest):
            yield strip.start + start, strip.start, block


@jit
def _normalize(E: Any, squares: Any, unit: Any) -> None:
    wide, sums = np.empty(E.shape[1]), np.empty(LANES)
    for i in range(len(E)):
        copy_row(E, INT(i), wide)
        squares[i] = _dot(wide, E, INT(i), sums)
        length = np.sqrt(squares[i])
        for t in range(wide.size):
            unit[i, t] = wide[t] / length


@jit
def copy_row(E: Any, i: Any, wide: Any) -> None:
    """Fill ``wide``, ``(d,)`` float64, with a row of ``E``."""
    for t in range(wide.size):
        wide[t] = E[i, t]


@jit
def _dot(wide: Any, E: Any, j: Any, sums: Any) -> Any:
    """Entry ``t`` of the product goes to partial sum ``t % LANES``; those are then added up, every fourth together."""
    for lane in range(LANES):
        sums[lane] = 0.0
    whole = INT(wide.size - wide.size % LANES)
    for start in range(INT(0), whole, INT(LANES)):
        for lane in range(LANES):
            sums[lane] += wide[start + lane] * np.float64(E[j, start + lane])
    for t in range(whole, INT(wide.size)):
        sums[t - whole] += wide[t] * np.float64(E[j, t])
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for lane in range(0, LANES, 4):
        a += sums[lane]
        b += sums[lane + 1]
        c += sums[lane + 2]
        d += sums[lane + 3]
    return (a + b) + (c + d)


@jit
def distance_from(wide: Any, square: Any, j: Any, E: Any, squares: Any, sums: Any) -> Any:
    """Cosine distance of a vector from one of the rows, in [0, 2].

    It is the same the other way round, and exactly 0 between equal vectors: the root of the rounded square of a number
    is that number. Products and squares of single-precision numbers neither overflow nor vanish in double precision.

    Args:
        wide: ``(d,)`` a row of ``E`` as float64.
        square: its product with itself.
        j: the other row.
        E, squares: of `NormalizedVectors`.
        sums: ``(LANES,)`` float64, to work in.
    """
    return min(max(1.0 - _dot(wide, E, j, sums) / np.sqrt(square * squares[j]), 0.0), 2.0)
