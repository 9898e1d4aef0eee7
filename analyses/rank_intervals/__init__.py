"""Compute intervals of ranks that hold for all models together.

Compares every pair of models on the same prompts, with clustered errors and Holm's correction. An interval holds each
rank that the scores allow. Models whose difference is not significant form a group. The prompts are assumed to be a
sample of those that matter.

Source: Mogstad et al. 2024, section 3; Miller 2024.
Definitions: docs/reference/statistics/rank-intervals.md.

Examples:
    suffrage analyze rank-intervals mmlu_pro
    suffrage analyze rank-intervals mmlu_pro --cluster none --level 0.9
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from analyses.presentation.validation import validate
from analyses.rank_intervals import figures, tables
from analyses.rank_intervals.families import rank_per_family
from analyses.rank_intervals.method import separable_ranks
from analyses.rank_intervals.summary import collect_warnings, summarize
from analyses.rank_intervals.validation import find_problems
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.leaderboard_intervals import measure_spreads
from tracker.queries.ranking.leaderboard_result import describe_spreads
from tracker.queries.related_models.family_labels import FamilyLabels
from tracker.queries.related_models.related import relate_models
from tracker.recording.finding import Report, analysis
from tracker.statistics.rank_intervals import rank_intervals

SCHEME = "rank-intervals"


@analysis(
    tests={"first place": ("first.holm",), "one model per family": ("one_per_family.first.holm",)},
    n_tests={"first place": "n_pairs", "one model per family": "one_per_family.n_pairs"},
    missing="bounds",
)
def analyze(
    scores: PerformanceMatrix,
    clusters: Clusters,
    families: FamilyLabels | None = None,
    *,
    level: Annotated[
        float, "Confidence level at which all rank intervals hold together, and of each bootstrap interval."
    ] = 0.95,
    n_resamples: Annotated[
        int, "Number of bootstrap resamples of the prompts, or of whole clusters; 0 for none."
    ] = 2000,
    seed: Annotated[int, "Seed of the resamples."] = 0,
) -> Report:
    """Compute rank intervals and groups of models without significant differences.

    Args:
        scores: at least 2 models; missing scores can have any value within the bounds of the metric.
        clusters: which prompts depend on each other.
        families: stored families of the models; the ranks are repeated with one model per family.
        level: of the intervals.
        n_resamples: for bootstrap ranks.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: fewer than two models have enough scores, scores are infinite, or an option is out of range.
    """
    validate(find_problems(scores.Q, len(scores.excluded), n_resamples=n_resamples, level=level, seed=seed))
    groups = clusters.group(scores.prompt_ids)
    run = partial(
        rank_intervals,
        groups=groups,
        bounds=scores.metric_bounds,
        higher_is_better=scores.higher_is_better,
        level=level,
        seed=seed,
    )
    ranks = run(scores.for_errors, n_resamples=n_resamples)
    reduced = rank_per_family(
        relate_models(scores.without_imputed(), families),
        lambda columns: run(scores.for_errors[:, columns], n_resamples=0),
    )
    finding = replace(separable_ranks(scores, clusters, groups, ranks), one_per_family=reduced)
    return Report(
        finding,
        summary=summarize(finding),
        rankings={SCHEME: tables.list_rankings(ranks, finding.models)},
        tables={
            "models": tables.list_by_model(ranks, finding.models),
            "pairs": tables.list_by_pair(ranks, finding.models),
            "groups": tables.list_by_group(ranks, finding.models),
        },
        figures={
            "ranks": partial(figures.draw_ranks, ranks, finding.models),
            "separable": partial(figures.draw_separable_pairs, ranks, finding.models),
        },
        warnings=[
            *describe_spreads(*measure_spreads(scores, clusters), clusters.field),
            *collect_warnings(finding, groups),
        ],
    )
