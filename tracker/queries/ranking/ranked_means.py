"""Rank models by their means over a matrix, with the error of each mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.name_lists import join_names
from tracker.queries.clusters import NONE, Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.interval_warnings import explain_unclustered
from tracker.queries.ranking.leaderboard_result import Leaderboard, LeaderboardRow
from tracker.queries.ranking.missing import MissingPolicy, apply_missing_policy
from tracker.queries.ranking.weighted_scores import WeightedScores, select_weighted
from tracker.queries.selection import MIN_COVERAGE, Policy
from tracker.queries.task_matrix import TaskMatrix
from tracker.queries.weights import PromptWeights
from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.intervals.means import NO_BOUNDS, Bounds, estimate_means, united_intervals
from tracker.statistics.missing_scores import linearize_imputed
from tracker.statistics.rank_intervals import fill_bounds
from tracker.statistics.ranking import mean_ranks
from tracker.statistics.standard_errors import scale_to_mean_one


@dataclass(frozen=True, kw_only=True)
class RankingOptions:
    """How to rank models.

    Attributes:
        missing: policy for missing scores.
        min_coverage: share of the prompts (or tasks) that a model must have scores for to be ranked.
        run_ids: keys of the runs to rank; None ranks all. The other runs define the expected prompts.
        clusters: clusters and strata of the prompts; None for the default task effects.
        worst, best: the metric's bounds in the order of merit; None without bounds.
    """

    missing: Policy = "bounds"
    min_coverage: float = MIN_COVERAGE
    run_ids: frozenset[int] | None = None
    clusters: Clusters | None = None
    worst: float | None = None
    best: float | None = None

    def is_ranked(self, run_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some runs are ranked."""
        return np.array([self.run_ids is None or key in self.run_ids for key in run_ids.tolist()], dtype=np.bool_)

    def missing_policy(self, unit: str, metric: str) -> MissingPolicy:
        """Return the policy with its unit and bounds."""
        return MissingPolicy(
            name=self.missing,
            min_coverage=self.min_coverage,
            unit=unit,
            worst=self.worst,
            best=self.best,
            metric=metric,
        )


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
    options = options or _default_options(scores)
    weighted = select_weighted(scores, weights)
    expected, w = weighted.scores, weighted.weights
    is_ranked = options.is_ranked(expected.run_ids)
    treated = apply_missing_policy(
        expected.Q, options.missing_policy("prompt", expected.metric), models=expected.models, is_ranked=is_ranked
    )
    kept = expected if treated.columns.all() else expected.columns(treated.columns)
    if not treated.rows.all():
        kept, w = kept.rows(treated.rows), scale_to_mean_one(w[treated.rows])
    filled = np.ascontiguousarray(treated.Q)
    if options.missing == "impute":
        kept = kept.with_imputed(expected.Q, filled, treated.columns, w)
    kept = replace(kept, Q=filled, missing=options.missing)
    coverage = (~np.isnan(expected.Q)).mean(axis=0)
    clusters = options.clusters or Clusters.of_tasks(expected.prompt_ids, expected.tasks)
    rows = _prompt_rows(kept, w, coverage[treated.columns], clusters)
    is_excluded = is_ranked & ~treated.columns & (coverage > 0)
    if is_excluded.any():
        unranked = replace(expected.columns(is_excluded), missing=options.missing)
        excluded = _prompt_rows(unranked, weighted.weights, coverage[is_excluded], clusters)
        rows += [replace(row, excluded=_exclusion_reason(row.n, expected.n_prompts, "prompts")) for row in excluded]
    unnamed = _unnamed_clusters(clusters.align(kept.prompt_ids), clusters.field)
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="prompt",
        n_units=kept.n_prompts,
        n_tasks=len(set(kept.tasks.tolist()) - {""}),
        rows=_add_ranks(rows, scores.higher_is_better),
        warnings=(*weighted.warnings, *treated.warnings, *unnamed, *_describe_missing_weights(kept, weighted)),
        weights=weighted.weights_name,
        n_effective=float(w.sum() ** 2 / (w**2).sum()) if weighted.weights_name else float(kept.n_prompts),
        missing=options.missing,
        cluster=clusters.field,
        task_effects=clusters.task_effects,
        scores=kept,
    )


def _default_options(scores: PerformanceMatrix | TaskMatrix) -> RankingOptions:
    """Return the options of a matrix that is ranked without any."""
    is_bounded = scores.worst is not None and scores.best is not None
    return RankingOptions(missing="bounds" if is_bounded else "common", worst=scores.worst, best=scores.best)


def _prompt_rows(
    scores: PerformanceMatrix, weights: NDArray[np.float64], coverage: NDArray[np.float64], clusters: Clusters
) -> list[LeaderboardRow]:
    """Return the row of each column, without a rank; intervals are united over all values of what is missing.

    Args:
        scores: the columns.
        weights: ``(n_prompts,)`` of the prompts.
        coverage: ``(n_models,)`` shares of the expected prompts with a score.
        clusters: clusters and strata of the prompts.
    """
    groups, bounds = clusters.group(scores.prompt_ids), _ordered(scores.metric_bounds)
    means = estimate_means(scores.for_errors, groups, weights, bounds)
    low, high, worst, best = means.low, means.high, means.mean, means.mean
    if not scores.is_complete:
        worst, best = (weights @ filled / weights.sum() for filled in _fill_extremes(scores.Q, scores.metric_bounds))
    if scores.bounds is not None and not scores.is_complete:
        low, high = united_intervals(scores.Q, groups, weights, bounds)
    is_clustered = clusters.field != NONE
    rows = []
    for j in range(scores.n_models):
        reason = _unclustered_reason(groups, ~np.isnan(scores.Q[:, j]), clusters.field)
        error = _number(means.stderr_design[j])
        rows.append(
            LeaderboardRow(
                model=scores.models[j],
                run_id=int(scores.run_ids[j]),
                n=int(means.n[j]),
                coverage=float(coverage[j]),
                mean=float(means.mean[j]),
                stderr=_number(means.stderr[j]),
                stderr_clustered=error if is_clustered and not reason else None,
                stderr_stratified=error if groups.n_strata > 1 and not is_clustered else None,
                low=_number(low[j]),
                high=_number(high[j]),
                rank=None,
                unclustered=reason,
                worst_mean=_number(worst[j]),
                best_mean=_number(best[j]),
                n_effective=float(means.n_effective[j]),
            )
        )
    return rows


def _fill_extremes(
    Q: NDArray[np.float64], bounds: tuple[float, float] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores with the worst, and with the best value of the metric for each missing one, which stays missing
    without bounds.
    """
    return (Q, Q) if bounds is None else fill_bounds(Q, bounds)


def _ordered(bounds: tuple[float, float] | None) -> Bounds:
    return NO_BOUNDS if bounds is None else (min(bounds), max(bounds))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def rank_by_tasks(scores: TaskMatrix, options: RankingOptions | None = None) -> Leaderboard:
    """Compute the leaderboard of a task matrix: tasks have equal weights, standard errors are over tasks.

    Raises:
        SelectionError: scores are missing and the policy is ``fail``.
    """
    options = options or _default_options(scores)
    is_ranked = options.is_ranked(scores.run_ids)
    treated = apply_missing_policy(
        scores.T, options.missing_policy("task", scores.metric), models=scores.models, is_ranked=is_ranked
    )
    coverage = (~np.isnan(scores.T)).mean(axis=0)
    kept = replace(scores.columns(treated.columns), T=treated.Q, missing=options.missing)
    linearized = None
    if options.missing == "impute":
        linearized = linearize_imputed(scores.T, treated.Q, treated.columns)
    rows = _task_rows(kept, coverage[treated.columns], options, linearized)
    is_excluded = is_ranked & ~treated.columns & (coverage > 0)
    if is_excluded.any():
        unranked = replace(scores.columns(is_excluded), missing=options.missing)
        excluded = _task_rows(unranked, coverage[is_excluded], options)
        rows += [replace(row, excluded=_exclusion_reason(row.n, scores.n_tasks, "tasks")) for row in excluded]
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="task",
        n_units=len(treated.Q),
        n_tasks=len(treated.Q),
        rows=_add_ranks(rows, scores.higher_is_better),
        warnings=treated.warnings,
        n_effective=float(len(treated.Q)),
        missing=options.missing,
        cluster=NONE,
        task_effects="random",
    )


def _task_rows(
    scores: TaskMatrix,
    coverage: NDArray[np.float64],
    options: RankingOptions,
    linearized: NDArray[np.float64] | None = None,
) -> list[LeaderboardRow]:
    """Return the row of each column, without a rank; intervals are united over all values of what is missing."""
    groups = group_rows(np.full(scores.n_tasks, ""))
    bounds = None if options.worst is None or options.best is None else (options.worst, options.best)
    means = estimate_means(scores.T if linearized is None else linearized, groups, bounds=_ordered(bounds))
    low, high, worst, best = means.low, means.high, means.mean, means.mean
    if not scores.is_complete:
        worst, best = (filled.mean(axis=0) for filled in _fill_extremes(scores.T, bounds))
    if scores.missing == "bounds" and bounds is not None and not scores.is_complete:
        low, high = united_intervals(scores.T, groups, bounds=_ordered(bounds))
    return [
        LeaderboardRow(
            model=scores.models[j],
            run_id=int(scores.run_ids[j]),
            n=int(means.n[j]),
            coverage=share,
            mean=float(means.mean[j]),
            stderr=_number(means.stderr[j]),
            stderr_clustered=None,
            low=_number(low[j]),
            high=_number(high[j]),
            rank=None,
            unclustered="scores are of whole tasks",
            worst_mean=_number(worst[j]),
            best_mean=_number(best[j]),
            n_effective=float(means.n[j]),
        )
        for j, share in enumerate(coverage.tolist())
    ]


def _describe_missing_weights(scores: PerformanceMatrix, weighted: WeightedScores) -> tuple[str, ...]:
    """Return a warning if weighted means are over the scores that a model has."""
    if not weighted.weights_name or scores.missing != "bounds" or scores.is_complete:
        return ()
    lacking = [scores.models[column] for column in np.flatnonzero(np.isnan(scores.Q).any(axis=0)).tolist()]
    return (
        f"Weighted means are over the scores that a model has: tasks of which a model lacks prompts weigh less "
        f"({join_names(lacking)}). With --missing common all models have the same weights.",
    )


def _unnamed_clusters(clusters: NDArray[np.str_], field: str) -> tuple[str, ...]:
    """Return a warning if some prompts have no cluster."""
    n_unnamed = int((clusters == "").sum())
    if not 0 < n_unnamed < len(clusters):
        return ()
    return (f"{n_unnamed:,} of {len(clusters):,} prompts have no {field}; each of them is a separate cluster.",)


def _unclustered_reason(groups: Grouping, seen: NDArray[np.bool_], field: str) -> str:
    """Return why the error of a column is not clustered; '' if it is."""
    problem = explain_unclustered(groups, field)
    return problem if problem or seen.all() or not seen.any() else explain_unclustered(groups.rows(seen), field)


def _exclusion_reason(n: int, n_expected: int, units: str) -> str:
    return f"{n_expected - n:,} of {n_expected:,} {units} are missing"


def _add_ranks(rows: Sequence[LeaderboardRow], higher_is_better: bool) -> tuple[LeaderboardRow, ...]:
    """Return the rows in order, ranked unless listed apart; tied models are in the order of their names."""
    sign = -1.0 if higher_is_better else 1.0
    standing = sorted((row for row in rows if not row.excluded), key=lambda row: row.model)
    ranks = mean_ranks(np.array([row.mean for row in standing]), higher_is_better=higher_is_better)
    ranked = [replace(row, rank=rank) for row, rank in zip(standing, ranks.tolist(), strict=True)]
    excluded = sorted((row for row in rows if row.excluded), key=lambda row: (sign * row.mean, row.model))
    return (*sorted(ranked, key=lambda row: (row.rank, row.model)), *excluded)
