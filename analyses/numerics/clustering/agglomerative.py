"""Agglomerative clusters of rows by direction, with the number of clusters that has the largest mean silhouette.

Ward's linkage of unit rows: each step merges the two clusters whose union raises the sum of squared distances to
their means least. The squared distance of two unit rows is twice their cosine distance.

Source: Ward 1963; Müllner 2011 (the algorithm); scikit-learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import Clustering, choose_number
from analyses.numerics.clustering.directions import Directions, group_directions
from tracker.statistics.jit import jit


@jit
def _cut(children: Any, max_clusters: int, labels: Any) -> None:
    """Labels of the leaves where a tree has 2, 3, ... clusters; the last merges are undone one by one."""
    n = children.shape[0] + 1
    cluster = np.empty(2 * n - 1, np.int64)
    for number in range(2, max_clusters + 1):
        n_named = 0
        # Merges are numbered in order, so the nodes from 2n - number on are those that are undone.
        for node in range(2 * n - 2, n - 1, -1):
            for side in range(2):
                child = children[node - n, side]
                if node >= 2 * n - number:
                    # A child of an undone merge is a cluster, unless its merge is undone too.
                    if child < 2 * n - number:
                        cluster[child] = n_named
                        n_named += 1
                else:
                    cluster[child] = cluster[node]
        for leaf in range(n):
            labels[number - 2, leaf] = cluster[leaf]


def find_merges(grouped: Directions) -> NDArray[np.int64]:
    """The merges of a tree of all rows with a direction, equal rows first.

    Args:
        grouped: directions of the rows, at least 2 rows; weights count rows.

    Returns:
        ``(n_rows - 1, 2)`` int64 nodes, in the order of merging; rows are ordered by direction.
    """
    from sklearn.cluster import AgglomerativeClustering

    units = np.repeat(grouped.units, grouped.weights.astype(np.int64), axis=0)
    tree = AgglomerativeClustering(n_clusters=None, distance_threshold=0, linkage="ward").fit(units)
    return np.asarray(tree.children_, dtype=np.int64)


def find_agglomerative_clustering(X: NDArray[np.float64], *, max_clusters: int = 50) -> Clustering:
    """Cut the tree of Ward's linkage at the number of clusters with the largest mean silhouette.

    The result does not depend on the order of the rows.

    Args:
        X: ``(n, k)`` finite numbers; rows of zeros belong to no cluster.
        max_clusters: largest number tried, at least 2.
    """
    grouped = group_directions(X)
    by_number = np.full(max_clusters - 1, np.nan)
    most = min(max_clusters, grouped.n_distinct)
    if most < 2:
        return Clustering(
            labels=np.where(grouped.of_row < 0, -1, 0),
            n_clusters=most,
            objective=float(grouped.weights.sum()),
            silhouette=float("nan"),
            samples=np.full(grouped.of_row.size, np.nan),
            medoids=grouped.first_rows[:most],
            by_number=by_number,
        )
    n_rows = int(grouped.weights.sum())
    labels = np.empty((most - 1, n_rows), dtype=np.int64)
    _cut(find_merges(grouped), most, labels)
    firsts = np.concatenate([[0], np.cumsum(grouped.weights.astype(np.int64))[:-1]])
    return choose_number(grouped, labels[:, firsts], None, by_number)
