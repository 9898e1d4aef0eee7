"""What a table of scores and its draws have in common: measured cells, weights, and the range of cosines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.cosine_pairs import BINS, CosineBins, CosineRows, bin_cosines, collect_cosines
from analyses.numerics.similarity.packed_scores import PackedScores, unpack_bits
from analyses.numerics.similarity.weighted_distributions import LAST_DIGIT

MIN_WIDTH = 1e-12
"""The bins cover at least this much."""


@dataclass(frozen=True, slots=True)
class CosineLayout:
    """Where the measured cells are; the same for the observed table and every draw.

    Attributes:
        bits: the pattern of measured cells, packed.
        patterns: ``(n_patterns, k)`` float64.
        lowest: lower edge of the first bin.
        n_pairs: pairs that share a measured cell.
        weights: ``(n,)`` float64, positive, of the rows as ``bits`` has them; ``(0,)`` where all count the same.
    """

    bits: PackedScores
    patterns: NDArray[np.float64]
    lowest: float
    n_pairs: int
    weights: NDArray[np.float64]

    @classmethod
    def create(cls, Q: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> CosineLayout:
        """The layout of a ``(n, k)`` table with NaN where not measured, and weights of its rows or None."""
        bits = PackedScores.from_scores(np.where(np.isnan(Q), np.nan, 1.0))
        patterns = unpack_bits(bits.patterns, Q.shape[1]).astype(np.float64)
        sizes = np.diff(bits.starts)
        shared = (patterns @ patterns.T > 0) * np.outer(sizes, sizes)
        n_pairs = (int(shared.sum()) - Q.shape[0]) // 2
        return cls(bits, patterns, min_cosine(Q), n_pairs, np.empty(0) if weights is None else weights[bits.order])

    @property
    def is_weighted(self) -> bool:
        """Whether rows do not all count the same."""
        return self.weights.size > 0

    @property
    def width(self) -> float:
        """Of a bin."""
        return (1.0 - self.lowest) / BINS

    @property
    def zero_bin(self) -> int:
        """The bin that holds a cosine of 0."""
        return int(max(0.0, -self.lowest) * BINS / (1.0 - self.lowest))

    def zero_pairs(self, scores: NDArray[np.float64]) -> int:
        """Pairs that share a cell and have a row whose scores are all zero."""
        sizes = np.diff(self.bits.starts)
        zeros = np.add.reduceat((~scores.any(axis=1)).astype(np.int64), self.bits.starts[:-1])
        share = self.patterns @ self.patterns.T > 0

        def pairs(members: NDArray[np.int64]) -> int:
            return int(((share * np.outer(members, members)).sum() - members.sum()) // 2)

        return pairs(sizes) - pairs(sizes - zeros)

    def zero_mass(self, is_zero: NDArray[np.bool_]) -> float:
        """Weight of the pairs that share a cell and have a row whose scores are all zero."""
        zeros = np.add.reduceat(np.where(is_zero, self.weights, 0.0), self.bits.starts[:-1])
        nonzero = np.add.reduceat(np.where(is_zero, 0.0, self.weights), self.bits.starts[:-1])
        itself = (self.weights[is_zero] ** 2).sum()
        share = self.patterns @ self.patterns.T > 0
        both = (share * np.outer(zeros, zeros)).sum() - itself
        return float(max(0.0, both) / 2 + (share * np.outer(zeros, nonzero)).sum())

    def bin(self, scores: NDArray[np.float64], weights: NDArray[np.float64], *, by_row: bool = False) -> CosineBins:
        """All cosines of a table in bins.

        Args:
            scores: ``(n, k)`` float64, 0 where not measured, rows in the order of the layout.
            weights: ``(n,)`` of the rows, or ``(0,)``.
            by_row: whether to sum up the cosines of each row.
        """
        n_rows = scores.shape[0] if by_row else 0
        n_masses = BINS if weights.size else 0
        bins = CosineBins(np.zeros(BINS, np.int64), np.zeros(2), np.zeros(n_masses), np.zeros(n_rows), np.zeros(n_rows))
        bin_cosines(self._rows(scores, weights), bins)
        return bins

    def collect(
        self, scores: NDArray[np.float64], weights: NDArray[np.float64], is_selected: NDArray[np.bool_], n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ``n`` cosines of a table in selected bins, and the weights of their pairs."""
        cosines, masses = np.empty(n), np.empty(n)
        if n:
            collect_cosines(self._rows(scores, weights), is_selected, cosines, masses)
        return cosines, masses

    def _rows(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> CosineRows:
        columns = np.ascontiguousarray(scores.T)
        return CosineRows(scores, columns, self.patterns, self.bits.starts, self.lowest, weights)


def min_cosine(Q: NDArray[np.float64]) -> float:
    """What no cosine of two rows falls below, whatever the order of each column's scores.

    Where every column keeps its sign and its scores differ by a factor of ``r`` at most, the cosine is at
    least ``2 / (r + 1 / r)``; without a common sign at least -1, and with zeros at least 0.

    Source: Polya & Szego's inequality, the converse of Cauchy's.
    """
    low, high = np.nanmin(Q, axis=0), np.nanmax(Q, axis=0)
    if (np.sign(low) * np.sign(high) < 0).any():
        return -1.0
    small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    if not small.all():
        return 0.0
    factor = float((large / small).max())
    return max(0.0, min(2 / (factor + 1 / factor) - LAST_DIGIT, 1 - MIN_WIDTH))


def can_have_zero_rows(Q: NDArray[np.float64]) -> bool:
    """Whether a table with these columns and missing cells, shuffled or not, can have a row of zeros."""
    has_zero = (Q == 0).any(axis=0)
    return bool((has_zero | np.isnan(Q)).all(axis=1).any())
