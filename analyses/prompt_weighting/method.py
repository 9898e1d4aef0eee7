"""Rankings under weights from clusters of prompts.

Source: Ailem et al. 2024, sections 3.3 and 5.2.1, figure 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.weighting.cluster_reweighting import BY_CLUSTER, ClusterSchemes, weigh_by_clusters
from analyses.numerics.weighting.cluster_weights import ZeroDistance
from analyses.numerics.weighting.reweighting import Reweighting, compare_reweighted
from tracker.recording.finding import (
    Finding,
    Metric,
    finite_or_undefined,
)
from tracker.statistics.parallel.blocks import map_blocks


@dataclass(frozen=True, kw_only=True)
class PromptWeighting(Finding):
    """How models are ranked under several weightings of the prompts.

    Attributes:
        n_prompts, n_models: of the table.
        zero_distance: what a distance of 0 counts as under inverse distances.
        by_seed: the clustering of each seed; the first is the one that is reported and stored.
        schemes: every weighting but the equal one, by name.
    """

    n_prompts: int
    n_models: int
    zero_distance: str
    by_seed: tuple[ClusterSchemes, ...]
    schemes: Mapping[str, Reweighting]

    @property
    def reported(self) -> ClusterSchemes:
        """The clustering that is reported."""
        return self.by_seed[0]

    @property
    def n_zero(self) -> int:
        """Prompts on which every score is 0; they belong to no cluster."""
        return int((self.reported.clustering.labels < 0).sum())

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then each scheme beside equal weights, then the range over seeds."""
        clustering = self.reported.clustering
        metrics: dict[str, Metric] = {
            "n_prompts": float(self.n_prompts),
            "n_models": float(self.n_models),
            "n_zero": float(self.n_zero),
            "n_clusters": float(clustering.n_clusters),
            "silhouette": finite_or_undefined(clustering.silhouette, "fewer than two prompts differ in direction"),
            "n_zero_distance": float(self.reported.is_zero_distance.sum()),
        }
        for name, scheme in self.schemes.items():
            metrics |= {
                f"{name}.n_effective": scheme.n_effective,
                f"{name}.n_weighted": float(scheme.n_weighted),
                f"{name}.kendall_tau": finite_or_undefined(scheme.kendall_tau, "a ranking ties all models"),
                f"{name}.kendall_distance": scheme.kendall_distance,
                f"{name}.largest_rank_change": scheme.largest_rank_change,
                f"{name}.largest_shift": scheme.largest_shift,
                f"{name}.leader_changes": float(scheme.leader_changes),
                f"{name}.n_leaders": float(scheme.n_leaders),
            }
        numbers = [clusters.clustering.n_clusters for clusters in self.by_seed]
        metrics |= {
            "seeds.n": float(len(self.by_seed)),
            "seeds.n_clusters_least": float(min(numbers)),
            "seeds.n_clusters_most": float(max(numbers)),
        }
        for name in BY_CLUSTER:
            changes = [clusters.schemes[name].largest_rank_change for clusters in self.by_seed]
            metrics |= {
                f"seeds.{name}.rank_change_least": min(changes),
                f"seeds.{name}.rank_change_most": max(changes),
            }
        return metrics

    @property
    def main_metrics(self) -> Sequence[str]:
        """All but how many share the first place and how many prompts have any weight."""
        return [name for name in self.metrics if not name.endswith((".n_leaders", ".n_weighted"))]


def reweight(
    Q: NDArray[np.float64],
    other_weights: Mapping[str, NDArray[np.float64]],
    *,
    zero_distance: ZeroDistance,
    max_clusters: int,
    n_restarts: int,
    n_seeds: int,
    higher_is_better: bool,
    seed: int,
) -> PromptWeighting:
    """Rank the models under weights from clusters, and under others.

    Args:
        Q: ``(n_prompts, n_models)`` scores without gaps.
        other_weights: ``(n_prompts,)`` by scheme, beside those from clusters.
        zero_distance: see `inverse_distance_weights`.
        max_clusters: largest number tried.
        n_restarts: at least 1.
        n_seeds: at least 1.
        higher_is_better: of the scores.
        seed: of the first clustering.
    """

    def cluster(i: int) -> ClusterSchemes:
        return weigh_by_clusters(
            Q,
            max_clusters=max_clusters,
            n_restarts=n_restarts,
            zero_distance=zero_distance,
            higher_is_better=higher_is_better,
            seed=seed + i,
        )

    by_seed = tuple(map_blocks(cluster, n_seeds))
    schemes = {
        name: compare_reweighted(Q, weights, higher_is_better=higher_is_better)
        for name, weights in other_weights.items()
    }
    return PromptWeighting(
        n_prompts=Q.shape[0],
        n_models=Q.shape[1],
        zero_distance=zero_distance,
        by_seed=by_seed,
        schemes={**by_seed[0].schemes, **schemes},
    )
