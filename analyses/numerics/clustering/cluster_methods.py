"""The methods that cluster rows by direction, behind one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.agglomerative import find_agglomerative_clustering
from analyses.numerics.clustering.best_clustering import Clustering, find_best_clustering
from analyses.numerics.clustering.density import find_dense_clustering

Method = Literal["kmeans", "agglomerative", "hdbscan"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterOptions:
    """A method with its options.

    Attributes:
        method: "kmeans" (spherical), "agglomerative" (Ward's linkage) or "hdbscan".
        max_clusters: largest number of clusters tried, at least 2; "hdbscan" finds its number itself.
        n_restarts: of "kmeans", for each number of clusters, at least 1.
        min_cluster_size: of "hdbscan", fewest rows of a cluster, at least 2.
    """

    method: Method = "kmeans"
    max_clusters: int = 50
    n_restarts: int = 5
    min_cluster_size: int = 10

    @property
    def has_noise(self) -> bool:
        """Whether the method may leave rows without a cluster, and finds the number of clusters itself."""
        return self.method == "hdbscan"


KMEANS = ClusterOptions()
"""Spherical k-means with its defaults."""


def find_clusters(
    X: NDArray[np.float64],
    options: ClusterOptions,
    *,
    weights: NDArray[np.float64] | None = None,
    key: NDArray[np.uint64],
) -> Clustering:
    """Cluster the rows of a table.

    Args:
        X: ``(n, k)`` finite numbers; rows of zeros belong to no cluster.
        options: the method.
        weights: ``(n,)`` positive, for "kmeans" alone; None weighs every row 1.
        key: of the seed, for the starts of "kmeans"; the other methods draw nothing.

    Raises:
        ValueError: weights for a method without them.
    """
    if options.method == "kmeans":
        return find_best_clustering(
            X, weights=weights, max_clusters=options.max_clusters, n_restarts=options.n_restarts, key=key
        )
    if weights is not None:
        raise ValueError(f"{options.method} has no weights")
    if options.method == "agglomerative":
        return find_agglomerative_clustering(X, max_clusters=options.max_clusters)
    return find_dense_clustering(X, min_cluster_size=options.min_cluster_size)
