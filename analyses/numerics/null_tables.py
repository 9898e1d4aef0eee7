"""Tables drawn under a null hypothesis: columns shuffled, or both margins held.

Missing cells stay where they are under both. Every draw is a function of (seed, permutation), so
that any worker can make any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.score_table import PackedScores, bit, flip
from tracker.statistics.jit import INT, jit
from tracker.statistics.rng_kernels import fill_below
from tracker.statistics.rng_streams import BACKWARD, COLUMNS, FORWARD, PAIRS, stream_key

Null = Literal["columns", "margins"]
Shuffle = Callable[[PackedScores, NDArray[np.uint64], int], NDArray[np.uint64]]
"""Draws a table with shuffled columns from the observed table, the key of the seed and the number of the draw."""

TRADES_PER_COLUMN = 10
"""Trades between two draws of the ``margins`` null, for each column of the table."""


@jit
def _place_ones(packed: Any, key: Any, permutation: int, bits: Any) -> None:
    cells, cell_starts, ones = packed.cells, packed.cell_starts, packed.ones
    bits[:] = np.uint64(0)
    draws = np.empty(bits.shape[0], np.int64)
    for column in range(ones.size):
        start = cell_starts[column]
        n = cell_starts[column + 1] - start
        rarer = min(ones[column], n - ones[column])
        fill_below(draws[:rarer], n - rarer + 1, INT(1), key, INT(COLUMNS), permutation, column)
        for i in range(rarer):
            row = cells[start + draws[i]]
            row += np.int64(bit(bits, row, column)) * (cells[start + n - rarer + i] - row)
            flip(bits, row, column)
        if rarer != ones[column]:
            for i in range(start, start + n):
                flip(bits, cells[i], column)


def shuffle_columns(packed: PackedScores, key: NDArray[np.uint64], permutation: int) -> NDArray[np.uint64]:
    """The table with each column's scores shuffled among the rows measured in it.

    Only how many ones a column has is kept, so the draw does not depend on where they were: a uniform
    subset of the measured rows is chosen for the rarer of the two scores.

    Source: Ailem et al. 2024, section 3.2; Floyd's algorithm for a random subset (Bentley & Floyd 1987).

    Returns:
        ``(n, n_words)`` uint64, packed like ``packed.bits``.
    """
    bits = np.empty_like(packed.bits)
    _place_ones(packed, key, permutation, bits)
    return bits


@jit
def _trade(packed: Any, bits: Any, key: Any, purpose: int, permutation: int) -> None:
    n, n_columns, masks = bits.shape[0], packed.ones.size, packed.masks
    n_trades = TRADES_PER_COLUMN * n_columns
    firsts, seconds = np.empty(n_trades, np.int64), np.empty(n_trades, np.int64)
    fill_below(firsts, n_columns, INT(0), key, purpose + PAIRS, permutation, INT(0))
    fill_below(seconds, n_columns - 1, INT(0), key, purpose + PAIRS, permutation, INT(1))
    differing, draws = np.empty(n, np.int64), np.empty(n, np.int64)
    for trade in range(n_trades):
        a, b = firsts[trade], seconds[trade]
        b += np.int64(b >= a)
        at_a, at_b, word_a, word_b = np.uint64(a & 63), np.uint64(b & 63), a >> 6, b >> 6
        n_differing: Any = INT(0)
        ones: Any = INT(0)
        for i in range(n):
            differing[n_differing] = i
            in_a = (bits[i, word_a] >> at_a) & np.uint64(1)
            in_b = (bits[i, word_b] >> at_b) & np.uint64(1)
            both = (masks[i, word_a] >> at_a) & (masks[i, word_b] >> at_b) & np.uint64(1)
            differs = np.int64((in_a ^ in_b) & both)
            n_differing += differs
            ones += differs * np.int64(in_a)
        fill_below(draws[:n_differing], n_differing, INT(-1), key, purpose, permutation, trade)
        for d in range(n_differing):
            i = differing[d]
            wants = draws[d] < ones
            ones -= np.int64(wants)
            change = np.uint64(wants) ^ ((bits[i, word_a] >> at_a) & np.uint64(1))
            bits[i, word_a] ^= change << at_a
            bits[i, word_b] ^= change << at_b


def run_trades(
    packed: PackedScores, bits: NDArray[np.uint64], key: NDArray[np.uint64], purpose: int, permutation: int
) -> NDArray[np.uint64]:
    """Return ``bits`` after a run of the chain whose steps keep every row sum and column sum.

    A step picks two columns at random, looks at the rows measured in both where they differ, and deals
    the ones of the first column out again among these rows, uniformly. That step is its own reverse
    and leaves the uniform distribution over tables with these margins and missing cells as it is.
    A swap of one checkerboard is the smallest change it can make, so on complete tables every table
    with the same margins can be reached.

    Source: the "curveball" trade of Strona et al. 2014, along columns; `TRADES_PER_COLUMN` steps per column.
    """
    bits = bits.copy()
    if packed.n_columns > 1:
        _trade(packed, bits, key, purpose, permutation)
    return bits


def find_common_ancestor(packed: PackedScores, key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The table from which every draw of the ``margins`` null starts: the chain run back from the observed one.

    Since the chain is its own reverse, the observed table and the draws made forward from the ancestor
    are exchangeable under the null, however few the steps: p-values from them are valid.

    Source: Besag & Clifford 1989, the parallel method.
    """
    return run_trades(packed, packed.bits, key, BACKWARD, 0)


def draw_fixed_margins(
    packed: PackedScores, ancestor: NDArray[np.uint64], key: NDArray[np.uint64], permutation: int
) -> NDArray[np.uint64]:
    """A table with the row sums, column sums and missing cells of ``packed``; ``(n, n_words)`` uint64."""
    return run_trades(packed, ancestor, key, FORWARD, permutation)


@dataclass(frozen=True, slots=True)
class NullTables:
    """Binary tables drawn under a null, by number.

    Attributes:
        packed: the observed table.
        key: of the seed.
        ancestor: where the draws of "margins" start; None for "columns".
        shuffle: draws a table for "columns": `shuffle_columns`, or a function with the same results.
    """

    packed: PackedScores
    key: NDArray[np.uint64]
    ancestor: NDArray[np.uint64] | None
    shuffle: Shuffle = shuffle_columns

    @classmethod
    def create(cls, packed: PackedScores, *, null: Null, seed: int, shuffle: Shuffle = shuffle_columns) -> NullTables:
        """Return the draws from a table.

        Args:
            packed: the observed table.
            null: "columns" shuffles each column among its measured cells; "margins" keeps the sums of rows too.
            seed: of all draws.
            shuffle: see `NullTables`.
        """
        key = stream_key(seed)
        return cls(packed, key, find_common_ancestor(packed, key) if null == "margins" else None, shuffle)

    def draw(self, permutation: int) -> NDArray[np.uint64]:
        """Return one drawn table, ``(n, n_words)`` uint64."""
        if self.ancestor is None:
            return self.shuffle(self.packed, self.key, permutation)
        return draw_fixed_margins(self.packed, self.ancestor, self.key, permutation)


@jit
def _shuffle(scores: Any, cells: Any, cell_starts: Any, key: Any, permutation: int, result: Any) -> None:
    n = result.shape[0]
    draws = np.empty(n, np.int64)
    for column in range(cell_starts.size - 1):
        start, stop = cell_starts[column], cell_starts[column + 1]
        values = scores[start:stop].copy()
        fill_below(draws[: values.size], values.size, INT(-1), key, INT(COLUMNS), permutation, column)
        is_whole = values.size == n
        for i in range(values.size):
            last, at = values.size - 1 - i, np.uint64(draws[i])
            result[last if is_whole else cells[start + last], column] = values[at]
            values[at] = values[last]


def shuffle_scores(
    scores: NDArray[np.float64],
    cells: NDArray[np.int64],
    cell_starts: NDArray[np.int64],
    n_rows: int,
    key: NDArray[np.uint64],
    permutation: int,
) -> NDArray[np.float64]:
    """A table of any scores with each column shuffled among its measured cells.

    Args:
        scores: the measured scores, column after column.
        cells: ``scores.shape`` int64, the row of each.
        cell_starts: ``(k + 1,)`` int64, where each column begins in them.
        n_rows: of the table.
        key: of the seed.
        permutation: which draw.

    Returns:
        ``(n_rows, k)`` float64, 0 where not measured.
    """
    result = np.zeros((n_rows, cell_starts.size - 1))
    _shuffle(scores, cells, cell_starts, key, permutation, result)
    return result


def shuffle_table(Q: NDArray[np.float64], key: NDArray[np.uint64], permutation: int) -> NDArray[np.float64]:
    """A complete table with each column shuffled; the draw that `shuffle_scores` makes of its cells.

    Args:
        Q: ``(n, k)`` scores without gaps.
        key: of the seed.
        permutation: which draw.

    Returns:
        ``(n, k)`` float64, C-contiguous.
    """
    n, k = Q.shape
    cells, starts = np.tile(np.arange(n), k), np.arange(k + 1) * n
    return shuffle_scores(np.ascontiguousarray(Q.T).ravel(), cells, starts, n, key, permutation)
