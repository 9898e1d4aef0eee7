"""Similarities of the rows of a binary table, against tables drawn under a null: exact and fast.

The distribution of a similarity over all pairs is a vector of counts (`lattices`), found without
storing a pair (`pair_counter`), and everything reported is a function of these integers
(`distributions`). Where rows have weights, the vector holds weights of pairs (`weighted_distributions`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import Null, NullTables
from analyses.numerics.similarity.distributions import (
    ATOMIC,
    STATISTICS,
    KsDistances,
    compare_distances,
    compare_exactly,
    describe_counts,
    join_distances,
)
from analyses.numerics.similarity.engine import KERNELS, Engine
from analyses.numerics.similarity.pairs.pair_counter import PairCounter, find_places
from analyses.numerics.similarity.pairs.pair_counts import N_SIDES, PairCounts
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import SIMILARITIES, Counts, Similarity
from analyses.numerics.similarity.similarity_test import SimilarityTest, SimilarityTests
from analyses.numerics.similarity.weighted_distributions import (
    STATISTIC_TOLERANCE,
    compare_weighted_distances,
    compute_tie_tolerances,
    describe_masses,
    signs_within,
)
from tracker.statistics.jit import bit_counts
from tracker.statistics.parallel.blocks import expect_blocks, map_blocks, split_blocks
from tracker.statistics.parallel.time_limits import LoopTimer
from tracker.statistics.resampling import PermutationTest, build_permutation_test

MAX_KEPT = 1 << 28
"""Counts of draws that are kept between the two passes over them, at 4 or 8 bytes each; more are counted again."""
WORDS_OF_BLOCK = 10_000_000_000
"""Comparisons of 64 scores in a block, by all ordered pairs of rows: some seconds."""
MAX_BLOCKS = 8
"""Blocks whose counts lie side by side in memory where they are not kept."""

INVARIANT_ROW_SUMS = "this null keeps the row sums"
ONE_VARYING_COLUMN = "only one model has both right and wrong answers, so shuffling only reorders the prompts"
ONE_VARYING_BY_WEIGHT = (
    "only one model has both right and wrong answers, so shuffling only moves them among heavy and light prompts"
)
NO_OTHER_TABLE = "no draw differed from the observed table: its row and column sums leave no cell free"


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

    used: NDArray[np.int32]
    counts: Counts
    sides: Counts
    total: Counts
    statistics: NDArray[np.float64]
    signs: NDArray[np.int8]
    row_sums: Counts
    differs: bool

    def without_counts(self) -> DrawBlock:
        """What is needed once the counts are in the pool."""
        empty = {name: getattr(self, name)[..., :0].copy() for name in ("used", "counts", "total")}
        return replace(self, **empty)  # slices alone would keep the arrays alive


@dataclass(frozen=True, slots=True)
class Pool:
    """One similarity of the observed and all drawn tables together.

    Attributes:
        places: ``(m,)``, see `find_places`.
        counts: ``(m,)`` of all tables.
        observed: ``(m,)`` of the observed table.
    """

    places: NDArray[np.intp]
    counts: Counts
    observed: Counts

    @classmethod
    def join(cls, observed: Counts, drawn: Counts) -> Pool:
        """Return the pool from the counts at all values of the lattice."""
        places = find_places(observed[None, :], drawn[None, :])
        return cls(places, observed[places] + drawn[places], observed[places])


@dataclass(frozen=True, kw_only=True)
class NullDraws:
    """Tables drawn under a null, and what is counted of them.

    Attributes:
        table: the observed table.
        similarities: to describe.
        tables: the drawn tables.
        n_permutations: how many are drawn.
        engine: see `compare_binary`.
    """

    table: ScoreTable
    similarities: tuple[Similarity, ...]
    tables: NullTables
    n_permutations: int
    engine: Engine = KERNELS

    @cached_property
    def counter(self) -> PairCounter:
        """Counts the pairs of the observed table and of every draw."""
        return self.engine.create_counter(self.table, self.similarities)

    @cached_property
    def observed(self) -> PairCounts:
        """Counts of the observed table."""
        return self.counter.count(self.table.packed.bits)

    @cached_property
    def runs(self) -> list[range]:
        """The draws of each block: few enough for its memory, and for an early estimate of the time of all."""
        n_words, n = self.table.packed.bits.shape[1], self.table.n_rows
        fit = min(4_000_000 // self.counter.n_values, WORDS_OF_BLOCK // (n * n * n_words))
        return split_blocks(self.n_permutations, max(1, min(50, fit)))

    @property
    def keeps_counts(self) -> bool:
        """Whether the counts of a block are kept."""
        return self.n_permutations * self.counter.n_values <= MAX_KEPT

    def count(self, run: range) -> tuple[PairCounts, Counts, bool]:
        """Counts and `compute_row_sum_spread` of some draws, and whether any differs from the observed table."""
        counter, dtype = self.counter, self.counter.dtype
        sides, row_sums = np.empty((len(run), N_SIDES), dtype), np.empty(len(run), dtype)
        values = np.empty((len(run), counter.n_values), dtype) if len(run) > 1 else None
        differs = False
        for b, permutation in enumerate(run):
            bits = self.tables.draw(permutation)
            drawn, sides[b] = counter.count(bits)
            if values is None:  # a large lattice: no second array
                values = drawn[None, :]
            else:
                values[b] = drawn
            row_sums[b] = compute_row_sum_spread(bits, counter.weights)
            differs = differs or not np.array_equal(bits, self.table.packed.bits)
        assert values is not None
        return PairCounts(values, sides), row_sums, differs

    def describe_block(self, block: int) -> DrawBlock:
        """What the draws of one block leave behind."""
        run, counter = self.runs[block], self.counter
        (counts, sides), row_sums, differs = self.count(run)
        used = np.flatnonzero(counts[0] if len(run) == 1 else counts.any(axis=0))
        statistics = np.empty((len(run), len(self.similarities), len(STATISTICS)))
        signs = np.zeros(statistics.shape, np.int8)
        seen, seen_sides = (part[None, :] for part in self.observed)
        for i, similarity in enumerate(self.similarities):
            places = self.find_places(similarity, used)
            lattice, drawn = counter.lattice(similarity).at(places), counter.select(similarity, counts, sides, places)
            if counter.weights is None:
                observed = counter.select(similarity, seen, seen_sides, places)[0]
                invariant = self.invariant_statistics(similarity)
                statistics[:, i], signs[:, i] = compare_exactly(lattice, observed, drawn, invariant)
            else:
                statistics[:, i] = describe_masses(drawn, lattice.values)
        kept = counts.take(used, 1)
        kept, total = _shrink(kept if self.keeps_counts else kept[:0]), _shrink(kept.sum(axis=0))
        return DrawBlock(used.astype(np.int32), kept, sides, total, statistics, signs, row_sums, differs)

    def find_places(self, similarity: Similarity, used: NDArray[np.intp]) -> NDArray[np.intp]:
        """Values of a lattice that the observed table or one of some draws has, with its ends; see `find_places`.

        Args:
            similarity: whose lattice it is.
            used: places among all lattices at which a draw has counts, ascending.
        """
        part = self.counter.part(similarity)
        first, last = np.searchsorted(used, [part.start, part.stop])
        return np.union1d(used[first:last] - part.start, find_places(self.observed.values[None, part]))

    def distances(self, run: range, block: DrawBlock, pools: list[Pool]) -> list[KsDistances]:
        """For each similarity, the observed table's distance from the pool, and that of the draws of one block."""
        if self.keeps_counts:
            counts, sides = np.zeros((len(run), self.counter.n_values), self.counter.dtype), block.sides
            counts[:, block.used] = block.counts
        else:
            (counts, sides), _, _ = self.count(run)
        compare = compare_distances if self.counter.weights is None else compare_weighted_distances
        return [
            compare(pool.observed, self.counter.select(similarity, counts, sides, pool.places), pool.counts)
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
        if similarity.invariant_mean and self.counter.weights is None and self.table.packed.overlaps().size == 1:
            return frozenset({"mean"})
        return frozenset()

    def unchanged_reason(self, blocks: list[DrawBlock]) -> str:
        """Why no statistic at all can be a test; empty if some can."""
        if self.tables.ancestor is not None:
            return "" if any(block.differs for block in blocks) else NO_OTHER_TABLE
        reason = ONE_VARYING_COLUMN if self.table.weights is None else ONE_VARYING_BY_WEIGHT
        return reason if self.table.only_reorders else ""


def compare_binary(
    table: ScoreTable,
    *,
    n_permutations: int,
    null: Null = "columns",
    similarities: tuple[Similarity, ...] = SIMILARITIES,
    seed: int,
    engine: Engine = KERNELS,
) -> SimilarityTests:
    """Compare the similarities of a binary table's rows with those of tables drawn under a null.

    Args:
        table: at least 2 rows and one column, at most ``max_columns`` of some similarity.
        n_permutations: draws, at least 1.
        null: "columns" shuffles each column among its measured cells; "margins" keeps the sums of rows too.
        similarities: some of `SIMILARITIES`; those with fewer ``max_columns`` than the table has columns are left out.
        seed: of all draws.
        engine: counts pairs and draws tables; without effect on the result.
    """
    draws = NullDraws(
        table=table,
        similarities=tuple(s for s in similarities if table.n_columns <= s.max_columns),
        tables=NullTables.create(table.packed, null=null, seed=seed, shuffle=engine.shuffle_columns),
        n_permutations=n_permutations,
        engine=engine,
    )
    return _compare_with_draws(draws)


def _compare_with_draws(draws: NullDraws) -> SimilarityTests:
    blocks, pooled = _describe_draws(draws)
    pools = [Pool.join(draws.observed_counts(s), drawn) for s, drawn in zip(draws.similarities, pooled, strict=True)]
    distances = map_blocks(lambda block: draws.distances(draws.runs[block], blocks[block], pools), len(blocks))
    reason = draws.unchanged_reason(blocks)
    table, n_pairs = draws.table, draws.counter.n_pairs()
    return SimilarityTests(
        tests=tuple(
            _test(i, draws, blocks, [block[i] for block in distances], pooled[i], reason)
            for i in range(len(draws.similarities))
        ),
        n_pairs=n_pairs,
        n_disjoint=table.count_disjoint_pairs(n_pairs),
        mean_to_others=draws.counter.mean_to_others(),
        row_sums=_row_sums(draws, blocks, reason) if table.packed.is_complete else None,
    )


def _shrink(counts: Counts) -> Counts:
    """Return integer counts in half the bytes if these hold them."""
    fits = counts.dtype == np.int64 and counts.max(initial=0) < 2**32
    return counts.astype(np.uint32) if fits else counts


def _describe_block(place: int, *, draws: NullDraws, batch: range) -> DrawBlock:
    return draws.describe_block(batch[place])


def _describe_draws(draws: NullDraws) -> tuple[list[DrawBlock], list[Counts]]:
    """What all draws leave behind, and the counts of all of them together for each similarity."""
    blocks: list[DrawBlock] = []
    begun = time.monotonic()
    values, sides = (np.zeros_like(counts) for counts in draws.observed)
    expect_blocks(time.monotonic() - begun, draws.n_permutations * (1 if draws.keeps_counts else 2))
    n_blocks = len(draws.runs)
    timer = LoopTimer(n_blocks)
    for batch in split_blocks(n_blocks, n_blocks if draws.keeps_counts else MAX_BLOCKS):
        task = partial(_describe_block, draws=draws, batch=batch)
        described = map_blocks(task, len(batch), timer=timer)
        for block in described:
            values[block.used] += block.total
            sides += block.sides.sum(axis=0)
        blocks += described if draws.keeps_counts else [block.without_counts() for block in described]
    return blocks, [draws.counter.select(s, values[None, :], sides[None, :])[0] for s in draws.similarities]


def _test(
    i: int, draws: NullDraws, blocks: list[DrawBlock], distances: list[KsDistances], pooled: Counts, reason: str
) -> SimilarityTest:
    similarity = draws.similarities[i]
    values, counts = draws.counter.lattice(similarity).values, draws.observed_counts(similarity)
    null = np.concatenate([block.statistics[:, i] for block in blocks])
    if draws.counter.weights is None:
        observed = describe_counts(counts[None, :], values)[0][0]
        signs = np.concatenate([block.signs[:, i] for block in blocks])
        tie = 0.0
    else:
        observed = describe_masses(counts[None, :], values)[0]
        signs = signs_within(null - observed, compute_tie_tolerances(observed, null))
        tie = STATISTIC_TOLERANCE
    invariant = draws.invariant_statistics(similarity)
    distance = build_permutation_test(*join_distances(distances), reason)
    if distance.reason and (np.append(distance.null, distance.observed) <= tie).all():
        reason = distance.reason  # all draws have the same distribution
    comparisons: dict[str, PermutationTest] = {
        statistic: build_permutation_test(
            observed[s],
            null[:, s],
            signs[:, s],
            reason or (similarity.invariant_mean if statistic in invariant else ""),
            on_an_atom=statistic in ATOMIC,
        )
        for s, statistic in enumerate(STATISTICS)
    }
    comparisons["ks_d"] = distance
    return SimilarityTest(
        name=similarity.name, values=values, width=0.0, observed=counts, pooled=pooled, comparisons=comparisons
    )


def _row_sums(draws: NullDraws, blocks: list[DrawBlock], reason: str) -> PermutationTest:
    """Variance of the ones in a row; without weights the sum of row sums is fixed, so squares decide ties."""
    packed, weights = draws.table.packed, draws.counter.weights
    reason = reason or (INVARIANT_ROW_SUMS if draws.tables.ancestor is not None else "")
    null = np.concatenate([block.row_sums for block in blocks])
    observed = compute_row_sum_spread(packed.bits, weights)
    if weights is not None:
        return build_permutation_test(
            observed,
            null,
            signs_within(null - observed, STATISTIC_TOLERANCE * max(observed, float(null.max()))),
            reason,
        )
    n = packed.bits.shape[0]
    mean = packed.ones.sum() / n
    return build_permutation_test(
        observed / n - mean**2, null / n - mean**2, np.sign(null - observed).astype(np.int8), reason
    )


def compute_row_sum_spread(bits: NDArray[np.uint64], weights: NDArray[np.float64] | None) -> float:
    """A measure of how unequal the row sums of a table are: the sum of squares, or the weighted variance."""
    ones = bit_counts(bits)
    if weights is None:
        return int((ones**2).sum())
    total = weights.sum()
    mean = (weights * ones).sum() / total
    return float((weights * (ones - mean) ** 2).sum() / total)
