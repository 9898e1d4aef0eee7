"""Similarities of the rows of a binary table, against tables drawn under a null: exact and fast.

The distribution of a similarity over all pairs is a vector of counts (`pair_lattice`), found without
storing a pair (`pair_counter`), and everything reported is a function of these integers
(`distributions`). Where rows have weights, the vector holds weights of pairs (`weighted_distributions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import common_ancestor, fixed_margins, shuffled_columns
from analyses.numerics.similarity.bit_tables import BitTable
from analyses.numerics.similarity.distributions import ATOMIC, STATISTICS, compare_distances, compare_exactly, described
from analyses.numerics.similarity.pair_counter import Counter, Counts
from analyses.numerics.similarity.pair_counts import SIDES
from analyses.numerics.similarity.similarity_test import SimilarityTest, SimilarityTests
from analyses.numerics.similarity.weighted_distributions import (
    TIE,
    compare_weighted_distances,
    described_by_weight,
    signs_within,
    ties,
)
from tracker.statistics.jit import bit_counts
from tracker.statistics.resampling import PermutationTest, build_permutation_test, map_blocks, split_blocks
from tracker.statistics.rng_streams import stream_key

Null = Literal["columns", "margins"]

SIMILARITIES = ("hamming", "cosine", "cosine_nonzero", "jaccard", "jaccard_empty0")
MAX_KEPT = 1 << 28
"""Counts of draws that are kept between the two passes over them, at 4 or 8 bytes each; more are counted again."""
BLOCKS_AT_ONCE = 16
"""Blocks whose counts lie side by side in memory where they are not kept."""

INVARIANT_HAMMING = (
    "the same in every table with these column sums: a column with m ones among n prompts adds "
    "C(m, 2) + C(n - m, 2) agreements wherever its ones are"
)
INVARIANT_ROW_SUMS = "this null keeps the row sums"
ONE_VARYING_COLUMN = "only one model has both right and wrong answers, so shuffling only reorders the prompts"
ONE_VARYING_BY_WEIGHT = (
    "only one model has both right and wrong answers, so shuffling only moves them among heavy and light prompts"
)
NO_OTHER_TABLE = "no draw differed from the observed table: its row and column sums leave no cell free"


@dataclass(frozen=True, slots=True)
class Draws:
    """Tables drawn under a null, and what is counted of them.

    Attributes:
        counter: of the observed table.
        names: of the similarities.
        observed, sides: counts of the observed table.
        key: of the seed.
        ancestor: where the draws of ``margins`` start; None for ``columns``.
        keeps: whether the counts of a block are kept.
    """

    counter: Counter
    names: tuple[str, ...]
    observed: Counts
    sides: Counts
    key: NDArray[np.uint64]
    ancestor: NDArray[np.uint64] | None
    keeps: bool

    def rows(self, permutation: int) -> NDArray[np.uint64]:
        """One drawn table, packed."""
        if self.ancestor is None:
            return shuffled_columns(self.counter.table, self.key, permutation)
        return fixed_margins(self.counter.table, self.ancestor, self.key, permutation)

    def counted(self, run: range) -> tuple[Counts, Counts, Counts, bool]:
        """Counts, side counts and `spread_of_row_sums` of some draws, and whether any differs from the table."""
        dtype = self.counter.dtype
        counts, sides = np.empty((len(run), self.observed.size), dtype), np.empty((len(run), SIDES), dtype)
        row_sums, moved = np.empty(len(run), dtype), False
        for b, permutation in enumerate(run):
            rows = self.rows(permutation)
            counts[b], sides[b] = self.counter.count(rows)
            row_sums[b] = spread_of_row_sums(rows, self.counter.weights)
            moved = moved or not np.array_equal(rows, self.counter.table.rows)
        return counts, sides, row_sums, moved

    def block(self, run: range) -> Block:
        """What some draws leave behind."""
        counts, sides, row_sums, moved = self.counted(run)
        statistics = np.empty((len(run), len(self.names), len(STATISTICS)))
        signs = np.zeros(statistics.shape, np.int8)
        for i, name in enumerate(self.names):
            lattice = self.counter.lattice(name)
            others = np.ascontiguousarray(self.counter.of_similarity(name, counts, sides))
            if self.counter.weights is None:
                known = known_equal(name, self.counter)
                statistics[:, i], signs[:, i] = compare_exactly(lattice, self.mine(name), others, known)
            else:
                statistics[:, i] = described_by_weight(others, lattice.values)
        used = np.flatnonzero(counts.any(axis=0))
        kept = counts[:, used] if self.keeps else counts[:0, used]
        if kept.dtype == np.int64:
            kept = kept.astype(np.uint32 if kept.max(initial=0) < 2**32 else np.uint64)
        return Block(used, kept, sides, counts.sum(axis=0)[used], statistics, signs, row_sums, moved)

    def mine(self, name: str) -> Counts:
        """The observed table's counts of one similarity."""
        return np.asarray(self.counter.of_similarity(name, self.observed[None, :], self.sides[None, :])[0])


@dataclass(frozen=True, slots=True)
class Block:
    """What one block of draws leaves behind.

    Attributes:
        used: places of the counts that are not all zero.
        counts: ``(n, used.size)`` counts at these places; ``(0, used.size)`` where they are not kept.
        sides: ``(n, SIDES)``.
        total: ``(used.size,)`` counts of all draws together.
        statistics, signs: ``(n, n_similarities, 4)``; signs where they are known without the other draws.
        row_sums: ``(n,)``, see `spread_of_row_sums`.
        moved: whether any draw differs from the observed table.
    """

    used: NDArray[np.int64]
    counts: Counts
    sides: Counts
    total: Counts
    statistics: NDArray[np.float64]
    signs: NDArray[np.int8]
    row_sums: Counts
    moved: bool

    def without_counts(self) -> Block:
        """What is needed once the counts are in the pool."""
        nothing = self.used[:0]
        return replace(self, used=nothing, counts=self.counts[:, :0], total=self.total[:0])


def spread_of_row_sums(rows: NDArray[np.uint64], weights: NDArray[np.float64] | None) -> float:
    """What tells tables apart by how unequal their row sums are: the sum of squares, or the weighted variance."""
    ones = bit_counts(rows)
    if weights is None:
        return int((ones**2).sum())
    total = weights.sum()
    mean = (weights * ones).sum() / total
    return float((weights * (ones - mean) ** 2).sum() / total)


def known_equal(name: str, counter: Counter) -> frozenset[str]:
    """Statistics of a similarity that no draw can change, under either null.

    The agreements of all pairs add up to the same number in every draw, column by column; so does their
    mean share, if every two rows that share cells share equally many. Weights end that.
    """
    fixed = name == "hamming" and counter.weights is None and counter.table.overlaps().size == 1
    return frozenset({"mean"}) if fixed else frozenset()


def _draw_block(block: int, *, runs: Sequence[range], draws: Draws) -> Block:
    return draws.block(runs[block])


def _distance_block(
    block: int, *, runs: Sequence[range], draws: Draws, blocks: list[Block], pools: Sequence[Counts]
) -> list[tuple[float, NDArray[np.float64], NDArray[np.int8]]]:
    """For each similarity, the observed table's distance from the pool, and that of the draws of one block."""
    left = blocks[block]
    if draws.keeps:
        counts, sides = np.zeros((len(runs[block]), draws.observed.size), draws.counter.dtype), left.sides
        counts[:, left.used] = left.counts
    else:
        counts, sides, _, _ = draws.counted(runs[block])
    compare = compare_distances if draws.counter.weights is None else compare_weighted_distances
    return [
        compare(draws.mine(name), np.ascontiguousarray(draws.counter.of_similarity(name, counts, sides)), pool)
        for name, pool in zip(draws.names, pools, strict=True)
    ]


def binary_similarities(
    table: NDArray[np.float64],
    *,
    n_permutations: int,
    null: Null = "columns",
    similarities: tuple[str, ...] = SIMILARITIES,
    seed: int,
    weights: NDArray[np.float64] | None = None,
) -> SimilarityTests:
    """Compare the similarities of a binary table's rows with those of tables drawn under a null.

    Args:
        table: ``(n, k)`` of 0, 1 and NaN (missing), ``n >= 2`` and ``1 <= k <= MAX_COLUMNS``, for cosines
            ``MAX_COSINE_COLUMNS``; every row and column has a measured cell.
        n_permutations: draws, at least 1.
        null: "columns" shuffles each column among its measured cells; "margins" keeps the sums of rows too.
        similarities: some of `SIMILARITIES`.
        seed: of all draws.
        weights: ``(n,)`` float64, positive, mean 1; they stay at their rows in every draw. None: all count the same.
    """
    bits = BitTable.of(table)
    counter = Counter.of(bits, cosine=any(name.startswith("cosine") for name in similarities), weights=weights)
    key = stream_key(seed)
    observed, sides = counter.count(bits.rows)
    ancestor = common_ancestor(bits, key) if null == "margins" else None
    keeps = n_permutations * observed.size <= MAX_KEPT
    draws = Draws(counter, similarities, observed, sides, key, ancestor, keeps)
    runs = split_blocks(n_permutations, max(1, min(50, 4_000_000 // observed.size)))
    blocks: list[Block] = []
    pooled, pooled_sides = np.zeros_like(observed), np.zeros_like(sides)
    for batch in split_blocks(len(runs), len(runs) if keeps else BLOCKS_AT_ONCE):
        done = map_blocks(partial(_draw_block, runs=runs[batch.start : batch.stop], draws=draws), len(batch))
        for block in done:
            pooled[block.used] += block.total
            pooled_sides += block.sides.sum(axis=0)
        blocks += done if keeps else [block.without_counts() for block in done]
    drawn = [counter.of_similarity(name, pooled[None, :], pooled_sides[None, :])[0] for name in similarities]
    pools = [draws.mine(name) + others for name, others in zip(similarities, drawn, strict=True)]
    task = partial(_distance_block, runs=runs, draws=draws, blocks=blocks, pools=pools)
    distances = map_blocks(task, len(runs))
    reason = _nothing_moves(counter, blocks, null)
    means = counter.mean_to_others()
    n_pairs = counter.n_pairs()
    return SimilarityTests(
        tests=tuple(
            _test(name, i, draws, blocks, [block[i] for block in distances], drawn[i], reason)
            for i, name in enumerate(similarities)
        ),
        n_pairs=n_pairs,
        n_disjoint=table.shape[0] * (table.shape[0] - 1) // 2 - n_pairs,
        mean_to_others={
            name: means[:, i] for i, name in enumerate(("hamming", "cosine", "jaccard")) if name in similarities
        },
        row_sums=_row_sums(counter, blocks, reason or (INVARIANT_ROW_SUMS if null == "margins" else ""))
        if bits.is_complete
        else None,
    )


def _nothing_moves(counter: Counter, blocks: list[Block], null: Null) -> str:
    """Why no statistic at all can be a test; empty if some can."""
    if null == "margins":
        return "" if any(block.moved for block in blocks) else NO_OTHER_TABLE
    table = counter.table
    varying = int(((table.ones > 0) & (table.ones < np.diff(table.cell_starts))).sum())
    one = ONE_VARYING_COLUMN if counter.weights is None else ONE_VARYING_BY_WEIGHT
    return one if varying < 2 and table.is_complete else ""


def _test(
    name: str, i: int, draws: Draws, blocks: list[Block],
    distances: list[tuple[float, NDArray[np.float64], NDArray[np.int8]]], pooled: Counts, reason: str,
) -> SimilarityTest:  # fmt: skip
    values, mine = draws.counter.lattice(name).values, draws.mine(name)
    statistics = np.concatenate([block.statistics[:, i] for block in blocks])
    if draws.counter.weights is None:
        own, _ = described(mine[None, :], values)
        signs = np.concatenate([block.signs[:, i] for block in blocks])
        same = 0.0
    else:
        own = described_by_weight(mine[None, :], values)
        signs = signs_within(statistics - own[0], ties(own[0], statistics))
        same = TIE
    known = known_equal(name, draws.counter)
    distance = build_permutation_test(
        distances[0][0], np.concatenate([d[1] for d in distances]), np.concatenate([d[2] for d in distances]), reason
    )
    if distance.reason and (np.append(distance.null, distance.observed) <= same).all():
        reason = distance.reason  # all draws have the same distribution
    comparisons: dict[str, PermutationTest] = {
        statistic: build_permutation_test(
            own[0, s],
            statistics[:, s],
            signs[:, s],
            reason or (INVARIANT_HAMMING if statistic in known else ""),
            on_an_atom=statistic in ATOMIC,
        )
        for s, statistic in enumerate(STATISTICS)
    }
    comparisons["ks_d"] = distance
    return SimilarityTest(name=name, values=values, width=0.0, observed=mine, pooled=pooled, comparisons=comparisons)


def _row_sums(counter: Counter, blocks: list[Block], reason: str) -> PermutationTest:
    """Variance of the ones in a row; without weights the sum of row sums is fixed, so squares decide ties."""
    drawn = np.concatenate([block.row_sums for block in blocks])
    own = spread_of_row_sums(counter.table.rows, counter.weights)
    if counter.weights is not None:
        return build_permutation_test(own, drawn, signs_within(drawn - own, TIE * max(own, float(drawn.max()))), reason)
    n = counter.table.rows.shape[0]
    mean = counter.table.ones.sum() / n
    return build_permutation_test(own / n - mean**2, drawn / n - mean**2, np.sign(drawn - own).astype(np.int8), reason)
