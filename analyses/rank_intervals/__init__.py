"""Which ranks can be told apart?

A leaderboard gives every model a rank, whether or not the prompts suffice for it. Here every two models are compared
on the same prompts, with errors that know of clusters; from the pairs that remain apart after Holm's correction follow
intervals that hold all ranks at once, and groups of models that cannot be told apart.

Source: Mogstad et al. 2024, section 3; Miller 2024.
Definitions: docs/reference/statistics/rank-intervals.md.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from analyses.presentation.validation import validate
from analyses.rank_intervals import figures, tables
from analyses.rank_intervals.method import separable_ranks, split_complete
from analyses.rank_intervals.summary import collect_warnings, summarize
from analyses.rank_intervals.validation import find_problems
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Report, analysis
from tracker.statistics.grouping import group_rows
from tracker.statistics.rank_intervals import rank_intervals

SCHEME = "rank-intervals"


@analysis
def analyze(
    scores: PerformanceMatrix,
    clusters: Clusters,
    *,
    level: Annotated[float, "with which all intervals of ranks hold at once, and each bootstrap interval"] = 0.95,
    n_resamples: Annotated[
        int, "resamples of the prompts, or of whole clusters, for bootstrap ranks; 0 for none"
    ] = 2000,
    seed: Annotated[int, "of the resamples"] = 0,
) -> Report:
    """Tell the ranks of models apart.

    Args:
        scores: models that lack a score for any prompt are left out, with a note; at least 2 must be left.
        clusters: which prompts depend on each other.
        level: of the intervals.
        n_resamples: for bootstrap ranks.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: fewer than two models are complete, scores are infinite, or an option is out of range.
    """
    complete, dropped = split_complete(scores)
    validate(find_problems(complete.Q, len(dropped), n_resamples=n_resamples, level=level, seed=seed))
    groups = group_rows(clusters.align(complete.prompt_ids))
    ranks = rank_intervals(
        complete.Q,
        groups,
        higher_is_better=complete.higher_is_better,
        level=level,
        n_resamples=n_resamples,
        seed=seed,
    )
    finding = separable_ranks(complete, clusters, groups, ranks, n_left_out=len(dropped))
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
        warnings=collect_warnings(finding, groups, dropped),
    )
