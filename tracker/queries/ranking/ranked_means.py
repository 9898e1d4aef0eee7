"""Rank models by their means over a matrix, with the error of each mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.queries.clusters import NONE, TASK, Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.leaderboard_result import Leaderboard, LeaderboardRow
from tracker.queries.ranking.missing import MissingPolicy, apply_missing_policy
from tracker.queries.ranking.weighted_scores import select_weighted
from tracker.queries.selection import Policy
from tracker.queries.task_matrix import TaskMatrix
from tracker.queries.weights import PromptWeights
from tracker.statistics.ranking import mean_ranks
from tracker.statistics.standard_errors import WeightedMeans, confidence_interval, scale_to_mean_one, weighted_means


@dataclass(frozen=True, kw_only=True)
class RankingOptions:
    """How to rank models.

    Attributes:
        missing: policy for missing scores.
        run_ids: keys of the runs to rank; None ranks all. The other runs define the expected prompts.
        clusters: clusters of the prompts; None for their tasks.
        worst, best: the metric's bounds in the order of merit; None without bounds.
    """

    missing: Policy = "unranked"
    run_ids: frozenset[int] | None = None
    clusters: Clusters | None = None
    worst: float | None = None
    best: float | None = None

    def is_ranked(self, run_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some runs are ranked."""
        return np.array([self.run_ids is None or key in self.run_ids for key in run_ids.tolist()], dtype=np.bool_)

    def missing_policy(self, unit: str, metric: str) -> MissingPolicy:
        """Return the policy with its unit and bounds."""
        return MissingPolicy(name=self.missing, unit=unit, worst=self.worst, best=self.best, metric=metric)


def rank_by_prompts(
    scores: PerformanceMatrix, weights: PromptWeights | None = None, options: RankingOptions | None = None
) -> Leaderboard:
    """Compute the leaderboard of a performance matrix; every model is expected to have a score in every row.

    Args:
        scores: the matrix.
        weights: weight of each prompt; None for equal weights.
        options: further options.

    Raises:
        SelectionError: no prompt has a weight, or scores are missing and the policy is ``fail``.
    """
    options = options or RankingOptions()
    weighted = select_weighted(scores, weights)
    expected = weighted.scores
    is_ranked = options.is_ranked(expected.run_ids)
    filled = apply_missing_policy(
        expected.Q, options.missing_policy("prompt", expected.metric), models=expected.models, is_ranked=is_ranked
    )
    kept = replace(expected.rows(filled.kept), Q=filled.Q)
    w = weighted.weights if filled.kept.all() else scale_to_mean_one(weighted.weights[filled.kept])
    clusters = kept.tasks if options.clusters is None else options.clusters.align(kept.prompt_ids)
    cluster_field = TASK if options.clusters is None else options.clusters.field
    means = weighted_means(kept.Q, clusters, w)
    n_measured = (~np.isnan(expected.Q)).sum(axis=0)
    rows = [
        _prompt_row(kept, means, j, coverage=int(n_measured[j]) / expected.n_prompts, cluster_field=cluster_field)
        for j in np.flatnonzero(is_ranked & (means.n > 0)).tolist()
    ]
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="prompt",
        n_units=kept.n_prompts,
        n_tasks=len(set(kept.tasks.tolist()) - {""}),
        rows=_add_ranks(rows, scores.higher_is_better),
        warnings=(*weighted.warnings, *filled.warnings, *_unnamed_clusters(clusters, cluster_field)),
        weights=weighted.weights_name,
        n_effective=float(w.sum() ** 2 / (w**2).sum()) if weighted.weights_name else float(kept.n_prompts),
        missing=options.missing,
        cluster=cluster_field,
        scores=kept,
    )


def _prompt_row(
    scores: PerformanceMatrix, means: WeightedMeans, j: int, *, coverage: float, cluster_field: str
) -> LeaderboardRow:
    """Return the row of a column, without a rank."""
    n, n_clusters, mean = int(means.n[j]), int(means.n_clusters[j]), float(means.mean[j])
    stderr = means.plain_error(j)
    reason = _unclustered_reason(n, int(means.n_without_task[j]), n_clusters, cluster_field)
    clustered = None if reason or stderr is None else means.clustered_error(j)
    error, degrees = (stderr, n - 1) if clustered is None else (clustered, n_clusters - 1)
    low, high = confidence_interval(mean, error, degrees)
    return LeaderboardRow(
        model=scores.models[j],
        run_id=int(scores.run_ids[j]),
        n=n,
        coverage=coverage,
        mean=mean,
        stderr=stderr,
        stderr_clustered=clustered,
        low=low,
        high=high,
        rank=None,
        unclustered=reason,
        unranked=_unranked_reason(n, scores.n_prompts, "prompts"),
        n_effective=float(means.n_effective[j]),
    )


def rank_by_tasks(scores: TaskMatrix, options: RankingOptions | None = None) -> Leaderboard:
    """Compute the leaderboard of a task matrix: tasks have equal weights, standard errors are over tasks.

    Raises:
        SelectionError: scores are missing and the policy is ``fail``.
    """
    options = options or RankingOptions()
    is_ranked = options.is_ranked(scores.run_ids)
    filled = apply_missing_policy(
        scores.T, options.missing_policy("task", scores.metric), models=scores.models, is_ranked=is_ranked
    )
    n_measured = (~np.isnan(scores.T)).sum(axis=0)
    rows = [
        _task_row(scores, filled.Q, j, coverage=int(n_measured[j]) / scores.n_tasks)
        for j in np.flatnonzero(is_ranked & ~np.isnan(filled.Q).all(axis=0)).tolist()
    ]
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="task",
        n_units=len(filled.Q),
        n_tasks=len(filled.Q),
        rows=_add_ranks(rows, scores.higher_is_better),
        warnings=filled.warnings,
        n_effective=float(len(filled.Q)),
        missing=options.missing,
        cluster=NONE,
    )


def _task_row(scores: TaskMatrix, T: NDArray[np.float64], j: int, *, coverage: float) -> LeaderboardRow:
    """Return the row of a column, without a rank."""
    values = T[:, j][~np.isnan(T[:, j])]
    n, mean = len(values), float(values.mean())
    stderr = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    low, high = confidence_interval(mean, stderr, n - 1)
    return LeaderboardRow(
        model=scores.models[j],
        run_id=int(scores.run_ids[j]),
        n=n,
        coverage=coverage,
        mean=mean,
        stderr=stderr,
        stderr_clustered=None,
        low=low,
        high=high,
        rank=None,
        unclustered="scores are of whole tasks",
        unranked=_unranked_reason(n, len(T), "tasks"),
        n_effective=float(n),
    )


def _unnamed_clusters(clusters: NDArray[np.str_], field: str) -> tuple[str, ...]:
    """Return a warning if some prompts have no cluster."""
    n_unnamed = int((clusters == "").sum())
    if not 0 < n_unnamed < len(clusters):
        return ()
    return (f"{n_unnamed:,} of {len(clusters):,} prompts have no {field}; each of them is a separate cluster.",)


def _unclustered_reason(n: int, n_unnamed: int, n_clusters: int, field: str) -> str:
    if field == NONE:
        return "clustering is disabled"
    lack = "have no task" if field == TASK else f"have no {field}"
    if n_unnamed == n:
        return f"prompts {lack}"
    return f"all prompts are in one {field}" if n_clusters < 2 else ""


def _unranked_reason(n: int, n_expected: int, units: str) -> str:
    return f"{n_expected - n:,} of {n_expected:,} {units} are missing" if n < n_expected else ""


def _add_ranks(rows: Sequence[LeaderboardRow], higher_is_better: bool) -> tuple[LeaderboardRow, ...]:
    """Return the rows in order, ranked if no score is missing; tied models are in the order of their names."""
    sign = -1.0 if higher_is_better else 1.0
    complete = sorted((row for row in rows if not row.unranked), key=lambda row: row.model)
    ranks = mean_ranks(np.array([row.mean for row in complete]), higher_is_better=higher_is_better)
    ranked = [replace(row, rank=rank) for row, rank in zip(complete, ranks.tolist(), strict=True)]
    unranked = sorted((row for row in rows if row.unranked), key=lambda row: (sign * row.mean, row.model))
    return (*sorted(ranked, key=lambda row: (row.rank, row.model)), *unranked)
