"""Clusters of rows by direction: how many there are, who belongs to which, and which row speaks for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.directions import Directions, group_directions
from analyses.numerics.clustering.silhouette import cluster_sums, row_silhouettes
from analyses.numerics.clustering.spherical_kmeans import find_best_assignments

MEAN_TOLERANCE = 1e-10
"""Silhouettes, and mean cosines to a cluster, that differ by no more than this are equal: above `TIE_TOLERANCE`, as
they are sums over all rows, in an order that depends on the clusters."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Clustering:
    """Rows in clusters of similar direction.

    Attributes:
        labels: ``(n,)`` int64 number of the cluster, the heaviest being 0; -1 for rows of zeros and for noise.
        n_clusters: how many; 1 where all rows have one direction, 0 where no row is in a cluster.
        objective: sum over rows of weight times cosine to the own centre.
        silhouette: weighted mean over the rows with a direction; NaN with fewer than 2 clusters. Where a method finds
            noise, noise counts as 0, and so do fewer than 2 clusters.
        samples: ``(n,)`` silhouette of each row; NaN for rows of zeros, and where `silhouette` is.
        medoids: ``(n_clusters,)`` int64 row that has the largest mean cosine to its cluster; of equals the first.
        by_number: ``(max_clusters - 1,)`` mean silhouette at 2, 3, ... clusters; NaN where there are fewer distinct
            directions. Empty for a method that finds its number of clusters itself.
    """

    labels: NDArray[np.int64]
    n_clusters: int
    objective: float
    silhouette: float
    samples: NDArray[np.float64]
    medoids: NDArray[np.int64]
    by_number: NDArray[np.float64]

    @property
    def is_noise(self) -> NDArray[np.bool_]:
        """``(n,)`` whether a row with a direction belongs to no cluster."""
        return np.asarray((self.labels < 0) & ~np.isnan(self.samples))

    @property
    def noise_share(self) -> float:
        """Share of noise among the rows with a direction."""
        is_noise = self.is_noise
        return float(is_noise.sum() / max(1, is_noise.sum() + (self.labels >= 0).sum()))


def find_best_clustering(
    X: NDArray[np.float64],
    *,
    weights: NDArray[np.float64] | None = None,
    max_clusters: int = 50,
    n_restarts: int = 5,
    key: NDArray[np.uint64],
) -> Clustering:
    """Spherical k-means with the number of clusters that has the largest mean silhouette.

    At each number of clusters the restart with the best objective is kept; of numbers whose silhouettes are equal
    within `MEAN_TOLERANCE` the smallest is chosen.

    Args:
        X: ``(n, k)`` finite numbers; rows of zeros belong to no cluster.
        weights: ``(n,)`` positive, a row of weight ``w`` standing for ``w`` copies; None weighs every row 1.
        max_clusters: largest number tried, at least 2.
        n_restarts: at least 1.
        key: of the seed, from `stream_key`; the random starts depend on nothing else.

    Raises:
        ValueError: an argument is out of range, or a number is not finite.
    """
    if max_clusters < 2 or n_restarts < 1:
        raise ValueError("max_clusters must be at least 2 and n_restarts at least 1")
    grouped = group_directions(X, weights)
    by_number = np.full(max_clusters - 1, np.nan)
    most = min(max_clusters, grouped.n_distinct)
    if most < 2:
        labels = np.zeros(grouped.n_distinct, dtype=np.int64)
        return Clustering(
            labels=np.where(grouped.of_row < 0, -1, 0),
            n_clusters=most,
            objective=float(grouped.weights.sum()),
            silhouette=float("nan"),
            samples=np.full(grouped.of_row.size, np.nan),
            medoids=_medoids(grouped, labels, most),
            by_number=by_number,
        )
    kept, objectives = find_best_assignments(
        grouped.units, grouped.weights, max_clusters=most, n_restarts=n_restarts, key=key
    )
    return choose_number(grouped, kept, weights, by_number, objectives)


def choose_number(
    grouped: Directions,
    assignments: NDArray[np.integer[Any]],
    weights: NDArray[np.float64] | None,
    by_number: NDArray[np.float64],
    objectives: NDArray[np.float64] | None = None,
) -> Clustering:
    """Of assignments to 2, 3, ... clusters, the one with the largest mean silhouette.

    Args:
        grouped: directions of the rows.
        assignments: ``(m, n_distinct)`` cluster of each direction, none empty.
        weights: ``(n,)`` of the rows; None weighs every row 1.
        by_number: receives the mean silhouettes in its first ``m`` places.
        objectives: ``(m,)`` of the assignments; None computes that of the chosen one.
    """
    for place, assignment in enumerate(assignments):
        samples = row_silhouettes(grouped, assignment.astype(np.int64), place + 2, weights)
        by_number[place] = _mean(samples, weights)
    place = find_best_number(by_number) - 2
    chosen = build_clustering(grouped, assignments[place].astype(np.int64), weights, by_number)
    return chosen if objectives is None else replace(chosen, objective=float(objectives[place]))


def build_clustering(
    grouped: Directions,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    by_number: NDArray[np.float64],
) -> Clustering:
    """Clusters with their silhouettes and medoids, from the cluster of each direction.

    Args:
        grouped: directions of the rows.
        labels: ``(n_distinct,)`` int64; -1 for noise. No number below the largest is unused.
        weights: ``(n,)`` of the rows; None weighs every row 1.
        by_number: see `Clustering`.
    """
    n_clusters = int(labels.max(initial=-1)) + 1
    clustered = grouped.restrict(labels >= 0)
    labels = _numbered(clustered, labels[labels >= 0], n_clusters)
    samples = np.where(grouped.of_row < 0, np.nan, 0.0)
    if n_clusters >= 2:
        silhouettes = row_silhouettes(clustered, labels, n_clusters, weights)
        samples = np.where(clustered.of_row < 0, samples, silhouettes)
    sums, _ = cluster_sums(clustered.units, clustered.weights, labels, n_clusters)
    of_row = np.full(grouped.of_row.size, -1)
    of_row[clustered.of_row >= 0] = labels[clustered.of_row[clustered.of_row >= 0]]
    return Clustering(
        labels=of_row,
        n_clusters=n_clusters,
        objective=float(np.linalg.norm(sums, axis=1).sum()),
        silhouette=_mean(samples, weights),
        samples=samples,
        medoids=_medoids(clustered, labels, n_clusters),
        by_number=by_number,
    )


def find_best_number(by_number: NDArray[np.float64]) -> int:
    """The number of clusters with the largest mean silhouette, of equal ones the smallest; 0 where there is none.

    Args:
        by_number: mean silhouette at 2, 3, ... clusters; NaN where there are fewer distinct directions.
    """
    defined = np.where(np.isnan(by_number), -np.inf, by_number)
    largest = defined.max(initial=-np.inf)
    return int(np.flatnonzero(defined >= largest - MEAN_TOLERANCE)[0]) + 2 if np.isfinite(largest) else 0


def medoid_distances(X: NDArray[np.float64], clustering: Clustering) -> NDArray[np.float64]:
    """Cosine distance of each row to the medoid of its cluster.

    Args:
        X: ``(n, k)``, the table that was clustered.
        clustering: of it.

    Returns:
        ``(n,)`` float64; exactly 0 for rows of the medoid's direction, NaN for rows without a cluster.
    """
    grouped = group_directions(X)
    distances = np.full(grouped.of_row.size, np.nan)
    rows = np.flatnonzero(clustering.labels >= 0)
    of_row = grouped.of_row[rows]
    spoken = grouped.of_row[clustering.medoids[clustering.labels[rows]]]
    cosines = np.einsum("ij,ij->i", grouped.units[of_row], grouped.units[spoken])
    distances[rows] = np.where(of_row == spoken, 0.0, np.maximum(0.0, 1.0 - cosines))
    return distances


def _mean(samples: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    defined = ~np.isnan(samples)
    if not defined.any():
        return float("nan")
    if weights is None:
        return float(samples[defined].mean())
    return float((weights[defined] * samples[defined]).sum() / weights[defined].sum())


def _numbered(grouped: Directions, labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """The same clusters, heaviest first; of equal ones first the one with the smallest row number."""
    totals = np.bincount(labels, weights=grouped.weights, minlength=n_clusters)
    firsts = np.full(n_clusters, grouped.of_row.size)
    np.minimum.at(firsts, labels, grouped.first_rows)
    order = np.lexsort((firsts, -totals))
    number = np.empty(n_clusters, dtype=np.int64)
    number[order] = np.arange(n_clusters)
    return number[labels]


def _medoids(grouped: Directions, labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    sums, totals = cluster_sums(grouped.units, grouped.weights, labels, n_clusters)
    means = np.einsum("ij,ij->i", grouped.units, sums[labels]) / totals[labels]
    best = np.full(n_clusters, -np.inf)
    np.maximum.at(best, labels, means)
    candidates = np.flatnonzero(means >= best[labels] - MEAN_TOLERANCE)
    medoids = np.full(n_clusters, grouped.of_row.size, dtype=np.int64)
    np.minimum.at(medoids, labels[candidates], grouped.first_rows[candidates])
    return medoids
