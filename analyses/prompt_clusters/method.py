"""Clusters of prompts by which models solve them, beside those of tables drawn under a null.

Source: Ailem et al. 2024, sections 3.2 and 5.1, table 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import Clustering
from analyses.numerics.clustering.cluster_methods import KMEANS, ClusterOptions
from analyses.numerics.clustering.cluster_profile import ClusterProfile, describe_clusters
from analyses.numerics.clustering.directions import group_directions
from analyses.numerics.clustering.silhouette_test import SilhouetteTest, silhouette_test
from analyses.presentation.one_per_family import FamilyTest
from analyses.prompt_clusters.validation import validate_clustering
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined


@dataclass(frozen=True, kw_only=True)
class PromptClusters(Finding):
    """The clusters, and what tables drawn under the null gave.

    Attributes:
        n_prompts, n_models: of the table.
        n_effective: effective number of prompts under the weights.
        n_zero: prompts with score 0 from every model, which have no direction and belong to no cluster.
        n_distinct: different directions of the others.
        n_constant_models: models with the same score everywhere.
        options: the method of clustering.
        null: "columns" or "margins".
        profile: what the clusters hold.
        test: the clusters, and the silhouettes of the draws.
    """

    n_prompts: int
    n_models: int
    n_effective: float
    n_zero: int
    n_distinct: int
    n_constant_models: int
    options: ClusterOptions
    null: str
    profile: ClusterProfile
    test: SilhouetteTest
    one_per_family: FamilyTest | None = None

    @property
    def clustering(self) -> Clustering:
        """The observed table's clusters."""
        return self.test.observed

    @property
    def n_permutations(self) -> int:
        """Tables drawn under the null."""
        return self.test.best.n_permutations

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, the silhouette with its test, then the noise or what the cap does."""
        best, clustering, profile = self.test.best, self.clustering, self.profile
        n_clustered = float(profile.weights.sum())
        undefined = Undefined(best.reason)
        metrics: dict[str, Metric] = {
            "silhouette": clustering.silhouette,
            "silhouette.permuted_mean": finite_or_undefined(best.null_mean, best.reason),
            "silhouette.permuted_sd": best.null_sd,
            "silhouette.pvalue": undefined if best.reason else best.pvalue,
            "silhouette.pvalue_lower": undefined if best.reason else best.pvalue_lower,
            "silhouette.pvalue_two_sided": undefined if best.reason else best.pvalue_two_sided,
            "n_clusters": float(clustering.n_clusters),
            "n_clusters.permuted_mean": float(self.test.null_numbers.mean()),
            "n_prompts": float(self.n_prompts),
            "n_models": float(self.n_models),
            "n_effective": self.n_effective,
            "n_zero": float(self.n_zero),
            "n_distinct": float(self.n_distinct),
            "n_constant_models": float(self.n_constant_models),
            "n_singletons": float((profile.n_prompts == 1).sum()),
            "n_identical_clusters": float(profile.is_identical.sum()),
            "n_at_medoid": float(profile.n_at_medoid.sum()),
            "largest_cluster": float(profile.n_prompts.max(initial=0)),
            "mean_cosine": finite_or_undefined(
                clustering.objective / n_clustered if n_clustered else np.nan, "there is no cluster"
            ),
            **(self._noise_metrics if self.options.has_noise else self._cap_metrics),
        }
        return metrics if self.one_per_family is None else {**metrics, **self.one_per_family.metrics}

    @property
    def _noise_metrics(self) -> Mapping[str, Metric]:
        return {
            "n_noise": float(self.clustering.is_noise.sum()),
            "noise_share": self.clustering.noise_share,
            "noise_share.permuted_mean": float(self.test.null_noise.mean()),
        }

    @property
    def _cap_metrics(self) -> Mapping[str, Metric]:
        metrics: dict[str, Metric] = {"at_cap": float(self.clustering.n_clusters == self.test.max_clusters)}
        at_cap = self.test.at(self.test.max_clusters)
        few = "the prompts have fewer different directions than that"
        metrics["silhouette.at_cap"] = finite_or_undefined(at_cap.observed, few)
        for cap in self.test.caps:
            capped = self.test.up_to(cap)
            metrics[f"cap_{cap}.n_clusters"] = float(self.test.number_up_to(cap))
            metrics[f"cap_{cap}.silhouette"] = capped.observed
            metrics[f"cap_{cap}.silhouette.permuted_mean"] = finite_or_undefined(capped.null_mean, capped.reason)
            metrics[f"cap_{cap}.silhouette.pvalue"] = Undefined(capped.reason) if capped.reason else capped.pvalue
            metrics[f"cap_{cap}.silhouette.pvalue_two_sided"] = (
                Undefined(capped.reason) if capped.reason else capped.pvalue_two_sided
            )
        return metrics

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Silhouettes and numbers of clusters of the draws; then their noise, or silhouettes at each number."""
        drawn_tables = {"silhouette.null": self.test.best.null, "n_clusters.null": self.test.null_numbers}
        if self.options.has_noise:
            return {**drawn_tables, "noise_share.null": self.test.null_noise}
        by_number, drawn = self.clustering.by_number, self.test.null_by_number
        drawn_means = [self.test.at(number).null_mean for number in range(2, self.test.max_clusters + 1)]
        return {
            "silhouette.by_number": by_number,
            "silhouette.permuted_by_number": drawn,
            "silhouette.observed_minus_permuted": by_number - np.array(drawn_means),
            **drawn_tables,
        }


def cluster_test(
    Q: NDArray[np.float64],
    options: ClusterOptions = KMEANS,
    *,
    weights: NDArray[np.float64] | None = None,
    n_effective: float | None = None,
    n_permutations: int = 200,
    null: Literal["columns", "margins"] = "columns",
    seed: int = 0,
) -> PromptClusters:
    """Cluster the rows of a table beside those of tables drawn under a null, by the same method.

    Args:
        Q: ``(n_prompts, n_models)`` scores without gaps; at least 3 prompts and 2 models, and two rows of different
            direction.
        options: the method of clustering.
        weights: ``(n_prompts,)`` positive, a prompt of weight ``w`` standing for ``w`` copies, for k-means alone; they
            stay with the prompts in every draw. None gives equal weight.
        n_effective: effective number of prompts; None counts them.
        n_permutations: tables drawn, at least 1.
        null: "columns" shuffles each model's scores; "margins" keeps each prompt's number right too.
        seed: of starts and draws.

    Raises:
        SelectionError: the table is too small, holds infinite values or a single direction, or the options do not
            fit it.
    """
    validate_clustering(
        Q, options, is_weighted=weights is not None, n_permutations=n_permutations, null=null, seed=seed
    )
    test = silhouette_test(Q, options, weights=weights, n_permutations=n_permutations, null=null, seed=seed)
    return PromptClusters(
        n_prompts=Q.shape[0],
        n_models=Q.shape[1],
        n_effective=float(Q.shape[0]) if n_effective is None else n_effective,
        n_zero=int((~Q.any(axis=1)).sum()),
        n_distinct=group_directions(Q).n_distinct,
        n_constant_models=int((Q[0] == Q).all(axis=0).sum()),
        options=options,
        null=null,
        profile=describe_clusters(Q, test.observed, weights),
        test=test,
    )
