"""Clusters of a table beside those of tables drawn under a null, found by the same method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import MEAN_TOLERANCE, Clustering, find_best_number
from analyses.numerics.clustering.cluster_methods import KMEANS, ClusterOptions, find_clusters
from analyses.numerics.null_tables import NullTables, shuffle_table
from analyses.numerics.similarity.score_table import PackedScores, unpack_bits
from tracker.statistics.parallel.blocks import map_blocks
from tracker.statistics.resampling import PermutationTest, build_permutation_test
from tracker.statistics.rng_streams import stream_key

CAPS = (10, 25, 50)
"""Largest numbers of clusters that are tested, as far as they were tried."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SilhouetteTest:
    """The outcome for one table.

    Attributes:
        observed: its clusters.
        null_silhouettes: ``(n_permutations,)`` float64, the silhouette of each drawn table; NaN where it has fewer
            than 2 distinct directions.
        null_numbers: ``(n_permutations,)`` int64, number of clusters of each drawn table; 0 where it has no silhouette.
        null_noise: ``(n_permutations,)`` float64, share of noise among its rows with a direction.
        null_by_number: ``(n_permutations, max_clusters - 1)`` float64, for each drawn table the mean silhouette at
            2, 3, ... clusters; NaN where it has fewer distinct directions. No columns for a method that finds its
            number of clusters itself.
        reason: why no p-value is given, if there is one.
    """

    observed: Clustering
    null_silhouettes: NDArray[np.float64]
    null_numbers: NDArray[np.int64]
    null_noise: NDArray[np.float64]
    null_by_number: NDArray[np.float64]
    reason: str = ""

    @property
    def max_clusters(self) -> int:
        """The largest number of clusters that was tried; 1 where the method finds its number itself."""
        return int(self.null_by_number.shape[1]) + 1

    @property
    def caps(self) -> tuple[int, ...]:
        """Largest numbers of clusters to compare: those of `CAPS` below the largest tried, and that."""
        if self.max_clusters == 1:
            return ()
        return (*(cap for cap in CAPS if cap < self.max_clusters), self.max_clusters)

    @cached_property
    def best(self) -> PermutationTest:
        """The silhouette of the clusters; over all numbers of clusters, it is the largest."""
        if self.max_clusters == 1:
            return self._compared(self.observed.silhouette, self.null_silhouettes)
        return self.up_to(self.max_clusters)

    def up_to(self, cap: int) -> PermutationTest:
        """The largest silhouette over 2 to ``cap`` clusters: what a run with that ``max_clusters`` gives.

        Args:
            cap: at least 2 and at most the one of the test.
        """
        return self._compared(_largest(self.observed.by_number[: cap - 1]), _largest(self.null_by_number[:, : cap - 1]))

    def at(self, number: int) -> PermutationTest:
        """The silhouette at one number of clusters."""
        return self._compared(self.observed.by_number[number - 2], self.null_by_number[:, number - 2])

    def _compared(self, observed: float | NDArray[np.float64], null: NDArray[np.float64]) -> PermutationTest:
        difference = null - float(observed)
        signs = np.where(
            np.isnan(difference) | (np.abs(difference) <= MEAN_TOLERANCE), 0, np.sign(np.nan_to_num(difference))
        )
        too_few = "" if np.isfinite(observed) else "the table has fewer distinct directions than that"
        return build_permutation_test(float(observed), null, signs.astype(np.int8), too_few or self.reason)

    def number_up_to(self, cap: int) -> int:
        """The observed table's best number of clusters where at most ``cap`` are tried."""
        return find_best_number(self.observed.by_number[: cap - 1])


def silhouette_test(
    Q: NDArray[np.float64],
    options: ClusterOptions = KMEANS,
    *,
    weights: NDArray[np.float64] | None = None,
    n_permutations: int = 200,
    null: Literal["columns", "margins"] = "columns",
    seed: int = 0,
) -> SilhouetteTest:
    """Cluster a table and tables drawn under a null in exactly the same way.

    All tables get the same random starts, so the silhouette is a function of the table, and a null that cannot
    change the table cannot change it either.

    Args:
        Q: ``(n, k)`` finite scores without gaps.
        options: the method of both.
        weights: ``(n,)`` positive, of the rows, which keep them in every draw; None weighs every row 1.
        n_permutations: tables drawn.
        null: "columns" shuffles each column; "margins", for scores of 0 and 1, keeps the sums of rows too.
        seed: of the starts and the draws.
    """
    key = stream_key(seed)
    drawn = _margins(Q, seed) if null == "margins" else lambda permutation: shuffle_table(Q, key, permutation)

    def describe(permutation: int) -> tuple[float, int, float, NDArray[np.float64]]:
        clustering = find_clusters(drawn(permutation), options, weights=weights, key=key)
        number = clustering.n_clusters if np.isfinite(clustering.silhouette) else 0
        return clustering.silhouette, number, clustering.noise_share, clustering.by_number

    silhouettes, numbers, noise, by_number = zip(*map_blocks(describe, n_permutations), strict=True)
    return SilhouetteTest(
        observed=find_clusters(Q, options, weights=weights, key=key),
        null_silhouettes=np.array(silhouettes),
        null_numbers=np.array(numbers, dtype=np.int64),
        null_noise=np.array(noise),
        null_by_number=np.array(by_number),
    )


def _margins(Q: NDArray[np.float64], seed: int) -> Callable[[int], NDArray[np.float64]]:
    tables = NullTables.create(PackedScores.from_scores(Q), null="margins", seed=seed)
    return lambda permutation: unpack_bits(tables.draw(permutation), Q.shape[1]).astype(np.float64)


def _largest(by_number: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = np.where(np.isnan(by_number), -np.inf, by_number).max(axis=-1)
    return np.where(np.isfinite(largest), largest, np.nan)
