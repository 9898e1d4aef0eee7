"""Cluster prompts by which models solve them.

Selects the number of clusters with the largest silhouette, and tests whether the clusters are clearer than those of
permuted tables, since clustering always finds clusters. A small p-value means that groups of prompts exist which the
same models solve. Related models share errors and form such groups too, so that the test is repeated with one model per
family.

Source: Ailem et al. 2024, sections 3.2 and 5.1, table 3.
Definitions: docs/reference/statistics/prompt-clusters.md.

Examples:
    suffrage analyze prompt-clusters mmlu_pro --max-clusters 10 --n-permutations 100
    suffrage analyze prompt-clusters mmlu_pro --null margins --max-clusters 10 --n-permutations 100
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from analyses.presentation.one_per_family import repeat_per_family
from analyses.presentation.permutation_warnings import NULL_TEXTS, explain_untested, list_weight_warnings
from analyses.prompt_clusters import figures, tables
from analyses.prompt_clusters.method import PromptClusters, cluster_test
from analyses.prompt_clusters.summary import list_table_warnings, summarize
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.weighted_scores import WeightedScores, select_weighted
from tracker.queries.related_models.family_labels import FamilyLabels
from tracker.queries.related_models.related import relate_models
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import PromptValues, Report, analysis
from tracker.statistics.ranking import mean_ranks


@analysis(test=("silhouette.pvalue_two_sided",), missing="common", policies=("common", "worst", "fail"))
def analyze(
    scores: PerformanceMatrix,
    prompts: PromptTexts,
    weights: PromptWeights | None = None,
    families: FamilyLabels | None = None,
    *,
    max_clusters: Annotated[int, "Largest number of clusters to try."] = 50,
    n_restarts: Annotated[int, "Number of random starts for each number of clusters; the best is kept."] = 5,
    n_permutations: Annotated[int, "Number of permuted tables, each clustered in the same way."] = 200,
    null: Annotated[
        Literal["columns", "margins"],
        (
            "Null hypothesis. columns: permute each model's scores; margins: also keep the number of "
            "models that solve each prompt."
        ),
    ] = "columns",
    seed: Annotated[int, "Seed of all random draws."] = 0,
) -> Report:
    """Cluster prompts by which models solve them, and test the clusters against permuted tables.

    Args:
        scores: at least 3 prompts and 2 models; prompts without a score from every model are left out, with a warning.
        prompts: their names and texts, for the representatives. weights: a prompt of weight ``w`` is ``w`` copies of
        it, in the centres, the silhouettes and all means; weights stay
            with the prompts in every permutation. Counts of prompts are not weighted. With weights computed from scores
            there is no p-value.
        families: stored families of the models; the test is repeated with one model per family.
        max_clusters: largest number of clusters to try.
        n_restarts: starts at each number of clusters.
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
        weights=voters.weights if voters.is_weighted else None,
        n_effective=voters.n_effective,
        max_clusters=max_clusters,
        n_restarts=n_restarts,
        n_permutations=n_permutations,
        null=null,
        seed=seed,
    )
    finding = run(table.Q)
    finding = replace(finding, test=replace(finding.test, reason=explain_untested(weights, voters)))
    reduced = repeat_per_family(
        relate_models(table, families, representative="typical"),
        lambda columns: replace(run(np.ascontiguousarray(table.Q[:, columns])).test, reason=finding.test.reason).best,
    )
    finding = replace(finding, one_per_family=reduced)
    labels = np.where(finding.clustering.labels < 0, np.nan, finding.clustering.labels)
    return Report(
        finding,
        summary=summarize(finding),
        prompt_values={
            "cluster": PromptValues(prompt_ids=table.prompt_ids, values=labels),
            "silhouette": PromptValues(prompt_ids=table.prompt_ids, values=finding.clustering.samples),
        },
        tables={
            "clusters": tables.list_clusters(finding.clustering, finding.profile, voters, prompts),
            "models_by_cluster": tables.list_models_by_cluster(finding.profile, table.models),
            "by_number": tables.list_by_number(finding.test),
            "by_cap": tables.list_by_cap(finding.test),
        },
        figures=_figures(finding, voters),
        warnings=[
            *voters.warnings,
            *list_weight_warnings(weights, voters),
            *list_table_warnings(table, n_permutations),
        ],
    )


def _figures(finding: PromptClusters, voters: WeightedScores) -> Mapping[str, Callable[[], Any]]:
    table, best, profile = voters.scores, finding.test.best, finding.profile
    order = np.argsort(mean_ranks(voters.weights @ table.Q, higher_is_better=table.higher_is_better), kind="stable")
    return {
        "silhouette_by_number": partial(
            figures.draw_by_number,
            finding.clustering.by_number,
            finding.test.null_by_number,
            finding.clustering.n_clusters,
            best,
            NULL_TEXTS[finding.null],
        ),
        "null_distribution": partial(figures.draw_null_distribution, best, NULL_TEXTS[finding.null]),
        "models_by_cluster": partial(
            figures.draw_means,
            profile.means[:, order],
            profile.n_prompts,
            [table.models[model] for model in order],
            f"mean {table.metric or 'score'}",
            is_binary=profile.is_binary,
        ),
    }
