"""Variances, models, tasks and covariates of a mixed model as tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from analyses.mixed_model.covariates import UNITS
from analyses.mixed_model.method import METRIC_NAMES, MixedModel
from analyses.numerics.mixed.effects import share_intervals
from analyses.presentation.table_columns import number_column
from tracker.recording.finding import RankedModels


def list_rankings(finding: MixedModel) -> RankedModels:
    """The models with their effects on these tasks, ranks and intervals."""
    effects = finding.on_tasks
    low, high = effects.intervals(finding.level)
    return RankedModels(
        models=finding.models,
        score=effects.effect,
        rank=effects.rank,
        low=low,
        high=high,
        rank_low=effects.rank_low.astype(np.float64),
        rank_high=effects.rank_high.astype(np.float64),
    )


def list_variances(finding: MixedModel) -> pa.Table:
    """One row for each component, then the residual."""
    fit = finding.fit
    names = (*METRIC_NAMES, "residual")
    inactive = np.array([name in finding.inactive_reasons for name in names])
    low, high = share_intervals(fit, float(ndtri((1 + finding.level) / 2)))
    sd = np.append(fit.sd, fit.residual_sd)
    with np.errstate(over="ignore"):
        variance = sd**2
    blank = np.where(inactive, np.nan, 1.0)
    return pa.table(
        {
            "component": pa.array(names, pa.string()),
            "variance": number_column(variance * blank),
            "sd": number_column(sd * blank),
            "share": number_column(fit.shares * blank),
            "share_low": number_column(low),
            "share_high": number_column(high),
        }
    )


def list_models(finding: MixedModel, Q: NDArray[np.float64]) -> pa.Table:
    """One row for each model, the best first.

    Args:
        finding: the result.
        Q: ``(n, k)`` scores; NaN = missing.
    """
    on_these, elsewhere = finding.on_tasks, finding.other_tasks or finding.on_tasks
    order = np.argsort(on_these.rank, kind="stable")
    low, high = on_these.intervals(finding.level)
    other_low, other_high = elsewhere.intervals(finding.level)
    return pa.table(
        {
            "model": pa.array([finding.models[column] for column in order], pa.string()),
            "rank": on_these.rank[order],
            "rank_low": on_these.rank_low[order],
            "rank_high": on_these.rank_high[order],
            "effect": on_these.effect[order],
            "stderr": on_these.stderr[order],
            "low": low[order],
            "high": high[order],
            "other_tasks_effect": elsewhere.effect[order],
            "other_tasks_stderr": elsewhere.stderr[order],
            "other_tasks_low": other_low[order],
            "other_tasks_high": other_high[order],
            "other_tasks_rank_low": elsewhere.rank_low[order],
            "other_tasks_rank_high": elsewhere.rank_high[order],
            "n_scores": (~np.isnan(Q)).sum(axis=0)[order],
            "mean": np.nanmean(Q, axis=0)[order],
            "completed_mean": finding.completed[order],
        }
    )


def list_tasks(finding: MixedModel) -> pa.Table:
    """One row for each task: its mean over the models, as measured and shrunken."""
    by_task, sizes = finding.by_task, np.diff(finding.fit.design.starts)
    counts = finding.fit.design.sum_by_task(finding.fit.design.observed).sum(axis=1)
    sums = finding.fit.design.sum_by_task(finding.fit.design.Y).sum(axis=1)
    return pa.table(
        {
            "task": pa.array(finding.tasks, pa.string()),
            "n_prompts": sizes,
            "mean": number_column(sums / counts),
            "shrunken_mean": by_task.mean.mean(axis=1),
            "effect": by_task.effect,
        }
    )


def list_deviations(finding: MixedModel) -> pa.Table:
    """One row for each model on each task."""
    by_task, k = finding.by_task, len(finding.models)
    return pa.table(
        {
            "task": pa.array([task for task in finding.tasks for _ in range(k)], pa.string()),
            "model": pa.array(list(finding.models) * len(finding.tasks), pa.string()),
            "mean": number_column(by_task.raw_mean.ravel()),
            "shrunken_mean": by_task.mean.ravel(),
            "deviation": by_task.deviation.ravel(),
            "stderr": by_task.deviation_stderr.ravel(),
        }
    )


def list_covariates(finding: MixedModel) -> pa.Table:
    """One row for each covariate: its test, or why it is left out."""
    tests = finding.tests
    excluded = finding.coded.excluded
    blank = [None] * len(excluded)
    return pa.table(
        {
            "covariate": pa.array([*(test.name for test in tests), *excluded], pa.string()),
            "unit": pa.array(
                [*(test.unit for test in tests), *(UNITS.get(name, "") for name in excluded)], pa.string()
            ),
            **{
                field: number_column([*(getattr(test, field) for test in tests), *blank])
                for field in ("estimate", "stderr", "degrees", "pvalue", "holm")
            },
            "excluded": pa.array([*([None] * len(tests)), *excluded.values()], pa.string()),
        }
    )
