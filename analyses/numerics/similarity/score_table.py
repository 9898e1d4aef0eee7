"""The table whose rows are compared, and its cells packed into bits, rows that miss the same cells side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import jit
from tracker.statistics.standard_errors import scale_to_mean_one

WORD = 64


class PackedScores(NamedTuple):
    """The cells of a performance matrix, packed by rows; kernels take it whole.

    Rows with the same pattern of missing cells are neighbours. The sort is stable: a complete table keeps its order.

    Attributes:
        bits: ``(n, n_words)`` uint64, bit ``j`` of a row is 1 where the score of column ``j`` is 1.
        masks: ``(n, n_words)`` uint64, 1 where the cell was measured.
        order: ``(n,)`` int64, the position of each row in the table it was made from.
        patterns: ``(n_patterns, n_words)`` uint64, the distinct masks.
        starts: ``(n_patterns + 1,)`` int64, where the rows of each pattern begin.
        cells: int64, the rows measured in each column, column after column.
        cell_starts: ``(n_columns + 1,)`` int64, where each column begins in ``cells``.
        ones: ``(n_columns,)`` int64, how many scores of each column are 1.
    """

    bits: NDArray[np.uint64]
    masks: NDArray[np.uint64]
    order: NDArray[np.int64]
    patterns: NDArray[np.uint64]
    starts: NDArray[np.int64]
    cells: NDArray[np.int64]
    cell_starts: NDArray[np.int64]
    ones: NDArray[np.int64]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.ones.size)

    @property
    def n_patterns(self) -> int:
        """Number of distinct patterns of missing cells; 1 for a complete table."""
        return int(self.patterns.shape[0])

    @property
    def is_complete(self) -> bool:
        """Whether every cell was measured."""
        return bool(self.cells.size == self.bits.shape[0] * self.n_columns)

    @classmethod
    def from_scores(cls, Q: NDArray[np.float64]) -> PackedScores:
        """Pack a ``(n, k)`` table of scores and NaN (missing)."""
        measured = ~np.isnan(Q)
        masks = pack_bits(measured)
        patterns, pattern = np.unique(masks, axis=0, return_inverse=True)
        pattern = pattern.reshape(-1)
        order = np.argsort(pattern, kind="stable").astype(np.int64)
        measured = measured[order]
        columns, cells = np.nonzero(measured.T)
        return cls(
            bits=pack_bits(Q == 1)[order],
            masks=masks[order],
            order=order,
            patterns=patterns,
            starts=np.searchsorted(pattern[order], np.arange(patterns.shape[0] + 1)).astype(np.int64),
            cells=cells.astype(np.int64),
            cell_starts=np.searchsorted(columns, np.arange(Q.shape[1] + 1)).astype(np.int64),
            ones=(Q == 1).sum(axis=0).astype(np.int64),
        )

    def overlaps(self) -> NDArray[np.int64]:
        """Numbers of shared cells that occur between two rows, ascending, without 0."""
        overlaps: set[int] = set()
        for pattern in self.patterns:
            overlaps.update(np.unique(np.bitwise_count(self.patterns & pattern).sum(axis=1)).tolist())
        return np.array(sorted(overlaps - {0}), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A performance matrix whose rows are compared, and what is known of it before the first draw.

    Attributes:
        Q: ``(n, k)`` float64 scores, NaN = missing; every row and column has a score.
        weights: ``(n,)`` float64, positive, mean 1, of the rows; they stay at their rows in every draw. None: all
            count the same.
    """

    Q: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None

    @classmethod
    def create(cls, Q: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> ScoreTable:
        """A table whose weights are positive numbers in any unit; equal ones count as none."""
        if weights is None or (weights == weights[:1]).all():
            return cls(Q)
        return cls(Q, scale_to_mean_one(weights))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.Q.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.Q.shape[1])

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """``(n, k)``: where there is no score."""
        return np.isnan(self.Q)

    @cached_property
    def is_binary(self) -> bool:
        """Whether every score is 0 or 1."""
        return bool((self.missing | (self.Q == 0) | (self.Q == 1)).all())

    @cached_property
    def column_ranges(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The smallest and the largest score of each column."""
        return np.nanmin(self.Q, axis=0), np.nanmax(self.Q, axis=0)

    @property
    def constant_columns(self) -> NDArray[np.bool_]:
        """``(k,)``: whether a column has the same score everywhere."""
        lowest, highest = self.column_ranges
        return np.asarray(lowest == highest)

    @cached_property
    def packed(self) -> PackedScores:
        """Its cells in bits."""
        return PackedScores.from_scores(self.Q)

    @property
    def packed_weights(self) -> NDArray[np.float64] | None:
        """The weights in the order of the packed rows."""
        return None if self.weights is None else self.weights[self.packed.order]

    @cached_property
    def packed_scores(self) -> NDArray[np.float64]:
        """``(n, k)`` the scores in the order of the packed rows, 0 where missing."""
        return np.ascontiguousarray(np.nan_to_num(self.Q[self.packed.order]))

    def sort_columns(self) -> NDArray[np.float64]:
        """The measured scores, column after column, each in ascending order: draws depend on nothing else."""
        columns = np.repeat(np.arange(self.n_columns), np.diff(self.packed.cell_starts))
        measured = self.packed_scores[self.packed.cells, columns]
        return np.asarray(measured[np.lexsort((measured, columns))])

    @property
    def only_reorders(self) -> bool:
        """Whether shuffled columns are the same rows in another order: no cell is missing, and one column varies."""
        return self.packed.is_complete and int((~self.constant_columns).sum()) < 2

    def count_constant_rows(self, score: float) -> int:
        """Rows that have no other score than this one."""
        return int(((score == self.Q) | self.missing).all(axis=1).sum())

    def count_distinct_rows(self) -> int:
        """Different rows, by their scores and missing cells."""
        return int(np.unique(np.where(self.missing, np.inf, self.Q), axis=0).shape[0])

    def count_disjoint_pairs(self, n_pairs: int) -> int:
        """Pairs of rows beside ``n_pairs`` that share a cell."""
        return self.n_rows * (self.n_rows - 1) // 2 - n_pairs


def pack_bits(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack ``(n, k)`` booleans into ``(n, ceil(k / 64))`` words, column 0 in the lowest bit."""
    n, k = flags.shape
    n_words = max(1, -(-k // WORD))
    padded = np.zeros((n, n_words * WORD), dtype=np.bool_)
    padded[:, :k] = flags
    return np.ascontiguousarray(np.packbits(padded, axis=1, bitorder="little")).view("<u8").astype(np.uint64)


def unpack_bits(words: NDArray[np.uint64], n_columns: int) -> NDArray[np.bool_]:
    """The inverse of `pack_bits`."""
    octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :n_columns].astype(np.bool_)


@jit
def bit(words: Any, row: int, column: int) -> Any:
    """One cell, as uint64 0 or 1."""
    return (words[row, column >> 6] >> np.uint64(column & 63)) & np.uint64(1)


@jit
def flip(words: Any, row: int, column: int) -> None:
    """Turn one cell over."""
    words[row, column >> 6] ^= np.uint64(1) << np.uint64(column & 63)
