"""Cosine similarity of the rows of a continuous table, against tables with shuffled columns.

Every pair is computed, none is stored: one pass sums and bins, and collects the pairs in the bins that held percentiles
of earlier draws, so that percentiles are exact. A second pass follows where they lie in other bins. Sums run in a fixed
order, so results are the same bytes for any number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.cosine_distributions import CosineDistribution, describe_cosines
from analyses.numerics.similarity.cosines.cosine_layout import CosineLayout
from analyses.numerics.similarity.cosines.cosine_pairs import BINS
from analyses.numerics.similarity.cosines.cosine_passes import CosinePasses, choose_passes, mean_to_others
from analyses.numerics.similarity.cosines.expected_bins import ExpectedBins, SeenBins
from analyses.numerics.similarity.distributions import ATOMIC, STATISTICS, compare_distances, join_distances
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarity_test import SimilarityTest, SimilarityTests
from analyses.numerics.similarity.weighted_distributions import (
    compare_weighted_distances,
    compute_tie_tolerances,
    signs_within,
)
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.resampling import PermutationTest, build_permutation_test
from tracker.statistics.rng_streams import stream_key

MAX_DRAWS = 50
"""Draws whose counts lie side by side in memory."""

ONE_VARYING_COLUMN = "only one model has scores that vary, so shuffling only reorders the prompts"
ONE_VARYING_BY_WEIGHT = (
    "only one model has scores that vary, so shuffling only moves them among heavy and light prompts"
)


@dataclass(frozen=True, kw_only=True)
class CosineDraws:
    """Tables with shuffled columns, and how their cosines are distributed.

    Attributes:
        table: the observed table.
        key: of the seed.
        n_permutations: how many are drawn.
    """

    table: ScoreTable
    key: NDArray[np.uint64]
    n_permutations: int

    @cached_property
    def layout(self) -> CosineLayout:
        """What the table and every draw have in common."""
        return CosineLayout.create(self.table)

    @cached_property
    def passes(self) -> CosinePasses:
        """What computes their cosines."""
        return choose_passes(self.layout)

    @cached_property
    def observed(self) -> CosineDistribution:
        """The observed table's distribution."""
        return describe_cosines(self.table.packed_scores, self.layout, self.passes, self._expected_bins())

    @cached_property
    def runs(self) -> list[range]:
        """The draws of each block."""
        return split_blocks(self.n_permutations, max(1, min(20, 20_000_000 // (self.layout.n_pairs + 1))))

    @cached_property
    def _seen_bins(self) -> SeenBins:
        """The bins that held percentiles so far."""
        return SeenBins()

    def _expected_bins(self) -> ExpectedBins:
        return ExpectedBins(self._seen_bins, self.passes)

    def describe_block(self, block: int) -> list[CosineDistribution]:
        """The distributions of the draws of one block."""
        layout, passes, expected = self.layout, self.passes, self._expected_bins()
        return [
            describe_cosines(layout.shuffle(self.key, permutation), layout, passes, expected)
            for permutation in self.runs[block]
        ]

    def unchanged_reason(self) -> str:
        """Why no statistic at all can be a test; empty if some can."""
        reason = ONE_VARYING_COLUMN if self.table.weights is None else ONE_VARYING_BY_WEIGHT
        return reason if self.table.only_reorders else ""


def compare_continuous(table: ScoreTable, *, n_permutations: int, seed: int) -> SimilarityTests:
    """Compare the cosines of a continuous table's rows with those after shuffling its columns.

    "cosine" gives a row of zeros similarity 0 to all others; "cosine_nonzero" leaves such rows out and
    is computed where the table or a draw can have one.

    Args:
        table: at least 2 rows.
        n_permutations: draws, at least 1.
        seed: of all draws.
    """
    draws = CosineDraws(table=table, key=stream_key(seed), n_permutations=n_permutations)
    return _compare_with_draws(draws)


def _compare_with_draws(draws: CosineDraws) -> SimilarityTests:
    drawn = [draw for block in map_blocks(draws.describe_block, len(draws.runs)) for draw in block]
    layout, reason = draws.layout, draws.unchanged_reason()
    return SimilarityTests(
        tests=tuple(_test(i, draws, drawn, reason) for i in range(len(layout.names))),
        n_pairs=layout.n_pairs,
        n_disjoint=draws.table.count_disjoint_pairs(layout.n_pairs),
        mean_to_others={"cosine": mean_to_others(layout, draws.table.packed_scores)},
    )


def _test(i: int, draws: CosineDraws, drawn: list[CosineDistribution], reason: str) -> SimilarityTest:
    layout, observed, name = draws.layout, draws.observed, draws.layout.names[i]
    counts: NDArray[Any] = observed.counts(name).astype(np.float64 if layout.is_weighted else np.int64)
    pooled: NDArray[Any] = np.zeros_like(counts)
    for draw in drawn:
        pooled += draw.counts(name)
    block_counts = np.empty((min(MAX_DRAWS, len(drawn)), BINS), counts.dtype)
    compare = compare_weighted_distances if layout.is_weighted else compare_distances
    distances = []
    for run in split_blocks(len(drawn), MAX_DRAWS):
        for place, b in enumerate(run):
            block_counts[place] = drawn[b].counts(name)
        distances.append(compare(counts, block_counts[: len(run)], counts + pooled))
    null = np.stack([draw.statistics[i] for draw in drawn])
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
