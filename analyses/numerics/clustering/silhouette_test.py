"""Clusters of a table beside those of tables drawn under a null, each with its own best number of clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import (
    MEAN_TOLERANCE,
    Clustering,
    find_best_clustering,
    find_best_number,
)
from analyses.numerics.null_tables import NullTables, shuffle_table
from analyses.numerics.similarity.score_table import PackedScores, unpack_bits
from tracker.statistics.resampling import PermutationTest, build_permutation_test, map_blocks
from tracker.statistics.rng_streams import stream_key

CAPS = (10, 25, 50)
"""Largest numbers of clusters that are tested, as far as they were tried."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SilhouetteTest:
    """The outcome for one table.

    Attributes:
        observed: its clusters.
        null_by_number: ``(n_permutations, max_clusters - 1)`` float64, for each drawn table the mean silhouette at
            2, 3, ... clusters; NaN where it has fewer distinct directions.
        reason: why no p-value is given, if there is one.
    """

    observed: Clustering
    null_by_number: NDArray[np.float64]
    reason: str = ""

    @property
    def max_clusters(self) -> int:
        """The largest number of clusters that was tried."""
        return int(self.null_by_number.shape[1]) + 1

    @property
    def caps(self) -> tuple[int, ...]:
        """Largest numbers of clusters to compare: those of `CAPS` below the largest tried, and that."""
        return (*(cap for cap in CAPS if cap < self.max_clusters), self.max_clusters)

    @cached_property
    def best(self) -> PermutationTest:
        """The largest silhouette over all numbers of clusters."""
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

    @cached_property
    def null_numbers(self) -> NDArray[np.int64]:
        """``(n_permutations,)`` best number of clusters of each drawn table; 0 where there is none."""
        return np.array([find_best_number(silhouettes) for silhouettes in self.null_by_number], dtype=np.int64)


def silhouette_test(
    Q: NDArray[np.float64],
    *,
    weights: NDArray[np.float64] | None = None,
    max_clusters: int = 50,
    n_restarts: int = 5,
    n_permutations: int = 200,
    null: Literal["columns", "margins"] = "columns",
    seed: int = 0,
) -> SilhouetteTest:
    """Cluster a table and tables drawn under a null in exactly the same way.

    All tables get the same random starts, so the silhouette is a function of the table, and a null that cannot
    change the table cannot change it either.

    Args:
        Q: ``(n, k)`` finite scores without gaps.
        weights: ``(n,)`` positive, of the rows, which keep them in every draw; None weighs every row 1.
        max_clusters: largest number of clusters tried, at least 2.
        n_restarts: for each number of clusters, at least 1.
        n_permutations: tables drawn.
        null: "columns" shuffles each column; "margins", for scores of 0 and 1, keeps the sums of rows too.
        seed: of the starts and the draws.
    """
    key = stream_key(seed)
    drawn = _margins(Q, seed) if null == "margins" else lambda permutation: shuffle_table(Q, key, permutation)

    def clustered(table: NDArray[np.float64]) -> Clustering:
        return find_best_clustering(table, weights=weights, max_clusters=max_clusters, n_restarts=n_restarts, key=key)

    by_number = map_blocks(lambda permutation: clustered(drawn(permutation)).by_number, n_permutations)
    return SilhouetteTest(observed=clustered(Q), null_by_number=np.array(by_number))


def _margins(Q: NDArray[np.float64], seed: int) -> Callable[[int], NDArray[np.float64]]:
    tables = NullTables.create(PackedScores.from_scores(Q), null="margins", seed=seed)
    return lambda permutation: unpack_bits(tables.draw(permutation), Q.shape[1]).astype(np.float64)


def _largest(by_number: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = np.where(np.isnan(by_number), -np.inf, by_number).max(axis=-1)
    return np.where(np.isfinite(largest), largest, np.nan)
