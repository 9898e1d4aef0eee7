"""Binary scores packed into bits, with the prompts that miss the same scores side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.jit import bit_counts, jit

WORD = 64


class PackedScores(NamedTuple):
    """A binary performance matrix with missing cells, packed by rows; kernels take it whole.

    Rows with the same pattern of missing cells are neighbours. The sort is stable: a complete table keeps its order.

    Attributes:
        bits: ``(n, n_words)`` uint64, bit ``j`` of a row is the score of column ``j``; 0 where missing.
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
        """Pack a ``(n, k)`` table of 0, 1 and NaN (missing)."""
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
        overlaps = {int(o) for pattern in self.patterns for o in np.unique(bit_counts(self.patterns & pattern))}
        return np.array(sorted(overlaps - {0}), dtype=np.int64)


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
