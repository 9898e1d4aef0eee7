"""Dot products of the rows of a table, many at once, each added up in the order of the columns.

A tile holds `LANES` rows, column after column. The sums of a row with all rows of a tile stay in the vector registers.
Multiplications and additions are separate, so that every sum has the same bytes as in a plain loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit

LANES = 32
"""Rows of a tile."""
VECTOR = 8
"""Numbers of a vector of the compiler, which splits it where the processor has shorter ones."""
PANEL = 32
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


def _multiply_tile(typing_context: Any, row: Any, tile: Any, dots: Any, start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:3], arguments[:3], strict=True)
        ]
        n_columns = cgutils.unpack_tuple(builder, arrays[0].shape)[0]
        index, lane = ir.IntType(64), ir.IntType(32)
        vector = ir.VectorType(ir.DoubleType(), VECTOR)
        undefined = ir.Constant(vector, ir.Undefined)

        def address(array: Any, place: Any, part: int) -> Any:
            element = builder.gep(array.data, [builder.add(place, index(part * VECTOR))])
            return builder.bitcast(element, vector.as_pointer())

        begin = builder.block
        loop, end = builder.append_basic_block("tile.loop"), builder.append_basic_block("tile.end")
        builder.branch(loop)
        builder.position_at_end(loop)
        column = builder.phi(index)
        column.add_incoming(index(0), begin)
        sums = [builder.phi(vector) for _ in range(LANES // VECTOR)]
        first = builder.insert_element(undefined, builder.load(builder.gep(arrays[0].data, [column])), lane(0))
        score = builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(lane, VECTOR), [0] * VECTOR))
        next_column, next_sums = builder.add(column, index(1)), []
        for part, total in enumerate(sums):
            total.add_incoming(ir.Constant(vector, [0.0] * VECTOR), begin)
            scores = builder.load(address(arrays[1], builder.mul(column, index(LANES)), part))
            scores.align = 8
            next_sums.append(builder.fadd(total, builder.fmul(score, scores)))
            total.add_incoming(next_sums[-1], loop)
        column.add_incoming(next_column, loop)
        builder.cbranch(builder.icmp_signed("<", next_column, n_columns), loop, end)
        builder.position_at_end(end)
        for part, total in enumerate(next_sums):
            builder.store(total, address(arrays[2], arguments[3], part)).align = 8
        return context.get_dummy_value()

    return types.void(row, tile, dots, types.int64), generate


multiply_tile = intrinsic(_multiply_tile)
"""Write the dot products of a row with all rows of a tile into a vector, from a place on; callable from kernels only.

Its arguments are contiguous: ``(k,)``, k ≥ 1, ``(k, LANES)``, and the vector.
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
        tile = tiles[t]
        for i in range(first, min(last, (t + 1) * LANES)):
            multiply_tile(scores[i], tile, dots[i - first], INT(t * LANES))
