"""Effects of models, tasks and prompts that a fitted mixed model implies, with errors and ranks.

All errors are those of the joint normal distribution of the effects given the scores, with the variances at their
estimates. They are exact for a linear model with known variances, and an approximation otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, stdtr

from analyses.numerics.mixed.elimination import MODEL_TASK, PROMPT, TASK, sum_by_component
from analyses.numerics.mixed.fit import MixedFit
from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.ranking import mean_ranks

QUADRATURE_NODES = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEffects:
    """Effects of the models on some tasks, relative to the average model.

    Attributes:
        effect: ``(k,)`` in the unit of the scores, or in logits.
        stderr: ``(k,)`` standard errors.
        cov: ``(k, k)`` covariance of the models' levels, before the average is subtracted; infinite beyond float64.
        rank: ``(k,)`` 1 is best.
        rank_low, rank_high: ``(k,)`` ranks that differences of pairs allow, all together; by Holm.
        first_holm: largest p-value of the first model against another, adjusted for all pairs; 1 if several are first.
    """

    effect: NDArray[np.float64]
    stderr: NDArray[np.float64]
    cov: NDArray[np.float64]
    rank: NDArray[np.float64]
    rank_low: NDArray[np.int64]
    rank_high: NDArray[np.int64]
    first_holm: float

    @property
    def first(self) -> int:
        """The first column with the best rank."""
        return int(np.argmin(self.rank))


def effects_on_tasks(
    fit: MixedFit, weights: NDArray[np.float64] | None, *, higher_is_better: bool, level: float
) -> ModelEffects:
    """Return the effects of the models on a weighted mean of these tasks, or on other tasks like these.

    Args:
        fit: the fitted model.
        weights: ``(n_tasks,)`` share of each task; None for other tasks, of which only the distribution is known.
        higher_is_better: whether large scores are good.
        level: of all rank intervals together.
    """
    equations, k = fit.equations, fit.design.n_models
    reach = np.eye(k, equations.cov.shape[0])
    value = fit.solution.phi[:k].copy()
    within = np.zeros((k, k))
    if weights is not None:
        reach -= np.einsum("t,tij->ij", weights, equations.P @ equations.A[:, :k, :])
        within = np.einsum("t,tij->ij", weights**2, equations.P)
        value += weights @ fit.solution.h
    moves = fit.sensitivity.phi[:, :k].copy()
    if weights is not None:
        moves += np.einsum("t,itj->ij", weights, fit.sensitivity.h)
    # In units of the scale, whose square may overflow
    cov = (fit.error_scale / fit.scale) ** 2 * (reach @ equations.cov @ reach.T + within)
    cov += moves.T @ fit.sensitivity.log_cov @ moves
    centering = np.eye(k) - 1 / k
    stderr = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", centering, cov, centering), 0.0))
    rank = mean_ranks(value, higher_is_better=higher_is_better)
    merit = value if higher_is_better else -value
    holm = adjust_differences(merit, cov, fit.error_degrees)
    better = (holm <= 1 - level) & (merit[:, None] > merit)
    first = np.flatnonzero(rank == rank.min())
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = cov * fit.scale * fit.scale
    return ModelEffects(
        effect=fit.scale * (value - value.mean()),
        stderr=fit.scale * stderr,
        cov=covariance,
        rank=rank,
        rank_low=1 + better.sum(axis=0),
        rank_high=k - better.sum(axis=1),
        first_holm=1.0 if len(first) > 1 else float(np.delete(holm[first[0]], first).max(initial=0.0)),
    )


def adjust_differences(value: NDArray[np.float64], cov: NDArray[np.float64], degrees: float) -> NDArray[np.float64]:
    """Return ``(k, k)`` two-sided p-values of the differences of all pairs, adjusted by Holm; 1 on the diagonal.

    Args:
        value: ``(k,)`` values.
        cov: ``(k, k)`` covariance of the values.
        degrees: of Student's t; infinite for the normal distribution.
    """
    difference = value[:, None] - value
    variance = np.diagonal(cov)[:, None] + np.diagonal(cov) - 2 * cov
    floor = 1e-12 * float(np.abs(np.diagonal(cov)).max(initial=0.0))
    known = variance > floor
    z = np.divide(difference, np.sqrt(np.where(known, variance, 1.0)), out=np.zeros_like(difference), where=known)
    pvalues = 2 * stdtr(degrees, -np.abs(z))
    i, j = np.triu_indices(len(value), 1)
    holm = np.ones_like(cov)
    holm[i, j] = holm[j, i] = holm_values(pvalues[i, j])
    return holm


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskEffects:
    """Effects of tasks, and of models within them, pooled over all tasks.

    Attributes:
        effect: ``(n_tasks,)`` effect of each task, the same for all models.
        deviation: ``(n_tasks, k)`` of each model on each task, beyond the effects of both.
        deviation_stderr: ``(n_tasks, k)`` standard errors of the deviations.
        raw_mean: ``(n_tasks, k)`` mean of the scores; NaN without one.
        mean: ``(n_tasks, k)`` expected score on a new prompt of the task, with the mean covariates of its prompts.
    """

    effect: NDArray[np.float64]
    deviation: NDArray[np.float64]
    deviation_stderr: NDArray[np.float64]
    raw_mean: NDArray[np.float64]
    mean: NDArray[np.float64]


def task_effects(fit: MixedFit) -> TaskEffects:
    """Return the effects of tasks, and of models within tasks."""
    design, equations = fit.design, fit.equations
    k = design.n_models
    by_component = sum_by_component(design, weighted_residual(fit))
    variance = equations.sd**2
    deviation = fit.scale * variance[MODEL_TASK] * by_component[MODEL_TASK].reshape(-1, k)
    B = equations.B
    information = np.einsum("tii->ti", (B - B @ equations.cov @ B)[:, :k, :k])
    left = variance[MODEL_TASK] * (1 - variance[MODEL_TASK] * information)
    counts = design.sum_by_task(design.observed)
    covariates = np.add.reduceat(design.W, design.starts[:-1], axis=0) / np.diff(design.starts)[:, None]
    shift = (covariates @ fit.solution.phi[k:])[:, None]
    level = fit.center + fit.scale * (fit.solution.phi[:k] + fit.solution.h + shift)
    return TaskEffects(
        effect=fit.scale * variance[TASK] * by_component[TASK],
        deviation=deviation,
        deviation_stderr=fit.error_scale * np.sqrt(np.maximum(left, 0.0)),
        raw_mean=_means(fit, counts),
        mean=expected_scores(fit, level),
    )


def _means(fit: MixedFit, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean score of each model on each task, in the unit of the table."""
    design = fit.design
    blank = np.full(counts.shape, np.nan)
    return np.asarray(np.divide(design.sum_by_task(design.Y), counts, out=blank, where=counts > 0))


def weighted_residual(fit: MixedFit) -> NDArray[np.float64]:
    """Return the residual of each cell times its weight, in the unit of the fit."""
    design = fit.design
    if fit.response == "logistic":
        return design.observed * (design.Y - fit.predicted)
    return design.observed * ((design.Y - fit.center) / fit.scale - fit.solution.eta)


def expected_scores(fit: MixedFit, level: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected score on a new prompt whose effect is unknown.

    Args:
        fit: the fitted model.
        level: linear predictor without the prompt's effect.
    """
    if fit.response == "gaussian":
        return np.asarray(level)
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
    shifted = level[..., None] + fit.effect_sd[PROMPT] * nodes
    return np.asarray(expit(shifted) @ (weights / weights.sum()))


def prompt_effects(fit: MixedFit) -> NDArray[np.float64]:
    """Return the effect of each prompt, in the order of the table."""
    effects = np.empty(len(fit.design.order))
    effects[fit.design.order] = fit.scale * fit.solution.u
    return effects


def completed_means(fit: MixedFit) -> NDArray[np.float64]:
    """Return the mean of each model over all prompts, with predictions in place of missing scores."""
    observed = fit.design.observed > 0
    return np.asarray(np.where(observed, fit.design.Y, fit.predicted).mean(axis=0))


def share_intervals(fit: MixedFit, z: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of intervals of the shares of variance, by the delta method on their logits.

    Args:
        fit: the fitted model.
        z: standard normal quantile of the interval.

    Returns:
        Two arrays ``(6,)``, in the order of `MixedFit.shares`; NaN where a variance is 0 or has no error.
    """
    shares = fit.shares
    known = np.flatnonzero(~np.isnan(np.diagonal(fit.log_cov)))
    jacobian = -np.outer(shares, shares[known])
    jacobian[known, np.arange(len(known))] += shares[known]
    variance = np.einsum("ij,jk,ik->i", jacobian, fit.log_cov[np.ix_(known, known)], jacobian)
    spread = shares * (1 - shares)
    has_error = (spread > 0) & (variance > 0)
    error = np.divide(np.sqrt(np.maximum(variance, 0)), spread, out=np.full(6, np.nan), where=has_error)
    logit = np.log(np.divide(shares, 1 - shares, out=np.full(6, np.nan), where=has_error))
    return expit(logit - z * error), expit(logit + z * error)
