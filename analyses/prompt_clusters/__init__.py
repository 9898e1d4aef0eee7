"""Cluster prompts by which models solve them.

Tests whether the clusters are clearer than those that the same method finds in permuted tables. `kmeans` and
`agglomerative` choose the number of clusters with the largest silhouette. `hdbscan` finds the number itself; prompts
that are like few others are noise. A small p-value means that groups of prompts exist which the same models solve.
Related models share errors and form such groups too, so that the test is repeated with one model per family.

Source: Ailem et al. 2024, sections 3.2 and 5.1, table 3.
Definitions: docs/reference/statistics/prompt-clusters.md.

Examples:
    suffrage analyze prompt-clusters mmlu_pro --max-clusters 10 --n-permutations 100
    suffrage analyze prompt-clusters mmlu_pro --method hdbscan --min-cluster-size 20 --n-permutations 100
    suffrage analyze prompt-clusters mmlu_pro --null margins --max-clusters 10 --n-permutations 100
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.cluster_methods import ClusterOptions, Method
from analyses.presentation.one_per_family import repeat_per_family
from analyses.presentation.permutation_warnings import NULL_TEXTS, explain_untested, list_weight_warnings
from analyses.prompt_clusters import figures, tables
from analyses.prompt_clusters.method import PromptClusters, cluster_test
from analyses.prompt_clusters.summary import list_table_warnings, summarize
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.special_treatments import WholeScores
from tracker.queries.ranking.weighted_scores import WeightedScores, select_weighted
from tracker.queries.related_models.family_labels import FamilyLabels
from tracker.queries.related_models.related import RelatedModels, relate_models
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import PromptValues, Report, analysis
from tracker.statistics.ranking import mean_ranks
from tracker.statistics.resampling import PermutationTest


@analysis(
    tests={
        "silhouette": ("silhouette.pvalue_two_sided",),
        "one model per family": ("one_per_family.pvalue_two_sided",),
    },
    missing="common",
    policies=("common", "worst", "fail"),
)
def analyze(
    scores: WholeScores,
    prompts: PromptTexts,
    weights: PromptWeights | None = None,
    families: FamilyLabels | None = None,
    *,
    method: Annotated[
        Method,
        (
            "Method. kmeans: spherical k-means; agglomerative: Ward's linkage; hdbscan: dense groups, the other "
            "prompts are noise."
        ),
    ] = "kmeans",
    max_clusters: Annotated[int, "Largest number of clusters to try; hdbscan finds its number."] = 50,
    n_restarts: Annotated[int, "kmeans: random starts for each number of clusters; the best is kept."] = 5,
    min_cluster_size: Annotated[int, "hdbscan: fewest prompts of a cluster."] = 10,
    n_permutations: Annotated[int, "Number of permuted tables, each clustered in the same way."] = 200,
    null: Annotated[
        Literal["columns", "margins"],
        "Null hypothesis. columns: permute each model's scores; margins: also keep how many models solve each prompt.",
    ] = "columns",
    seed: Annotated[int, "Seed of all random draws."] = 0,
) -> Report:
    """Cluster prompts by which models solve them, and test the clusters against permuted tables.

    Args:
        scores: at least 3 prompts and 2 models; prompts without a score from every model are left out, with a warning.
        prompts: their names and texts, for the representatives.
        weights: a prompt of weight ``w`` is ``w`` copies of it, except in counts of prompts. Weights stay with the
            prompts in every permutation. With weights computed from scores there is no p-value.
        families: stored families of the models; the test is repeated with one model per family.
        method: how prompts and permuted tables are clustered; all but `kmeans` reject weights.
        max_clusters: largest number of clusters to try.
        n_restarts: starts at each number of clusters.
        min_cluster_size: fewest prompts of a cluster of `hdbscan`, and neighbours that define density.
        n_permutations: permuted tables.
        null: what the permutations keep.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: see `cluster_test`.
    """
    voters = select_weighted(scores, weights)
    table = voters.scores
    run = partial(
        cluster_test,
        options=ClusterOptions(
            method=method, max_clusters=max_clusters, n_restarts=n_restarts, min_cluster_size=min_cluster_size
        ),
        weights=voters.weights if voters.is_weighted else None,
        n_effective=voters.n_effective,
        n_permutations=n_permutations,
        null=null,
        seed=seed,
    )
    finding = run(table.Q)
    finding = replace(finding, test=replace(finding.test, reason=explain_untested(weights, voters)))
    finding = _repeat_per_family(finding, relate_models(table, families, representative="typical"), run, table.Q)
    warnings = [*list_weight_warnings(weights, voters), *list_table_warnings(table, n_permutations)]
    return _build_report(finding, voters, prompts, warnings)


def _repeat_per_family(
    finding: PromptClusters,
    related: RelatedModels,
    run: Callable[[NDArray[np.float64]], PromptClusters],
    Q: NDArray[np.float64],
) -> PromptClusters:
    def repeat(columns: NDArray[np.int64]) -> PermutationTest:
        return replace(run(np.ascontiguousarray(Q[:, columns])).test, reason=finding.test.reason).best

    return replace(finding, one_per_family=repeat_per_family(related, repeat))


def _build_report(finding: PromptClusters, voters: WeightedScores, prompts: PromptTexts, warnings: list[str]) -> Report:
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values={
            name: PromptValues(prompt_ids=voters.scores.prompt_ids, values=values)
            for name, values in _prompt_values(finding).items()
        },
        tables=tables.list_tables(finding, voters, prompts),
        figures=_figures(finding, voters),
        warnings=[*voters.warnings, *warnings],
    )


def _prompt_values(finding: PromptClusters) -> Mapping[str, NDArray[np.float64]]:
    clustering = finding.clustering
    values = {
        "cluster": np.where(clustering.labels < 0, np.nan, clustering.labels),
        "silhouette": clustering.samples,
    }
    if finding.options.has_noise:
        values["noise"] = np.where(np.isnan(clustering.samples), np.nan, clustering.is_noise)
    return values


def _figures(finding: PromptClusters, voters: WeightedScores) -> Mapping[str, Callable[[], Any]]:
    table, best, profile = voters.scores, finding.test.best, finding.profile
    order = np.argsort(mean_ranks(voters.weights @ table.Q, higher_is_better=table.higher_is_better), kind="stable")
    drawn: dict[str, Callable[[], Any]] = {}
    if finding.options.has_noise:
        drawn["clusters_and_noise"] = partial(
            figures.draw_clusters_and_noise,
            (finding.clustering.n_clusters, finding.clustering.noise_share),
            (finding.test.null_numbers, finding.test.null_noise),
            NULL_TEXTS[finding.null],
        )
    else:
        drawn["silhouette_by_number"] = partial(
            figures.draw_by_number,
            finding.clustering.by_number,
            finding.test.null_by_number,
            finding.clustering.n_clusters,
            best,
            NULL_TEXTS[finding.null],
        )
    drawn["null_distribution"] = partial(
        figures.draw_null_distribution, best, NULL_TEXTS[finding.null], has_noise=finding.options.has_noise
    )
    if finding.clustering.n_clusters:
        drawn["models_by_cluster"] = partial(
            figures.draw_means,
            profile.means[:, order],
            profile.n_prompts,
            [table.models[model] for model in order],
            f"mean {table.metric or 'score'}",
            is_binary=profile.is_binary,
        )
    return drawn
