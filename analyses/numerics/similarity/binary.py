"""Similarities of the rows of a binary table, against tables drawn under a null: exact and fast.

The distribution of a similarity over all pairs is a vector of counts (`lattices`), found without
storing a pair (`pair_counter`), and everything reported is a function of these integers
(`distributions`). Where rows have weights, the vector holds weights of pairs (`weighted_distributions`).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.bit_tables import BitTable
from analyses.numerics.similarity.distributions import ATOMIC, STATISTICS, KsDistances, describe_counts, join_distances
from analyses.numerics.similarity.null_draws import DrawBlock, Null, NullDraws, compute_row_sum_spread
from analyses.numerics.similarity.pairs.pair_counter import PairCounter
from analyses.numerics.similarity.similarities import SIMILARITIES, Counts, Similarity
from analyses.numerics.similarity.similarity_test import SimilarityTest, SimilarityTests
from analyses.numerics.similarity.weighted_distributions import (
    STATISTIC_TOLERANCE,
    compute_tie_tolerances,
    describe_masses,
    signs_within,
)
from tracker.statistics.resampling import PermutationTest, build_permutation_test, map_blocks, split_blocks

MAX_KEPT = 1 << 28
"""Counts of draws that are kept between the two passes over them, at 4 or 8 bytes each; more are counted again."""
MAX_BLOCKS = 16
"""Blocks whose counts lie side by side in memory where they are not kept."""

INVARIANT_ROW_SUMS = "this null keeps the row sums"
ONE_VARYING_COLUMN = "only one model has both right and wrong answers, so shuffling only reorders the prompts"
ONE_VARYING_BY_WEIGHT = (
    "only one model has both right and wrong answers, so shuffling only moves them among heavy and light prompts"
)
NO_OTHER_TABLE = "no draw differed from the observed table: its row and column sums leave no cell free"


def compare_binary(
    Q: NDArray[np.float64],
    *,
    n_permutations: int,
    null: Null = "columns",
    similarities: tuple[Similarity, ...] = SIMILARITIES,
    seed: int,
    weights: NDArray[np.float64] | None = None,
) -> SimilarityTests:
    """Compare the similarities of a binary table's rows with those of tables drawn under a null.

    Args:
        Q: ``(n, k)`` of 0, 1 and NaN (missing), ``n >= 2`` and at least one column, at most ``max_columns`` of each
            similarity; every row and column has a measured cell.
        n_permutations: draws, at least 1.
        null: "columns" shuffles each column among its measured cells; "margins" keeps the sums of rows too.
        similarities: some of `SIMILARITIES`.
        seed: of all draws.
        weights: ``(n,)`` float64, positive, mean 1; they stay at their rows in every draw. None: all count the same.
    """
    counter = PairCounter.create(BitTable.from_scores(Q), similarities, weights)
    keeps_counts = n_permutations * counter.n_values <= MAX_KEPT
    draws = NullDraws.create(counter, similarities, null=null, seed=seed, keeps_counts=keeps_counts)
    return _compare_with_draws(draws, split_blocks(n_permutations, max(1, min(50, 4_000_000 // counter.n_values))))


def _compare_with_draws(draws: NullDraws, runs: list[range]) -> SimilarityTests:
    counter = draws.counter
    blocks, pooled = _describe_draws(draws, runs)
    pools = [draws.observed_counts(s) + drawn for s, drawn in zip(draws.similarities, pooled, strict=True)]
    distances = map_blocks(lambda block: draws.distances(runs[block], blocks[block], pools), len(runs))
    reason = _unchanged_reason(draws, blocks)
    n, n_pairs = counter.table.rows.shape[0], counter.n_pairs()
    return SimilarityTests(
        tests=tuple(
            _test(i, draws, blocks, [block[i] for block in distances], pooled[i], reason)
            for i in range(len(draws.similarities))
        ),
        n_pairs=n_pairs,
        n_disjoint=n * (n - 1) // 2 - n_pairs,
        mean_to_others=counter.mean_to_others(),
        row_sums=_row_sums(draws, blocks, reason) if counter.table.is_complete else None,
    )


def _describe_block(block: int, *, draws: NullDraws, runs: list[range]) -> DrawBlock:
    return draws.describe_block(runs[block])


def _describe_draws(draws: NullDraws, runs: list[range]) -> tuple[list[DrawBlock], list[Counts]]:
    """What all draws leave behind, and the counts of all of them together for each similarity."""
    blocks: list[DrawBlock] = []
    values, sides = (np.zeros_like(counts) for counts in draws.observed)
    for batch in split_blocks(len(runs), len(runs) if draws.keeps_counts else MAX_BLOCKS):
        described = map_blocks(partial(_describe_block, draws=draws, runs=runs[batch.start : batch.stop]), len(batch))
        for block in described:
            values[block.used] += block.total
            sides += block.sides.sum(axis=0)
        blocks += described if draws.keeps_counts else [block.without_counts() for block in described]
    return blocks, [draws.counter.select(s, values[None, :], sides[None, :])[0] for s in draws.similarities]


def _unchanged_reason(draws: NullDraws, blocks: list[DrawBlock]) -> str:
    """Why no statistic at all can be a test; empty if some can."""
    if draws.ancestor is not None:
        return "" if any(block.differs for block in blocks) else NO_OTHER_TABLE
    table = draws.counter.table
    n_varying = int(((table.ones > 0) & (table.ones < np.diff(table.cell_starts))).sum())
    reason = ONE_VARYING_COLUMN if draws.counter.weights is None else ONE_VARYING_BY_WEIGHT
    return reason if n_varying < 2 and table.is_complete else ""


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
    table, weights = draws.counter.table, draws.counter.weights
    reason = reason or (INVARIANT_ROW_SUMS if draws.ancestor is not None else "")
    null = np.concatenate([block.row_sums for block in blocks])
    observed = compute_row_sum_spread(table.rows, weights)
    if weights is not None:
        return build_permutation_test(
            observed,
            null,
            signs_within(null - observed, STATISTIC_TOLERANCE * max(observed, float(null.max()))),
            reason,
        )
    n = table.rows.shape[0]
    mean = table.ones.sum() / n
    return build_permutation_test(
        observed / n - mean**2, null / n - mean**2, np.sign(null - observed).astype(np.int8), reason
    )
