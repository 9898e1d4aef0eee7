"""Compute rank intervals of a leaderboard, and groups of models that are not significantly different."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.queries.clusters import NONE, TASK, Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.interval_warnings import list_rank_interval_warnings
from tracker.queries.ranking.leaderboard_result import Leaderboard, RankInterval
from tracker.statistics.grouping import Grouping
from tracker.statistics.intervals.task_spread import ClusterSpread, measure_spread
from tracker.statistics.rank_intervals import RankIntervals, rank_intervals, rank_spans

MAX_TESTED_MODELS = 2000
"""Models whose pairs are tested: twenty matrices of all pairs take about 600 MB."""


def explain_too_many(n_models: int) -> str:
    """Return why the pairs of so many models are not tested."""
    return (
        f"{n_models:,} models have {n_models * (n_models - 1) // 2:,} pairs, and at most {MAX_TESTED_MODELS:,} models "
        "are tested. Select fewer with --models."
    )


def add_rank_intervals(board: Leaderboard, clusters: Clusters | None, *, n_resamples: int, seed: int) -> Leaderboard:
    """Return the leaderboard with rank intervals and groups of the ranked models, or with the reason for none.

    Args:
        board: means, errors and ranks.
        clusters: clusters and strata of the prompts; None for the default task effects.
        n_resamples: number of resamples of prompts, or of whole clusters, for bootstrap ranks; 0 for none.
        seed: seed of the resamples.
    """
    if reason := _unavailable(board):
        return replace(board, no_rank_intervals=reason)
    assert board.scores is not None
    scores = board.scores
    if np.isinf(scores.Q).any():
        return replace(board, no_rank_intervals="some scores are infinite")
    clusters = clusters or Clusters.of_tasks(scores.prompt_ids, scores.tasks)
    groups = clusters.group(scores.prompt_ids)
    ranks = rank_intervals(
        scores.for_errors,
        groups,
        bounds=scores.metric_bounds,
        higher_is_better=scores.higher_is_better,
        n_resamples=n_resamples,
        seed=seed,
        with_means=False,
    )
    ends = zip(ranks.rank_low, ranks.rank_high, ranks.bootstrap_low, ranks.bootstrap_high, strict=True)
    return replace(
        board,
        rank_intervals={
            model: RankInterval(
                low=float(low),
                high=float(high),
                bootstrap_low=None if np.isnan(drawn_low) else float(drawn_low),
                bootstrap_high=None if np.isnan(drawn_high) else float(drawn_high),
            )
            for model, (low, high, drawn_low, drawn_high) in zip(scores.models, ends, strict=True)
        },
        first_holm=ranks.first_holm,
        groups=tuple(tuple(scores.models[column] for column in group) for group in ranks.groups),
        rank_interval_warnings=tuple(list_rank_interval_warnings(ranks, scores.models, groups, clusters.field)),
        **_describe_tasks(scores, clusters, ranks),
    )


def find_task_spans(
    scores: PerformanceMatrix, clusters: Clusters, ranks: RankIntervals
) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
    """Return the rank intervals on these tasks, and on other tasks like these, by model; empty without two named tasks.

    Other tasks are a question about tasks, whatever the field of the clusters.

    Args:
        scores: of the ranked models.
        clusters: clusters and strata of the prompts.
        ranks: the rank intervals under their task effects; the others have the same level.
    """
    if clusters.task_effects == "none" or clusters.n_named_tasks < 2:
        return {}, {}
    by_task, ends, level = _group_by_task(scores), (ranks.rank_low, ranks.rank_high), ranks.level
    if clusters.task_effects == "fixed":
        fixed, random = ends, _spans(scores, by_task, level)
    else:
        fixed = _spans(scores, clusters.with_task_effects("fixed").group(scores.prompt_ids), level)
        random = ends if clusters.field == TASK else _spans(scores, by_task, level)
    return _spans_by_model(scores, fixed), _spans_by_model(scores, random)


def _describe_tasks(scores: PerformanceMatrix, clusters: Clusters, ranks: RankIntervals) -> dict[str, Any]:
    """Return how much tasks and clusters differ, and the ranks on these and on other tasks."""
    fixed, random = find_task_spans(scores, clusters, ranks)
    by_task, by_cluster = measure_spreads(scores, clusters)
    return {
        "ranks_on_these_tasks": fixed,
        "ranks_on_other_tasks": random,
        "task_spread": by_task if fixed else None,
        "cluster_spread": by_cluster,
    }


def measure_spreads(scores: PerformanceMatrix, clusters: Clusters) -> tuple[ClusterSpread | None, ClusterSpread | None]:
    """Return how much tasks differ, None without two named ones or without task effects; and clusters by another field.

    Args:
        scores: of the ranked models.
        clusters: clusters and strata of the prompts.
    """
    by_task = by_cluster = None
    if clusters.task_effects != "none" and clusters.n_named_tasks > 1:
        by_task = measure_spread(scores.Q, _group_by_task(scores))
    if clusters.field not in (NONE, TASK):
        groups = replace(clusters, task_effects="none").group(scores.prompt_ids)
        by_cluster = None if groups.problem else measure_spread(scores.Q, groups)
    return by_task, by_cluster


def _group_by_task(scores: PerformanceMatrix) -> Grouping:
    """Return the tasks as clusters."""
    return Clusters.of_tasks(scores.prompt_ids, scores.tasks, "random").group(scores.prompt_ids)


def _spans(scores: PerformanceMatrix, groups: Grouping, level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return rank_spans(
        scores.for_errors,
        groups,
        bounds=scores.metric_bounds,
        higher_is_better=scores.higher_is_better,
        level=level,
    )


def _spans_by_model(
    scores: PerformanceMatrix, ends: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> dict[str, tuple[int, int]]:
    return {model: (int(low), int(high)) for model, low, high in zip(scores.models, *ends, strict=True)}


def _unavailable(board: Leaderboard) -> str:
    """Return why there are no rank intervals; '' if there are."""
    if board.scores is None:
        return "scores are of whole tasks"
    if board.weights:
        return "prompts are weighted"
    n_ranked = sum(row.rank is not None for row in board.rows)
    if n_ranked < 2:
        return "fewer than two models have a rank"
    return explain_too_many(n_ranked).rstrip(".") if n_ranked > MAX_TESTED_MODELS else ""
