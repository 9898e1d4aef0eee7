"""Rank models under several weightings of the prompts.

Clusters prompts by which models solve them, then weights them by their position in a cluster: representatives only,
distant prompts more, or close prompts more. The weighting task-equal gives every task the same weight. If the ranking
changes, it depends on which prompts are weighted how. The weights can be reused with --weights ID:SCHEME.

Source: Ailem et al. 2024, sections 3.3 and 5.2.1, figure 2.
Definitions: docs/reference/statistics/prompt-weighting.md.

Examples:
    suffrage analyze prompt-weighting mmlu_pro --max-clusters 10
    suffrage analyze prompt-weighting mmlu_pro --max-clusters 10 --n-seeds 2 --seed 1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.weighting.cluster_weights import ZeroDistance
from analyses.numerics.weighting.reweighting import Reweighting, compare_reweighted
from analyses.prompt_weighting import figures, tables
from analyses.prompt_weighting.method import PromptWeighting, reweight
from analyses.prompt_weighting.summary import list_cap_warnings, summarize
from analyses.prompt_weighting.validation import validate_weighting
from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.weighted_scores import select_weighted
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import (
    PromptValues,
    RankedModels,
    Report,
    analysis,
)
from tracker.statistics.standard_errors import scale_to_mean_one

EQUAL, TASK_EQUAL, CHOSEN = "equal", "task-equal", "given"


@analysis(missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: PerformanceMatrix,
    weights: PromptWeights | None,
    *,
    zero_distance: Annotated[
        ZeroDistance,
        (
            "Weight of prompts at distance 0 under inverse distances. floor: that of the nearest "
            "other prompt; limit: the whole weight of the cluster; drop: 0."
        ),
    ] = "floor",
    max_clusters: Annotated[int, "Largest number of clusters to try."] = 50,
    n_restarts: Annotated[int, "Number of random starts of k-means for each number of clusters."] = 5,
    n_seeds: Annotated[int, ("Number of clusterings, with seeds seed, seed + 1, ...; the first is reported.")] = 5,
    seed: Annotated[int, "Seed of the random starts."] = 0,
) -> Report:
    """Rank the models under several weightings of the prompts.

    Args:
        scores: at least 2 models; prompts without a score from every model are left out, with a warning.
        weights: an additional scheme, ``given``, in which a prompt without a weight has weight 0. They change neither
            the clusters nor the other schemes.
        zero_distance: see `inverse_distance_weights`.
        max_clusters: largest number to try.
        n_restarts: at least 1.
        n_seeds: at least 1.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: fewer than 2 models, nothing to cluster by, or an option is out of range.
    """
    voters = select_weighted(scores)
    table, better = voters.scores, voters.scores.higher_is_better
    validate_weighting(table.Q, max_clusters=max_clusters, n_restarts=n_restarts, n_seeds=n_seeds, seed=seed)
    other_weights, weight_warnings = _other_weights(table, weights)
    finding = reweight(
        table.Q,
        other_weights,
        zero_distance=zero_distance,
        max_clusters=max_clusters,
        n_restarts=n_restarts,
        n_seeds=n_seeds,
        higher_is_better=better,
        seed=seed,
    )
    schemes = {EQUAL: compare_reweighted(table.Q, np.ones(table.n_prompts), higher_is_better=better), **finding.schemes}
    return Report(
        finding,
        summary=summarize(finding, table.models),
        prompt_values=_prompt_values(finding, table.prompt_ids),
        rankings={
            name: RankedModels(models=table.models, score=scheme.means, rank=scheme.ranks)
            for name, scheme in schemes.items()
        },
        tables={
            "schemes": tables.list_by_scheme(schemes, schemes[EQUAL], table.models),
            "representatives": tables.list_representatives(finding.reported, table),
            "seeds": tables.list_by_seed(finding.by_seed),
        },
        figures=_figures(schemes, table),
        warnings=[*voters.warnings, *weight_warnings, *list_cap_warnings(finding, max_clusters)],
    )


def _prompt_values(finding: PromptWeighting, prompt_ids: NDArray[np.int64]) -> dict[str, PromptValues]:
    values = {f"weight.{name}": scheme.weights for name, scheme in finding.schemes.items()}
    values["cluster"] = finding.reported.clustering.labels.astype(np.float64)
    values["distance"] = finding.reported.distances
    return {name: PromptValues(prompt_ids=prompt_ids, values=v) for name, v in values.items()}


def _other_weights(
    table: PerformanceMatrix, weights: PromptWeights | None
) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """Return the weights that do not come from clusters, by scheme, and warnings about them."""
    by_task = PromptWeights.task_equal().align(table.prompt_ids, table.tasks)
    other_weights, warnings = {}, []
    if (by_task != by_task[0]).any():
        other_weights[TASK_EQUAL] = by_task
    else:
        warnings.append(f"The scheme `{TASK_EQUAL}` is left out: tasks have equal sizes, or there is only one.")
    if weights is None:
        return other_weights, warnings
    if weights.finding_id is None:
        return other_weights, [*warnings, f"The weights {weights.name} add no scheme: they are always included."]
    chosen = weights.align(table.prompt_ids, table.tasks)
    unknown = int(np.isnan(chosen).sum())
    chosen = np.nan_to_num(chosen, nan=0.0)
    if not chosen.any():
        raise SelectionError(
            f"The weights {weights.name} give no weight to any selected prompt. Select the tasks they come from."
        )
    warnings.append(f"The scheme `{CHOSEN}` uses the weights {weights.name}.")
    if unknown:
        warnings.append(
            f"{unknown:,} of {table.n_prompts:,} prompts have no weight in {weights.name}. They get weight 0."
        )
    return other_weights | {CHOSEN: scale_to_mean_one(chosen)}, warnings


def _figures(schemes: Mapping[str, Reweighting], table: PerformanceMatrix) -> Mapping[str, Callable[[], Any]]:
    order = np.argsort(schemes[EQUAL].ranks, kind="stable")
    models = [table.models[j] for j in order]
    unequal = {name: scheme for name, scheme in schemes.items() if name != EQUAL}
    labels = [f"{name}\n(effective n {scheme.n_effective:,.0f})" for name, scheme in unequal.items()]
    changes = np.array([scheme.changes[order] for scheme in unequal.values()])
    shifts = np.array([scheme.shifts[order] for scheme in unequal.values()])
    return {
        "rank_changes": partial(figures.draw_rank_changes, changes, labels, models),
        "shifts": partial(figures.draw_shifts, shifts, labels, models, table.metric),
    }
