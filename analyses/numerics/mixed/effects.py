"""Effects of models, tasks and prompts that a fitted mixed model implies, with errors and ranks.

Errors are those of the joint normal distribution of the effects given the scores, with the variances at their
estimates. They are exact for a linear model with known variances, and an approximation otherwise. On other tasks,
errors come from the spread of the models over tasks instead, see `compare_on_other_tasks`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, stdtr

from analyses.numerics.mixed.elimination import MODEL_TASK, PROMPT, TASK, sum_by_component
from analyses.numerics.mixed.fit import MixedFit
from analyses.numerics.mixed.pair_comparisons import PairComparisons, compare_on_other_tasks
from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.ranking import mean_ranks
from tracker.statistics.student_t import t_quantile

QUADRATURE_NODES = 40
NORMAL_DEGREES = 1e12
"""Degrees of freedom from which on Student's t is taken as normal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEffects:
    """Effects of the models on some tasks, relative to the average model.

    Attributes:
        effect: ``(k,)`` in the unit of the scores, or in logits.
        stderr: ``(k,)`` standard errors.
        degrees: ``(k,)`` their degrees of freedom; infinite for the normal distribution.
        cov: ``(k, k)`` covariance of the models' levels, before the average is subtracted; infinite beyond float64.
        rank: ``(k,)`` 1 is best.
        rank_low, rank_high: ``(k,)`` ranks that differences of pairs allow, all together; by Holm.
        first_holm: largest p-value of the first model against another, adjusted for all pairs; 1 if several are first.
    """

    effect: NDArray[np.float64]
    stderr: NDArray[np.float64]
    degrees: NDArray[np.float64]
    cov: NDArray[np.float64]
    rank: NDArray[np.float64]
    rank_low: NDArray[np.int64]
    rank_high: NDArray[np.int64]
    first_holm: float

    @property
    def first(self) -> int:
        """The first column with the best rank."""
        return int(np.argmin(self.rank))

    def intervals(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of an interval of each effect.

        Args:
            level: in (0, 1).
        """
        reach = t_quantile(level, np.minimum(self.degrees, NORMAL_DEGREES)) * self.stderr
        return self.effect - reach, self.effect + reach


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
    variance = np.maximum(np.einsum("ij,jk,ik->i", centering, cov, centering), 0.0)
    degrees = np.full(k, fit.error_degrees)
    rank = mean_ranks(value, higher_is_better=higher_is_better)
    merit = value if higher_is_better else -value
    ahead = merit[:, None] > merit
    if weights is None:
        pairs = compare_on_other_tasks(fit)
        pvalues = pairs.pvalues
        ahead &= (pairs.difference if higher_is_better else -pairs.difference) > 0
        variance, degrees = _spread_over_tasks(pairs, cov, variance, degrees)
    else:
        pvalues = difference_pvalues(merit, cov, fit.error_degrees)
    holm = adjust_pairs(pvalues)
    better = (holm <= 1 - level) & ahead
    first = np.flatnonzero(rank == rank.min())
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = cov * fit.scale * fit.scale
    return ModelEffects(
        effect=fit.scale * (value - value.mean()),
        stderr=fit.scale * np.sqrt(variance),
        degrees=degrees,
        cov=covariance,
        rank=rank,
        rank_low=1 + better.sum(axis=0),
        rank_high=k - better.sum(axis=1),
        first_holm=1.0 if len(first) > 1 else _adjusted_first(holm, ahead, int(first[0])),
    )


def _adjusted_first(holm: NDArray[np.float64], ahead: NDArray[np.bool_], first: int) -> float:
    """Return the largest adjusted p-value of the first model against another."""
    return float(np.delete(np.where(ahead[first], holm[first], 1.0), first).max(initial=0.0))


def _spread_over_tasks(
    pairs: PairComparisons, cov: NDArray[np.float64], variance: NDArray[np.float64], degrees: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return variances of the effects relative to the average model, and their degrees of freedom, from pairs.

    With v of all pairs, i = j included, the variance of model i minus the average is the mean of v over j minus half
    the mean of v over all pairs, whatever the covariance of the models.

    Args:
        pairs: of models on other tasks.
        cov: ``(k, k)`` covariance by the mixed model, for pairs without a variance.
        variance, degrees: ``(k,)`` by the mixed model, where pairs have none.
    """
    of_pairs = np.diagonal(cov)[:, None] + np.diagonal(cov) - 2 * cov
    of_pairs = np.where(np.isnan(pairs.variance), of_pairs, pairs.variance)
    np.fill_diagonal(of_pairs, 0.0)
    from_pairs = of_pairs.mean(axis=1) - of_pairs.mean() / 2
    known = (pairs.degrees > 0).any(axis=1) & (from_pairs > 0)
    fewest = np.where(pairs.degrees > 0, pairs.degrees, np.inf).min(axis=1)
    return np.where(known, from_pairs, variance), np.where(known, fewest, degrees)


def difference_pvalues(value: NDArray[np.float64], cov: NDArray[np.float64], degrees: float) -> NDArray[np.float64]:
    """Return ``(k, k)`` two-sided p-values of the differences of all pairs.

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
    return np.asarray(2 * stdtr(degrees, -np.abs(z)))


def adjust_pairs(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(k, k)`` symmetric p-values adjusted by Holm for all pairs; 1 on the diagonal."""
    i, j = np.triu_indices(len(pvalues), 1)
    holm = np.ones_like(pvalues)
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
    by_component = sum_by_component(design, fit.weighted_residual)
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
