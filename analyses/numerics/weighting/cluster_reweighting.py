"""From a table of scores to clusters of its prompts, to weights, to rankings: for one seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import Clustering, find_best_clustering, medoid_distances
from analyses.numerics.weighting.cluster_weights import (
    ZeroDistance,
    distance_weights,
    inverse_distance_weights,
    medoid_weights,
)
from analyses.numerics.weighting.reweighting import Reweighting, compare_reweighted
from tracker.statistics.ranking import TIE_TOLERANCE
from tracker.statistics.rng_streams import stream_key

MEDOIDS, DISTANCE, INVERSE = BY_CLUSTER = ("medoids", "distance", "inverse-distance")
"""Names of the schemes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterSchemes:
    """A clustering of prompts, and the ranking under each of the weights computed from it.

    Attributes:
        seed: of its random starts.
        clustering: the clusters.
        distances: ``(n,)`` cosine distance of each prompt to its cluster's representative; NaN outside clusters.
        schemes: by name, those of `BY_CLUSTER`.
    """

    seed: int
    clustering: Clustering
    distances: NDArray[np.float64]
    schemes: Mapping[str, Reweighting]

    @property
    def is_zero_distance(self) -> NDArray[np.bool_]:
        """``(n,)`` whether a prompt is in the direction of its representative."""
        return np.asarray(self.distances <= TIE_TOLERANCE)


def weigh_by_clusters(
    Q: NDArray[np.float64],
    *,
    max_clusters: int,
    n_restarts: int,
    zero_distance: ZeroDistance,
    higher_is_better: bool = True,
    seed: int = 0,
) -> ClusterSchemes:
    """Cluster the prompts, weigh them by each of `BY_CLUSTER`, and rank the models under each.

    Args:
        Q: ``(n_prompts, n_models)`` finite scores without gaps.
        max_clusters, n_restarts: as for `find_best_clustering`.
        zero_distance: as for `inverse_distance_weights`.
        higher_is_better: whether the largest mean is the best.
        seed: of the random starts.
    """
    clustering = find_best_clustering(Q, max_clusters=max_clusters, n_restarts=n_restarts, key=stream_key(seed))
    distances = medoid_distances(Q, clustering)
    weights = {
        MEDOIDS: medoid_weights(clustering.labels, clustering.medoids),
        DISTANCE: distance_weights(clustering.labels, distances),
        INVERSE: inverse_distance_weights(clustering.labels, distances, zero_distance),
    }
    schemes = {name: compare_reweighted(Q, w, higher_is_better=higher_is_better) for name, w in weights.items()}
    return ClusterSchemes(seed=seed, clustering=clustering, distances=distances, schemes=schemes)
