"""Cosine similarity of the rows of a continuous table, against tables with shuffled columns.

Every pair is computed, none is stored: one pass sums and bins, a second keeps only the pairs in the
bins that hold the wanted percentiles, so that these are exact. Sums run in a fixed order, so results
are the same bytes for any number of workers.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.null_tables import shuffled_scores
from analyses.numerics.similarity.cosine_distributions import Drawn, distribution
from analyses.numerics.similarity.cosine_layout import Layout, can_have_zero_rows
from analyses.numerics.similarity.cosine_pairs import BINS
from analyses.numerics.similarity.distributions import ATOMIC, STATISTICS, compare_distances
from analyses.numerics.similarity.similarity_test import SimilarityTest, SimilarityTests
from analyses.numerics.similarity.weighted_distributions import compare_weighted_distances, signs_within, ties
from tracker.statistics.resampling import PermutationTest, build_permutation_test, map_blocks, split_blocks
from tracker.statistics.rng_streams import stream_key

DRAWS_AT_ONCE = 50
"""Draws whose counts lie side by side in memory."""

ONE_VARYING_COLUMN = "only one model has scores that vary, so shuffling only reorders the prompts"
ONE_VARYING_BY_WEIGHT = (
    "only one model has scores that vary, so shuffling only moves them among heavy and light prompts"
)


def _draw_block(
    block: int, *, runs: list[range], ordered: NDArray[np.float64], layout: Layout, names: tuple[str, ...],
    key: NDArray[np.uint64],
) -> list[Drawn]:  # fmt: skip
    bits, scratch = layout.bits, np.empty(BINS, np.int64)
    return [
        distribution(
            shuffled_scores(ordered, bits.cells, bits.cell_starts, bits.rows.shape[0], key, permutation),
            layout, names, scratch,
        )
        for permutation in runs[block]
    ]  # fmt: skip


def continuous_similarities(
    table: NDArray[np.float64], *, n_permutations: int, seed: int, weights: NDArray[np.float64] | None = None
) -> SimilarityTests:
    """Compare the cosines of a continuous table's rows with those after shuffling its columns.

    "cosine" gives a row of zeros similarity 0 to all others; "cosine_nonzero" leaves such rows out and
    is computed where the table or a draw can have one.

    Args:
        table: ``(n, k)`` float64, NaN where missing, ``n >= 2``; every row and column has a measured cell.
        n_permutations: draws, at least 1.
        seed: of all draws.
        weights: ``(n,)`` float64, positive, mean 1; they stay at their rows in every draw. None: all count the same.
    """
    layout = Layout.of(table, weights)
    bits = layout.bits
    scores = np.ascontiguousarray(np.nan_to_num(table[bits.order]))
    names = ("cosine", "cosine_nonzero") if can_have_zero_rows(table) else ("cosine",)
    columns = np.repeat(np.arange(table.shape[1]), np.diff(bits.cell_starts))
    measured = scores[bits.cells, columns]
    ordered = measured[np.lexsort((measured, columns))]
    runs = split_blocks(n_permutations, max(1, min(20, 20_000_000 // (layout.n_pairs + 1))))
    task = partial(_draw_block, runs=runs, ordered=ordered, layout=layout, names=names, key=stream_key(seed))
    draws = [drawn for block in map_blocks(task, len(runs)) for drawn in block]
    observed = distribution(scores, layout, names, np.empty(BINS, np.int64))
    varying = int((np.nanmax(table, axis=0) > np.nanmin(table, axis=0)).sum())
    one = ONE_VARYING_BY_WEIGHT if layout.is_weighted else ONE_VARYING_COLUMN
    reason = one if varying < 2 and bits.is_complete else ""
    n = table.shape[0]
    return SimilarityTests(
        tests=tuple(_test(name, i, layout, observed, draws, reason) for i, name in enumerate(names)),
        n_pairs=layout.n_pairs,
        n_disjoint=n * (n - 1) // 2 - layout.n_pairs,
        mean_to_others={"cosine": _mean_to_others(scores, layout)},
    )


def _mean_to_others(scores: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    n = scores.shape[0]
    sums, partners, means = np.zeros(n), np.zeros(n), np.full(n, np.nan)
    layout.run(
        scores, np.zeros(BINS, np.int64), np.zeros(2), sums=sums, partners=partners, weights=layout.weights,
        masses=np.zeros(BINS if layout.is_weighted else 0),
    )  # fmt: skip
    some = partners > 0
    means[layout.bits.order[some]] = sums[some] / partners[some]
    return means


def _test(name: str, i: int, layout: Layout, observed: Drawn, draws: list[Drawn], reason: str) -> SimilarityTest:
    mine = observed.of_similarity(name, layout)
    pooled = np.zeros_like(mine)
    for drawn in draws:
        pooled += drawn.of_similarity(name, layout)
    few = np.empty((min(DRAWS_AT_ONCE, len(draws)), BINS), mine.dtype)
    compare = compare_weighted_distances if layout.is_weighted else compare_distances
    distances = []
    for run in split_blocks(len(draws), DRAWS_AT_ONCE):
        for place, b in enumerate(run):
            few[place] = draws[b].of_similarity(name, layout)
        distances.append(compare(mine, few[: len(run)], mine + pooled))
    null = np.stack([drawn.statistics[i] for drawn in draws])
    signs = signs_within(null - observed.statistics[i], ties(observed.statistics[i], null))
    comparisons: dict[str, PermutationTest] = {
        statistic: build_permutation_test(
            observed.statistics[i, s], null[:, s], signs[:, s], reason, on_an_atom=statistic in ATOMIC
        )
        for s, statistic in enumerate(STATISTICS)
    }
    comparisons["ks_d"] = build_permutation_test(
        distances[0][0], np.concatenate([d[1] for d in distances]), np.concatenate([d[2] for d in distances]), reason
    )
    return SimilarityTest(
        name=name,
        values=np.asarray(layout.lowest + layout.width * np.arange(BINS), dtype=np.float64),
        width=layout.width,
        observed=mine,
        pooled=pooled,
        comparisons=comparisons,
    )
