"""Clusters of rows by direction where rows lie close together; all other rows are noise.

Source: Campello, Moulavi & Sander 2013; scikit-learn's HDBSCAN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import Clustering, build_clustering
from analyses.numerics.clustering.directions import Directions, group_directions

NO_NUMBERS = np.empty(0)


def find_dense_clustering(X: NDArray[np.float64], *, min_cluster_size: int = 10) -> Clustering:
    """HDBSCAN of unit rows, by the length of their differences.

    It finds the number of clusters, which may be 0. Noise has silhouette 0, as a row alone in its cluster has. Equal
    rows belong together: they take the label that most of them have, of equally frequent ones the smallest. The result
    does not depend on the order of the rows.

    Args:
        X: ``(n, k)`` finite numbers; rows of zeros belong to no cluster, and are no noise.
        min_cluster_size: fewest rows of a cluster, at least 2; also the number of neighbours, with the row, that
            define how dense the rows around it are.
    """
    grouped = group_directions(X)
    n_rows = int(grouped.weights.sum())
    if n_rows < min_cluster_size or grouped.n_distinct < 2:
        labels = np.full(grouped.n_distinct, -1)
    else:
        labels = _find_labels(grouped, min_cluster_size)
    return build_clustering(grouped, labels, None, NO_NUMBERS)


def _find_labels(grouped: Directions, min_cluster_size: int) -> NDArray[np.int64]:
    """Cluster of each direction; -1 for noise."""
    from sklearn.cluster import HDBSCAN

    counts = grouped.weights.astype(np.int64)
    units = np.repeat(grouped.units, counts, axis=0)
    of_row = HDBSCAN(min_cluster_size=min_cluster_size, copy=True).fit(units).labels_
    votes = np.zeros((grouped.n_distinct, int(of_row.max()) + 2), dtype=np.int64)
    np.add.at(votes, (np.repeat(np.arange(counts.size), counts), of_row + 1), 1)
    labels = votes.argmax(axis=1) - 1
    used, number = np.unique(labels[labels >= 0], return_inverse=True)
    labels[labels >= 0] = number if used.size else -1
    return np.asarray(labels, dtype=np.int64)
