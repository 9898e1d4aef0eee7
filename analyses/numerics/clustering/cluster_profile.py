"""What clusters hold: how many rows, how many of them the same, and how columns do in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import Clustering, medoid_distances
from analyses.numerics.clustering.directions import group_directions


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterProfile:
    """One entry for each cluster.

    Attributes:
        n_prompts: ``(n_clusters,)`` int64 rows.
        weights: ``(n_clusters,)`` float64 their weight.
        n_directions: ``(n_clusters,)`` int64 different directions among them.
        n_at_medoid: ``(n_clusters,)`` int64 rows of the medoid's direction, itself included.
        silhouettes: ``(n_clusters,)`` float64 weighted mean.
        means: ``(n_clusters, k)`` float64 weighted mean of each column.
        is_binary: whether every entry of the table is 0 or 1.
    """

    n_prompts: NDArray[np.int64]
    weights: NDArray[np.float64]
    n_directions: NDArray[np.int64]
    n_at_medoid: NDArray[np.int64]
    silhouettes: NDArray[np.float64]
    means: NDArray[np.float64]
    is_binary: bool

    @property
    def is_identical(self) -> NDArray[np.bool_]:
        """``(n_clusters,)`` whether a cluster holds several rows, all of one direction."""
        return np.asarray((self.n_prompts > 1) & (self.n_directions == 1))


def describe_clusters(
    X: NDArray[np.float64], clustering: Clustering, weights: NDArray[np.float64] | None = None
) -> ClusterProfile:
    """Describe the clusters of a table.

    Args:
        X: ``(n, k)``, the table that was clustered.
        clustering: of it.
        weights: ``(n,)`` as it was clustered with; None weighs every row 1.
    """
    n_clusters, rows = clustering.n_clusters, np.flatnonzero(clustering.labels >= 0)
    labels = clustering.labels[rows]
    w = np.ones(X.shape[0]) if weights is None else weights
    totals = np.bincount(labels, weights=w[rows], minlength=n_clusters).astype(np.float64)
    grouped = group_directions(X)
    of_direction = np.full(grouped.n_distinct, -1)
    of_direction[grouped.of_row[rows]] = labels
    sums = np.zeros((n_clusters, X.shape[1]))
    np.add.at(sums, labels, w[rows, None] * X[rows])
    return ClusterProfile(
        n_prompts=np.bincount(labels, minlength=n_clusters),
        weights=totals,
        n_directions=np.bincount(of_direction[of_direction >= 0], minlength=n_clusters),
        n_at_medoid=np.bincount(labels[medoid_distances(X, clustering)[rows] == 0], minlength=n_clusters),
        silhouettes=np.bincount(labels, weights=w[rows] * clustering.samples[rows], minlength=n_clusters) / totals,
        means=sums / totals[:, None],
        is_binary=bool(((X == 0) | (X == 1)).all()),
    )
