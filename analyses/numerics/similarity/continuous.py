"""Cosine similarity of the rows of a continuous table, against tables with shuffled columns.

Every pair is computed, none is stored: one pass sums and bins, a second keeps only the pairs in the
bins that hold the wanted percentiles, so that these are exact. Sums run in a fixed order, so results
are the same bytes for any number of workers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import shuffle_scores
from analyses.numerics.similarity.cosines.cosine_distributions import CosineDistribution, describe_cosines
from analyses.numerics.similarity.cosines.cosine_layout import CosineLayout, can_have_zero_rows
from analyses.numerics.similarity.cosines.cosine_pairs import BINS
from analyses.numerics.similarity.distributions import ATOMIC, STATISTICS, compare_distances, join_distances
from analyses.numerics.similarity.similarity_test import SimilarityTest, SimilarityTests
from analyses.numerics.similarity.weighted_distributions import (
    compare_weighted_distances,
    compute_tie_tolerances,
    signs_within,
)
from tracker.statistics.resampling import PermutationTest, build_permutation_test, map_blocks, split_blocks
from tracker.statistics.rng_streams import stream_key

MAX_DRAWS = 50
"""Draws whose counts lie side by side in memory."""

ONE_VARYING_COLUMN = "only one model has scores that vary, so shuffling only reorders the prompts"
ONE_VARYING_BY_WEIGHT = (
    "only one model has scores that vary, so shuffling only moves them among heavy and light prompts"
)


def compare_continuous(
    Q: NDArray[np.float64], *, n_permutations: int, seed: int, weights: NDArray[np.float64] | None = None
) -> SimilarityTests:
    """Compare the cosines of a continuous table's rows with those after shuffling its columns.

    "cosine" gives a row of zeros similarity 0 to all others; "cosine_nonzero" leaves such rows out and
    is computed where the table or a draw can have one.

    Args:
        Q: ``(n, k)`` float64, NaN where missing, ``n >= 2``; every row and column has a measured cell.
        n_permutations: draws, at least 1.
        seed: of all draws.
        weights: ``(n,)`` float64, positive, mean 1; they stay at their rows in every draw. None: all count the same.
    """
    layout = CosineLayout.create(Q, weights)
    names = ("cosine", "cosine_nonzero") if can_have_zero_rows(Q) else ("cosine",)
    scores = np.ascontiguousarray(np.nan_to_num(Q[layout.bits.order]))
    draws = _describe_draws(scores, layout, names, n_permutations, seed)
    observed = describe_cosines(scores, layout, names, np.empty(BINS, np.int64))
    n_varying = int((np.nanmax(Q, axis=0) > np.nanmin(Q, axis=0)).sum())
    one_varies = ONE_VARYING_BY_WEIGHT if layout.is_weighted else ONE_VARYING_COLUMN
    reason = one_varies if n_varying < 2 and layout.bits.is_complete else ""
    n = Q.shape[0]
    return SimilarityTests(
        tests=tuple(_test(name, i, layout, observed, draws, reason) for i, name in enumerate(names)),
        n_pairs=layout.n_pairs,
        n_disjoint=n * (n - 1) // 2 - layout.n_pairs,
        mean_to_others={"cosine": _mean_to_others(scores, layout)},
    )


def _describe_draws(
    scores: NDArray[np.float64], layout: CosineLayout, names: tuple[str, ...], n_permutations: int, seed: int
) -> list[CosineDistribution]:
    bits, key = layout.bits, stream_key(seed)
    columns = np.repeat(np.arange(scores.shape[1]), np.diff(bits.cell_starts))
    measured = scores[bits.cells, columns]
    ordered = measured[np.lexsort((measured, columns))]
    runs = split_blocks(n_permutations, max(1, min(20, 20_000_000 // (layout.n_pairs + 1))))

    def describe_block(block: int) -> list[CosineDistribution]:
        scratch = np.empty(BINS, np.int64)
        return [
            describe_cosines(
                shuffle_scores(ordered, bits.cells, bits.cell_starts, scores.shape[0], key, permutation),
                layout,
                names,
                scratch,
            )
            for permutation in runs[block]
        ]

    return [draw for block in map_blocks(describe_block, len(runs)) for draw in block]


def _mean_to_others(scores: NDArray[np.float64], layout: CosineLayout) -> NDArray[np.float64]:
    bins = layout.bin(scores, layout.weights, by_row=True)
    means = np.full(scores.shape[0], np.nan)
    has_partners = bins.partners > 0
    means[layout.bits.order[has_partners]] = bins.sums[has_partners] / bins.partners[has_partners]
    return means


def _test(
    name: str, i: int, layout: CosineLayout, observed: CosineDistribution, draws: list[CosineDistribution], reason: str
) -> SimilarityTest:
    counts = observed.counts(name, layout)
    pooled = np.zeros_like(counts)
    for draw in draws:
        pooled += draw.counts(name, layout)
    block_counts = np.empty((min(MAX_DRAWS, len(draws)), BINS), counts.dtype)
    compare = compare_weighted_distances if layout.is_weighted else compare_distances
    distances = []
    for run in split_blocks(len(draws), MAX_DRAWS):
        for place, b in enumerate(run):
            block_counts[place] = draws[b].counts(name, layout)
        distances.append(compare(counts, block_counts[: len(run)], counts + pooled))
    null = np.stack([draw.statistics[i] for draw in draws])
    signs = signs_within(null - observed.statistics[i], compute_tie_tolerances(observed.statistics[i], null))
    comparisons: dict[str, PermutationTest] = {
        statistic: build_permutation_test(
            observed.statistics[i, s], null[:, s], signs[:, s], reason, on_an_atom=statistic in ATOMIC
        )
        for s, statistic in enumerate(STATISTICS)
    }
    comparisons["ks_d"] = build_permutation_test(*join_distances(distances), reason)
    return SimilarityTest(
        name=name,
        values=np.asarray(layout.lowest + layout.width * np.arange(BINS), dtype=np.float64),
        width=layout.width,
        observed=counts,
        pooled=pooled,
        comparisons=comparisons,
    )
