"""Do prompts fall into groups that the same models solve?

Prompts are put into clusters by which models solve them, and the number of clusters is the one whose
clusters are clearest. Tables drawn under a null are clustered in the same way: clusters can always be
found, so what counts is whether they are clearer than those of tables without groups.

Source: Ailem et al. 2024, sections 3.2 and 5.1, table 3; every choice is defined in
docs/statistics/prompt-clusters.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import Clustering
from analyses.numerics.clustering.cluster_profile import ClusterProfile, cluster_profile
from analyses.numerics.clustering.silhouette_test import SilhouetteTest, silhouette_test
from analyses.presentation.permutation_warnings import NULL_TEXTS, untested_reason, weight_warnings
from analyses.prompt_clusters import figures, tables
from analyses.prompt_clusters import summary as wording
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import Prompts
from tracker.queries.ranking.weighted_scores import complete_weighted_scores
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Finding, Metric, PromptValues, Report, Undefined, analysis, finite_or_undefined
from tracker.statistics.ranking import mean_ranks


@dataclass(frozen=True, kw_only=True)
class PromptClusters(Finding):
    """The clusters, and what tables drawn under the null gave.

    Attributes:
        n_prompts, n_models: of the table.
        n_effective: effective number of prompts under the weights.
        n_zero: prompts with score 0 from every model, which have no direction and belong to no cluster.
        n_distinct: different directions of the others.
        n_constant_models: models with the same score everywhere.
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
    null: str
    profile: ClusterProfile
    test: SilhouetteTest

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
        """Counts, the silhouette with its test, then what the cap does."""
        best, clustering, profile = self.test.best, self.clustering, self.profile
        absent = Undefined(best.reason)
        metrics: dict[str, Metric] = {
            "silhouette": clustering.silhouette,
            "silhouette.permuted_mean": finite_or_undefined(best.null_mean, best.reason),
            "silhouette.permuted_sd": best.null_sd,
            "silhouette.pvalue": absent if best.reason else best.pvalue,
            "silhouette.pvalue_lower": absent if best.reason else best.pvalue_lower,
            "silhouette.pvalue_two_sided": absent if best.reason else best.pvalue_two_sided,
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
            "largest_cluster": float(profile.n_prompts.max()),
            "mean_cosine": clustering.objective / float(profile.weights.sum()),
            "at_cap": float(clustering.n_clusters == self.test.max_clusters),
        }
        at_cap = self.test.at(self.test.max_clusters)
        few = "the prompts have fewer different directions than that"
        metrics["silhouette.at_cap"] = finite_or_undefined(at_cap.observed, few)
        for cap in self.test.caps:
            found = self.test.up_to(cap)
            metrics[f"cap_{cap}.n_clusters"] = float(self.test.number_up_to(cap))
            metrics[f"cap_{cap}.silhouette"] = found.observed
            metrics[f"cap_{cap}.silhouette.permuted_mean"] = finite_or_undefined(found.null_mean, found.reason)
            metrics[f"cap_{cap}.silhouette.pvalue"] = Undefined(found.reason) if found.reason else found.pvalue
        return metrics

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Silhouettes at 2, 3, ... clusters, observed, drawn and their difference; the draws' best ones."""
        by_number, drawn = self.clustering.by_number, self.test.null_by_number
        drawn_means = [self.test.at(number).null_mean for number in range(2, self.test.max_clusters + 1)]
        return {
            "silhouette.by_number": by_number,
            "silhouette.permuted_by_number": drawn,
            "silhouette.observed_minus_permuted": by_number - np.array(drawn_means),
            "silhouette.null": self.test.best.null,
            "n_clusters.null": self.test.null_numbers,
        }

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(self.test, self.profile, self.null)


def cluster_test(
    Q: NDArray[np.float64],
    *,
    weights: NDArray[np.float64] | None = None,
    n_effective: float | None = None,
    max_clusters: int = 50,
    n_restarts: int = 5,
    n_permutations: int = 200,
    null: Literal["columns", "margins"] = "columns",
    seed: int = 0,
) -> PromptClusters:
    """Cluster the rows of a table beside those of tables drawn under a null.

    Args:
        Q: ``(n_prompts, n_models)`` scores without gaps; at least 3 prompts and 2 models, and two rows of different
            direction.
        weights: ``(n_prompts,)`` positive, a prompt of weight ``w`` standing for ``w`` copies; they stay with the
            prompts in every draw. None weighs all the same.
        n_effective: effective number of prompts; None counts them.
        max_clusters: largest number of clusters tried, at least 2.
        n_restarts: starts at each number of clusters, of which the best by the objective is kept.
        n_permutations: tables drawn, at least 1.
        null: "columns" shuffles each model's scores; "margins" keeps each prompt's number right too.
        seed: of starts and draws.

    Raises:
        SelectionError: the table is too small, holds infinite values or a single direction, or the options do not
            fit it.
    """
    wording.refuse_unusable(
        Q, max_clusters=max_clusters, n_restarts=n_restarts, n_permutations=n_permutations, null=null, seed=seed
    )
    test = silhouette_test(
        Q,
        weights=weights,
        max_clusters=max_clusters,
        n_restarts=n_restarts,
        n_permutations=n_permutations,
        null=null,
        seed=seed,
    )
    profile = cluster_profile(Q, test.observed, weights)
    return PromptClusters(
        n_prompts=Q.shape[0],
        n_models=Q.shape[1],
        n_effective=float(Q.shape[0]) if n_effective is None else n_effective,
        n_zero=int((test.observed.labels < 0).sum()),
        n_distinct=int(profile.n_directions.sum()),
        n_constant_models=int((Q[0] == Q).all(axis=0).sum()),
        null=null,
        profile=profile,
        test=test,
    )


@analysis
def analyze(
    scores: PerformanceMatrix,
    prompts: Prompts,
    weights: PromptWeights | None = None,
    *,
    max_clusters: Annotated[int, "largest number of clusters tried"] = 50,
    n_restarts: Annotated[int, "starts at each number of clusters; the best by the objective is kept"] = 5,
    n_permutations: Annotated[int, "tables drawn under the null, each clustered in the same way"] = 200,
    null: Annotated[
        Literal["columns", "margins"], "shuffle each model's scores, or keep each prompt's number right as well"
    ] = "columns",
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Cluster prompts by which models solve them, and test whether the clusters are clearer than those of chance.

    Args:
        scores: at least 3 prompts and 2 models; prompts that lack a score from some model are left out, with a note.
        prompts: their names and texts, for the representatives.
        weights: a prompt of weight ``w`` stands for ``w`` copies of it, in the centres, the silhouettes and all means;
            they stay with the prompts in every draw. Counts of prompts are not weighted. With weights made of scores
            no p-value is given.
        max_clusters: largest number of clusters tried.
        n_restarts: starts at each number of clusters.
        n_permutations: tables drawn under the null.
        null: what the draws keep.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: see `cluster_test`.
    """
    chosen = complete_weighted_scores(scores, weights)
    table = chosen.scores
    found = cluster_test(
        table.Q,
        weights=chosen.weights if chosen.is_weighted else None,
        n_effective=chosen.n_effective,
        max_clusters=max_clusters,
        n_restarts=n_restarts,
        n_permutations=n_permutations,
        null=null,
        seed=seed,
    )
    found = replace(found, test=replace(found.test, reason=untested_reason(weights, chosen)))
    overall = chosen.weights @ table.Q
    order = np.argsort(mean_ranks(overall, higher_is_better=table.higher_is_better), kind="stable")
    models = [table.models[model] for model in order]
    labels = np.where(found.clustering.labels < 0, np.nan, found.clustering.labels)
    best, profile = found.test.best, found.profile
    return Report(
        found,
        prompt_values={
            "cluster": PromptValues(prompt_ids=table.prompt_ids, values=labels),
            "silhouette": PromptValues(prompt_ids=table.prompt_ids, values=found.clustering.samples),
        },
        tables={
            "clusters": tables.clusters(found.clustering, profile, chosen, prompts),
            "models_by_cluster": tables.models_by_cluster(profile, table.models),
            "by_number": tables.by_number(found.test),
            "by_cap": tables.by_cap(found.test),
        },
        figures={
            "silhouette_by_number": partial(
                figures.by_number,
                found.clustering.by_number,
                found.test.null_by_number,
                found.clustering.n_clusters,
                best,
                NULL_TEXTS[null],
            ),
            "null_distribution": partial(figures.null_distribution, best, NULL_TEXTS[null]),
            "models_by_cluster": partial(
                figures.means,
                profile.means[:, order],
                profile.n_prompts,
                models,
                f"mean {table.metric or 'score'}",
                is_binary=profile.is_binary,
            ),
        },
        warnings=[*chosen.warnings, *weight_warnings(weights, chosen), *wording.warnings(table, n_permutations)],
    )
