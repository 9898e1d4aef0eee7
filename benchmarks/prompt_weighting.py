"""Representatives of clusters and their weights, beside all pairs of prompts and beside plain loops.

All use the same clusters. One peer computes the matrix of cosine distances with scikit-learn, each cluster's medoid
and the distances from it, and the weights by NumPy. The other loops over prompts in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import _medoids as medoids_of
from analyses.numerics.clustering.best_clustering import find_best_clustering, medoid_distances
from analyses.numerics.clustering.directions import group_directions
from analyses.numerics.weighting.cluster_weights import distance_weights, inverse_distance_weights, medoid_weights
from benchmarks._costs import seconds
from benchmarks._tables import binary_table
from tracker.statistics.rng_streams import stream_key

DistanceScheme = tuple[NDArray[np.int64], list[NDArray[np.float64]]]


def _run_ours(table: np.ndarray, clustering: Any) -> DistanceScheme:
    grouped = group_directions(table)
    labels = clustering.labels[grouped.first_rows]
    medoids = medoids_of(grouped, labels, clustering.n_clusters)
    distances = medoid_distances(table, clustering)
    return medoids, [
        medoid_weights(clustering.labels, medoids),
        distance_weights(clustering.labels, distances),
        inverse_distance_weights(clustering.labels, distances),
    ]


def _all_pairs(table: np.ndarray, clustering: Any) -> DistanceScheme:
    from sklearn.metrics.pairwise import cosine_distances

    labels, n = clustering.labels, len(table)
    every = cosine_distances(table)
    medoids, far, near = [], np.ones(n), np.ones(n)
    for cluster in range(clustering.n_clusters):
        members = np.flatnonzero(labels == cluster)
        sums = every[np.ix_(members, members)].sum(axis=1)
        medoids.append(int(members[np.argmax(sums <= sums.min() + 1e-9)]))
        d = every[members, medoids[-1]]
        d[d < 1e-12] = 0
        if d.any():
            far[members] = d / d.sum() * len(members)
            inverse = 1 / np.where(d == 0, d[d > 0].min(), d)
            near[members] = inverse / inverse.sum() * len(members)
    chosen = [*medoids, *np.flatnonzero(labels < 0)[:1]]
    alone = np.zeros(n)
    alone[chosen] = n / len(chosen)
    return np.array(medoids), [alone, far, near]


def _loops(table: np.ndarray, clustering: Any) -> NDArray[np.int64]:
    """Medoids only: every pair of a cluster, one after the other."""
    lengths = np.linalg.norm(table, axis=1)
    medoids = []
    for cluster in range(clustering.n_clusters):
        members = np.flatnonzero(clustering.labels == cluster)
        sums = [sum(1 - float(table[i] @ table[j]) / (lengths[i] * lengths[j]) for j in members) for i in members]
        medoids.append(int(members[np.argmax(np.array(sums) <= min(sums) + 1e-9)]))
    return np.array(medoids)


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each size and peer."""
    for n_prompts, n_models in ((1200, 14), (14_042, 100)):
        table = binary_table(n_prompts, n_models)
        clustering = find_best_clustering(table, max_clusters=10, n_restarts=1, key=stream_key(0))
        (labels, weights), (expected_labels, expected) = _run_ours(table, clustering), _all_pairs(table, clustering)
        assert labels.tolist() == expected_labels.tolist()
        assert max(float(np.abs(a - b).max()) for a, b in zip(weights, expected, strict=True)) < 1e-9
        name = f"representatives and weights, {n_prompts:,} × {n_models}, {clustering.n_clusters} clusters"
        seconds_ours = seconds(lambda t=table, c=clustering: _run_ours(t, c), 3)
        peer = seconds(lambda t=table, c=clustering: _all_pairs(t, c), 2)
        yield {
            "name": name,
            "ours_s": round(seconds_ours, 4),
            "peer_s": round(peer, 3),
            "ratio": round(peer / seconds_ours, 1),
            "note": "peer: all pairs by scikit-learn; the same medoids, weights within 1e-9",
        }
        if n_prompts < 2000:
            slow = seconds(lambda t=table, c=clustering: _loops(t, c))
            yield {
                "name": f"{name}, against loops",
                "ours_s": round(seconds_ours, 4),
                "peer_s": round(slow, 2),
                "ratio": round(slow / seconds_ours, 1),
                "note": "peer: loops over all pairs in Python, medoids only",
            }
