"""Tables drawn under a null, and what a block of them leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import draw_fixed_margins, find_common_ancestor, shuffle_columns
from analyses.numerics.similarity.distributions import STATISTICS, KsDistances, compare_distances, compare_exactly
from analyses.numerics.similarity.pairs.pair_counter import PairCounter
from analyses.numerics.similarity.pairs.pair_counts import N_SIDES, PairCounts
from analyses.numerics.similarity.similarities import Counts, Similarity
from analyses.numerics.similarity.weighted_distributions import compare_weighted_distances, describe_masses
from tracker.statistics.jit import bit_counts
from tracker.statistics.rng_streams import stream_key

Null = Literal["columns", "margins"]


@dataclass(frozen=True, slots=True)
class DrawBlock:
    """What one block of draws leaves behind.

    Attributes:
        used: places of the counts that are not all zero.
        counts: ``(n, used.size)`` counts at these places; ``(0, used.size)`` where they are not kept.
        sides: ``(n, N_SIDES)``.
        total: ``(used.size,)`` counts of all draws together.
        statistics, signs: ``(n, n_similarities, 4)``; signs where they are known without the other draws.
        row_sums: ``(n,)``, see `compute_row_sum_spread`.
        differs: whether any draw differs from the observed table.
    """

    used: NDArray[np.int64]
    counts: Counts
    sides: Counts
    total: Counts
    statistics: NDArray[np.float64]
    signs: NDArray[np.int8]
    row_sums: Counts
    differs: bool

    def without_counts(self) -> DrawBlock:
        """What is needed once the counts are in the pool."""
        return replace(self, used=self.used[:0], counts=self.counts[:, :0], total=self.total[:0])


@dataclass(frozen=True, slots=True)
class NullDraws:
    """Tables drawn under a null, and what is counted of them.

    Attributes:
        counter: of the observed table.
        similarities: to describe.
        observed: counts of the observed table.
        key: of the seed.
        ancestor: where the draws of ``margins`` start; None for ``columns``.
        keeps_counts: whether the counts of a block are kept.
    """

    counter: PairCounter
    similarities: tuple[Similarity, ...]
    observed: PairCounts
    key: NDArray[np.uint64]
    ancestor: NDArray[np.uint64] | None
    keeps_counts: bool

    @classmethod
    def create(
        cls, counter: PairCounter, similarities: tuple[Similarity, ...], *, null: Null, seed: int, keeps_counts: bool
    ) -> NullDraws:
        """Draws from the table of a counter.

        Args:
            counter: of the observed table.
            similarities: to describe.
            null: "columns" or "margins".
            seed: of all draws.
            keeps_counts: whether the counts of a block are kept.
        """
        key = stream_key(seed)
        ancestor = find_common_ancestor(counter.table, key) if null == "margins" else None
        return cls(counter, similarities, counter.count(counter.table.rows), key, ancestor, keeps_counts)

    def rows(self, permutation: int) -> NDArray[np.uint64]:
        """One drawn table, packed."""
        if self.ancestor is None:
            return shuffle_columns(self.counter.table, self.key, permutation)
        return draw_fixed_margins(self.counter.table, self.ancestor, self.key, permutation)

    def count(self, run: range) -> tuple[PairCounts, Counts, bool]:
        """Counts and `compute_row_sum_spread` of some draws, and whether any differs from the observed table."""
        counter, dtype = self.counter, self.counter.dtype
        counts = PairCounts(np.empty((len(run), counter.n_values), dtype), np.empty((len(run), N_SIDES), dtype))
        row_sums, differs = np.empty(len(run), dtype), False
        for b, permutation in enumerate(run):
            rows = self.rows(permutation)
            counts.values[b], counts.sides[b] = counter.count(rows)
            row_sums[b] = compute_row_sum_spread(rows, counter.weights)
            differs = differs or not np.array_equal(rows, counter.table.rows)
        return counts, row_sums, differs

    def describe_block(self, run: range) -> DrawBlock:
        """What some draws leave behind."""
        (counts, sides), row_sums, differs = self.count(run)
        statistics = np.empty((len(run), len(self.similarities), len(STATISTICS)))
        signs = np.zeros(statistics.shape, np.int8)
        for i, similarity in enumerate(self.similarities):
            lattice = self.counter.lattice(similarity)
            drawn = np.ascontiguousarray(self.counter.select(similarity, counts, sides))
            if self.counter.weights is None:
                invariant = self.invariant_statistics(similarity)
                statistics[:, i], signs[:, i] = compare_exactly(
                    lattice, self.observed_counts(similarity), drawn, invariant
                )
            else:
                statistics[:, i] = describe_masses(drawn, lattice.values)
        used = np.flatnonzero(counts.any(axis=0))
        kept = counts[:, used] if self.keeps_counts else counts[:0, used]
        if kept.dtype == np.int64:
            kept = kept.astype(np.uint32 if kept.max(initial=0) < 2**32 else np.uint64)
        return DrawBlock(used, kept, sides, counts.sum(axis=0)[used], statistics, signs, row_sums, differs)

    def distances(self, run: range, block: DrawBlock, pools: list[Counts]) -> list[KsDistances]:
        """For each similarity, the observed table's distance from the pool, and that of the draws of one block."""
        if self.keeps_counts:
            counts, sides = np.zeros((len(run), self.counter.n_values), self.counter.dtype), block.sides
            counts[:, block.used] = block.counts
        else:
            (counts, sides), _, _ = self.count(run)
        compare = compare_distances if self.counter.weights is None else compare_weighted_distances
        return [
            compare(
                self.observed_counts(similarity),
                np.ascontiguousarray(self.counter.select(similarity, counts, sides)),
                pool,
            )
            for similarity, pool in zip(self.similarities, pools, strict=True)
        ]

    def observed_counts(self, similarity: Similarity) -> Counts:
        """The observed table's counts of one similarity."""
        values, sides = self.observed
        return np.asarray(self.counter.select(similarity, values[None, :], sides[None, :])[0])

    def invariant_statistics(self, similarity: Similarity) -> frozenset[str]:
        """Statistics of a similarity that no draw can change, under either null.

        The agreements of all pairs add up to the same number in every draw, column by column; so does their
        mean share, if every two rows that share cells share equally many. Weights end that.
        """
        if similarity.invariant_mean and self.counter.weights is None and self.counter.table.overlaps().size == 1:
            return frozenset({"mean"})
        return frozenset()


def compute_row_sum_spread(rows: NDArray[np.uint64], weights: NDArray[np.float64] | None) -> float:
    """A measure of how unequal the row sums of a table are: the sum of squares, or the weighted variance."""
    ones = bit_counts(rows)
    if weights is None:
        return int((ones**2).sum())
    total = weights.sum()
    mean = (weights * ones).sum() / total
    return float((weights * (ones - mean) ** 2).sum() / total)
