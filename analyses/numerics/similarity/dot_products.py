"""Dot products of the rows of a table, many at once, each added up in the order of the columns.

A tile holds `LANES` rows, column after column. The sums of `ROWS` rows with all rows of a tile stay in the vector
registers. Multiplications and additions are separate, so that every sum has the same bytes as in a plain loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit

LANES = 16
"""Rows of a tile."""
ROWS = 3 if "+avx512f" in get_host_cpu_features() else 2
"""Rows multiplied at once with a tile: their sums, and what is added to them, stay in the 32 or 16 vector registers."""
VECTOR = 8
"""Numbers of a vector of the compiler, which splits it where the processor has shorter ones."""
PANEL = 48
"""Rows whose dot products are computed together, so that a tile is read once for all of them."""


def make_tiles(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows of a table as tiles, ``(n_tiles, k, LANES)``, filled up with zeros."""
    n, k = scores.shape
    tiles = np.zeros((-(-n // LANES), k, LANES))
    _fill_tiles(scores, tiles)
    return tiles


@jit
def _fill_tiles(scores: Any, tiles: Any) -> None:
    for first in range(0, scores.shape[0], LANES):
        tile = tiles[first // LANES]
        for i in range(first, min(first + LANES, scores.shape[0])):
            for column in range(scores.shape[1]):
                tile[column, i - first] = scores[i, column]


def _multiply_rows(n_rows: int) -> Any:
    """Return the intrinsic for a number of rows."""

    def multiply(typing_context: Any, scores: Any, row: Any, tile: Any, dots: Any, place: Any, start: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scores, row, tile, dots, place, start = (
                context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
                for kind, value in zip(signature.args, arguments, strict=True)
            )
            n_columns, width = (cgutils.unpack_tuple(builder, array.shape)[1] for array in (scores, dots))
            index, lane = ir.IntType(64), ir.IntType(32)
            vector = ir.VectorType(ir.DoubleType(), VECTOR)
            undefined = ir.Constant(vector, ir.Undefined)
            parts = range(LANES // VECTOR)

            def address(array: Any, element: Any, part: int) -> Any:
                pointer = builder.gep(array.data, [builder.add(element, index(part * VECTOR))])
                return builder.bitcast(pointer, vector.as_pointer())

            def load_repeated(element: Any) -> Any:
                score = builder.load(builder.gep(scores.data, [element]))
                first = builder.insert_element(undefined, score, lane(0))
                return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(lane, VECTOR), [0] * VECTOR))

            rows = [builder.mul(builder.add(row, index(r)), n_columns) for r in range(n_rows)]
            begin = builder.block
            loop, end = builder.append_basic_block("tile.loop"), builder.append_basic_block("tile.end")
            builder.branch(loop)
            builder.position_at_end(loop)
            column = builder.phi(index)
            column.add_incoming(index(0), begin)
            sums = [[builder.phi(vector) for _ in parts] for _ in rows]
            columns = []
            for part in parts:
                columns.append(builder.load(address(tile, builder.mul(column, index(LANES)), part)))
                columns[-1].align = 8
            next_column, next_sums = builder.add(column, index(1)), []
            for first, totals in zip(rows, sums, strict=True):
                score = load_repeated(builder.add(first, column))
                for part, total in enumerate(totals):
                    total.add_incoming(ir.Constant(vector, [0.0] * VECTOR), begin)
                    next_sums.append(builder.fadd(total, builder.fmul(score, columns[part])))
                    total.add_incoming(next_sums[-1], loop)
            column.add_incoming(next_column, loop)
            builder.cbranch(builder.icmp_signed("<", next_column, n_columns), loop, end)
            builder.position_at_end(end)
            for r in range(n_rows):
                first = builder.add(builder.mul(builder.add(place, index(r)), width), start)
                for part in parts:
                    builder.store(next_sums[r * len(parts) + part], address(dots, first, part)).align = 8
            return context.get_dummy_value()

        return types.void(scores, types.int64, tile, dots, types.int64, types.int64), generate

    return intrinsic(multiply)


multiply_rows, multiply_row = _multiply_rows(ROWS), _multiply_rows(1)
"""Write the dot products of some rows, from one on, with all rows of a tile into a panel; callable from kernels only.

Its arguments are the contiguous scores ``(n, k)``, k ≥ 1, the first row, the tile ``(k, LANES)``, the contiguous panel,
and the first row and column there.
"""


@jit
def fill_dots(scores: Any, tiles: Any, first: int, last: int, dots: Any) -> None:
    """Fill in the dot products of some rows with all later rows.

    Args:
        scores: ``(n, k)`` float64.
        tiles: `make_tiles` of the scores.
        first, last: the rows, up to but without the last; at most `PANEL`.
        dots: ``(PANEL, n_tiles * LANES)``, filled from the place of each row's tile on.
    """
    for t in range(first // LANES, tiles.shape[0]):
        tile, start = tiles[t], INT(t * LANES)
        stop = min(last, (t + 1) * LANES)
        whole = first + (stop - first) // ROWS * ROWS
        for i in range(first, whole, ROWS):
            multiply_rows(scores, INT(i), tile, dots, INT(i - first), start)
        for i in range(whole, stop):
            multiply_row(scores, INT(i), tile, dots, INT(i - first), start)
