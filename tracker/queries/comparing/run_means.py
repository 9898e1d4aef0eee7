"""The mean of each run in the history of its model, with its interval, as on the leaderboard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.history import RunHistory
from tracker.statistics.intervals.means import NO_BOUNDS, estimate_means, united_intervals


@dataclass(frozen=True, kw_only=True)
class RunMean:
    """The mean of a run.

    Attributes:
        n: its prompts with a score.
        mean: over these; under ``worst`` and ``impute`` over the prompts of all runs. NaN without any.
        low, high: 95 % interval of the mean on the prompts of all runs; NaN if undefined.
    """

    n: int
    mean: float
    low: float
    high: float


def estimate_run_means(history: RunHistory, clusters: Clusters) -> list[RunMean]:
    """Estimate the mean of each run under the policy for missing scores of a history.

    Args:
        history: the runs; infinite scores have no interval.
        clusters: clusters and strata of their prompts.
    """
    means = [RunMean(n=n, mean=mean, low=np.nan, high=np.nan) for n, mean in history.means]
    if np.isinf(history.scores.Q).any():
        return means
    scores = history.scores
    estimates = _estimate(scores.rows(np.asarray(~np.isnan(scores.Q).all(axis=1))), clusters)
    return [
        RunMean(n=run.n, mean=mean, low=low, high=high) if run.n else run
        for run, mean, low, high in zip(means, *(values.tolist() for values in estimates), strict=True)
    ]


def _estimate(scores: PerformanceMatrix, clusters: Clusters) -> tuple[NDArray[np.float64], ...]:
    """Return the mean of each column, and the ends of its interval."""
    groups, limits = clusters.group(scores.prompt_ids), scores.metric_bounds
    bounds = NO_BOUNDS if limits is None else (min(limits), max(limits))
    Q = scores.for_errors
    if scores.missing == "worst" and limits is not None:
        Q = np.where(np.isnan(Q), limits[0], Q)
    result = estimate_means(Q, groups, bounds=bounds)
    if scores.bounds is None or scores.is_complete:
        return result.mean, result.low, result.high
    return (result.mean, *united_intervals(Q, groups, bounds=bounds))
