"""Dot products of the rows of a table, many at once, in double or in single precision.

A tile holds as many rows as `TILE_BYTES` have room for, column after column. The sums of `ROWS` rows with all rows of a
tile stay in the vector registers.

In double precision, multiplications and additions are separate, so that every sum has the same bytes as in a plain
loop. In single precision they are fused where the processor has an instruction for it, and the last digits depend on
the processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic
from numpy.typing import NDArray

from tracker.statistics.jit import INT, jit

TILE_BYTES = 128
"""Bytes of one column of a tile: 16 rows in double precision, 32 in single precision."""
VECTOR_BYTES = 64
"""Bytes of a vector of the compiler, which splits it where the processor has shorter ones."""
N_VECTORS = TILE_BYTES // VECTOR_BYTES
"""Vectors of one column of a tile."""
ROWS = 3 if "+avx512f" in get_host_cpu_features() else 2
"""Rows multiplied at once with a tile: their sums, and what is added to them, stay in the 32 or 16 vector registers."""
N_LANES = TILE_BYTES // 8
"""Numbers of one column of a tile in double precision."""
PADDING = 8
"""Unused columns: rows that are a power of two apart in memory would compete for the same places of the cache."""
PANEL = 48
"""Rows whose dot products are computed together, so that a tile is read once for all of them."""


def make_tiles(scores: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return the rows of a table as tiles, ``(n_tiles, k, n_lanes)``, filled up with zeros; in its precision."""
    n, k = scores.shape
    n_lanes = TILE_BYTES // scores.itemsize
    tiles = np.zeros((-(-n // n_lanes), k, n_lanes), scores.dtype)
    _fill_tiles(scores, tiles)
    return tiles


@jit
def _fill_tiles(scores: Any, tiles: Any) -> None:
    n_lanes = tiles.shape[2]
    for first in range(0, scores.shape[0], n_lanes):
        tile = tiles[first // n_lanes]
        for i in range(first, min(first + n_lanes, scores.shape[0])):
            for column in range(scores.shape[1]):
                tile[column, i - first] = scores[i, column]


@dataclass(frozen=True, slots=True)
class _Code:
    """Code for vectors of numbers of one size, in the terms of the compiler."""

    builder: Any
    number: Any
    n_bytes: int

    @property
    def n_numbers(self) -> int:
        """Numbers of a vector."""
        return VECTOR_BYTES // self.n_bytes

    @property
    def vector(self) -> Any:
        """The type of a vector."""
        return ir.VectorType(self.number, self.n_numbers)

    @property
    def zeros(self) -> Any:
        """A vector of zeros."""
        return ir.Constant(self.vector, [0.0] * self.n_numbers)

    def address(self, array: Any, row: Any, column: Any) -> Any:
        """The place of a number in an array."""
        strides = cgutils.unpack_tuple(self.builder, array.strides)
        terms = (self.builder.mul(index, stride) for index, stride in zip((row, column), strides, strict=True))
        octets = self.builder.bitcast(array.data, ir.IntType(8).as_pointer())
        return self.builder.bitcast(self.builder.gep(octets, [self.builder.add(*terms)]), self.number.as_pointer())

    def part(self, address: Any, part: int) -> Any:
        """The place of one of the vectors that begin at a number."""
        first = self.builder.gep(address, [ir.IntType(64)(part * self.n_numbers)])
        return self.builder.bitcast(first, self.vector.as_pointer())

    def load(self, pointer: Any) -> Any:
        """A vector."""
        loaded = self.builder.load(pointer)
        loaded.align = self.n_bytes
        return loaded

    def repeat(self, score: Any) -> Any:
        """A vector of one number in every place."""
        lane, undefined = ir.IntType(32), ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, score, lane(0))
        places = ir.Constant(ir.VectorType(lane, self.n_numbers), [0] * self.n_numbers)
        return self.builder.shuffle_vector(first, undefined, places)

    def multiply_add(self, left: Any, right: Any, total: Any) -> Any:
        """``left * right + total``, fused in single precision."""
        if self.n_bytes == 8:
            return self.builder.fadd(total, self.builder.fmul(left, right))
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        fused = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fmuladd.v{self.n_numbers}f32")
        return self.builder.call(fused, [left, right, total])

    def add_products(self, scores: Any, row: Any, n_rows: int, begin: Any, stop: Any, tile: Any) -> Any:
        """A loop over columns: for each row, its dot products with those of the tile, as vectors."""
        builder, index, parts = self.builder, ir.IntType(64), range(N_VECTORS)
        entry = builder.block
        loop, end = builder.append_basic_block("tile.loop"), builder.append_basic_block("tile.end")
        builder.branch(loop)
        builder.position_at_end(loop)
        column = builder.phi(index)
        column.add_incoming(begin, entry)
        sums = [[builder.phi(self.vector) for _ in parts] for _ in range(n_rows)]
        next_column = builder.add(column, index(1))
        column.add_incoming(next_column, loop)
        first = self.address(tile, column, index(0))
        loaded = [self.load(self.part(first, part)) for part in parts]
        results = []
        for r, totals in enumerate(sums):
            score = self.repeat(builder.load(self.address(scores, builder.add(row, index(r)), column)))
            for part, total in enumerate(totals):
                total.add_incoming(self.zeros, entry)
                results.append(self.multiply_add(score, loaded[part], total))
                total.add_incoming(results[-1], loop)
        builder.cbranch(builder.icmp_signed("<", next_column, stop), loop, end)
        builder.position_at_end(end)
        return results


def _multiply_rows(n_rows: int) -> Any:
    """Return the intrinsic for a number of rows."""

    def multiply(
        typing_context: Any, scores: Any, row: Any, begin: Any, stop: Any, tile: Any, dots: Any, place: Any, start: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scores, row, begin, stop, tile, dots, place, start = (
                context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
                for kind, value in zip(signature.args, arguments, strict=True)
            )
            is_single = signature.args[0].dtype == types.float32
            number, n_bytes = (ir.FloatType(), 4) if is_single else (ir.DoubleType(), 8)
            code, index = _Code(builder, number, n_bytes), ir.IntType(64)
            sums = code.add_products(scores, row, n_rows, begin, stop, tile)
            is_first = builder.icmp_signed("==", begin, index(0))
            for r in range(n_rows):
                first = code.address(dots, builder.add(place, index(r)), start)
                for part in range(N_VECTORS):
                    pointer = code.part(first, part)
                    before = builder.select(is_first, code.zeros, code.load(pointer))
                    builder.store(builder.fadd(before, sums[r * N_VECTORS + part]), pointer).align = n_bytes
            return context.get_dummy_value()

        n = types.int64
        return types.void(scores, n, n, n, tile, dots, n, n), generate

    return intrinsic(multiply)


multiply_rows, multiply_row = _multiply_rows(ROWS), _multiply_rows(1)
"""Add the dot products of some rows, from one on, with all rows of a tile to a panel; callable from kernels here only,
whose machine code would not be compiled again otherwise when this file changes.

Its arguments are the scores ``(n, k)``, k ≥ 1, the first row, the first column and that after the last (from the first
column of the table on, the panel is overwritten), the tile ``(k, n_lanes)``, the panel, and the first row and column
there. Numbers of a row of the tile and of the panel must be beside each other in memory.
"""


@jit
def fill_dots(scores: Any, tiles: Any, first: int, last: int, n_together: Any, dots: Any) -> None:
    """Fill in the dot products of some rows with all later rows.

    Args:
        scores: ``(n, k)`` float64 or float32.
        tiles: `make_tiles` of the scores.
        first, last: the rows, up to but without the last; at most `PANEL`.
        n_together: columns whose products are added up before their sum is added to those of the columns before; ``k``
            for sums in the order of the columns.
        dots: ``(PANEL, n_tiles * n_lanes)``, filled from the place of each row's tile on.
    """
    n_columns, n_lanes = scores.shape[1], tiles.shape[2]
    for t in range(first // n_lanes, tiles.shape[0]):
        tile, start = tiles[t], INT(t * n_lanes)
        stop = min(last, (t + 1) * n_lanes)
        whole = first + (stop - first) // ROWS * ROWS
        for begin in range(0, n_columns, n_together):
            end = INT(min(begin + n_together, n_columns))
            for i in range(first, whole, ROWS):
                multiply_rows(scores, INT(i), INT(begin), end, tile, dots, INT(i - first), start)
            for i in range(whole, stop):
                multiply_row(scores, INT(i), INT(begin), end, tile, dots, INT(i - first), start)


def make_products(k: int) -> NDArray[np.float64]:
    """Return zeros for the products of ``k`` columns, ``(k, width)``, as wide as `fill_products` needs."""
    return np.zeros((k, -(-k // N_LANES) * N_LANES + PADDING))


@jit
def fill_products(rows: Any, products: Any) -> None:
    """Fill in the dot products of all pairs of columns, for the same or a later one.

    Args:
        rows: ``(n, width)`` float64, zeros behind column ``k``.
        products: ``(k, width)``, from `make_products`.
    """
    n, width = rows.shape
    columns = rows.T
    for start in range(0, width - PADDING, N_LANES):
        tile, stop = rows[:, start : start + N_LANES], min(products.shape[0], start + N_LANES)
        whole = stop // ROWS * ROWS
        for column in range(0, whole, ROWS):
            multiply_rows(columns, INT(column), INT(0), n, tile, products, INT(column), INT(start))
        for column in range(whole, stop):
            multiply_row(columns, INT(column), INT(0), n, tile, products, INT(column), INT(start))
