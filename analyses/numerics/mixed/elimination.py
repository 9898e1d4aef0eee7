"""Exact elimination of random effects: prompts, then models within tasks, then models and families.

Given the effects of models and tasks, prompts are independent; given those of models, tasks are. The mixed-model
equations therefore shrink from an unknown for each prompt, task, and model within a task to one for each model. A step
is a few products of matrices with at most as many columns as there are models. Missing cells have weight 0, so they
change nothing. A component with variance 0 is exact too: no variance is inverted.

Notation: a cell (p, j) is a prompt and a model, w its weight (the precision of its residual). ``g`` of a task is the
vector of its models: their effects, plus the task's, plus those of models within the task. ``phi`` holds the effects of
the models with their covariates, then the coefficients of the covariates of prompts.

Source: Searle, Casella & McCulloch 1992, "Variance components", sections 6.6 and 7.6; Bates et al. 2015, "Fitting
linear mixed-effects models using lme4", section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.mixed.design import COMPONENTS, CrossedDesign

MODEL, FAMILY, TASK, MODEL_TASK, PROMPT = range(len(COMPONENTS))

NO_INFORMATION = 1e-12
"""Information of a task on a model, relative to the largest, up to which it is none."""


@dataclass(frozen=True, slots=True)
class Elimination:
    """The equations of one design under given weights and standard deviations, ready to be solved.

    Attributes:
        design: scores and effects.
        sd: ``(5,)`` standard deviation of each of `COMPONENTS`.
        w: ``(n, k)`` weight of each cell.
        row_weight: ``(n,)`` sum of the weights of each prompt.
        omega: ``(n,)`` share of a prompt's sum of residuals that its effect leaves over: 1 / (1 + variance * weight).
        A: ``(n_tasks, k + r, k + r)`` information of each task on g and the prompts' coefficients.
        P: ``(n_tasks, k, k)`` covariance of the task's own effects, given all models.
        B: ``(n_tasks, k + r, k + r)`` information of each task on phi.
        prior: ``(k, k)`` covariance of the models' random effects, given the fixed effects.
        F: ``(k + r, q + r)`` phi of each fixed effect.
        fixed_cov: ``(q + r, q + r)`` covariance of the fixed effects.
        cov: ``(k + r, k + r)`` covariance of phi.
        log_random: log determinant of the information on the random effects, relative to their prior.
        log_fixed: log determinant of the information on the fixed effects.
    """

    design: CrossedDesign
    sd: NDArray[np.float64]
    w: NDArray[np.float64]
    row_weight: NDArray[np.float64]
    omega: NDArray[np.float64]
    A: NDArray[np.float64]
    P: NDArray[np.float64]
    B: NDArray[np.float64]
    prior: NDArray[np.float64]
    F: NDArray[np.float64]
    fixed_cov: NDArray[np.float64]
    cov: NDArray[np.float64]
    log_random: float
    log_fixed: float


@dataclass(frozen=True, slots=True)
class Solution:
    """Effects that solve the equations for one right-hand side.

    Attributes:
        phi: ``(k + r,)`` effect of each model with its covariates, then the coefficients of the prompts' covariates.
        fixed: ``(q + r,)`` fixed effects.
        h: ``(n_tasks, k)`` effect of each task, and of each model within it.
        u: ``(n,)`` effects of prompts.
        eta: ``(n, k)`` sum of all effects of each cell.
    """

    phi: NDArray[np.float64]
    fixed: NDArray[np.float64]
    h: NDArray[np.float64]
    u: NDArray[np.float64]
    eta: NDArray[np.float64]


def eliminate(design: CrossedDesign, w: NDArray[np.float64], sd: NDArray[np.float64]) -> Elimination:
    """Eliminate the effects of prompts, of tasks and of models.

    Args:
        design: scores and effects.
        w: ``(n, k)`` weight of each cell, not negative; 0 where the score is missing.
        sd: ``(5,)`` standard deviations, not negative.
    """
    k = design.n_models
    row_weight = w.sum(axis=1)
    variance = float(sd[PROMPT] ** 2)
    omega = 1 / (1 + variance * row_weight)
    log_random = -float(np.log(omega).sum())
    A = _task_information(design, w, row_weight, omega, variance)
    # (sd I + gamma 11')^2 is the covariance of a task's own effects.
    root = np.full((k, k), (np.sqrt(sd[MODEL_TASK] ** 2 + k * sd[TASK] ** 2) - sd[MODEL_TASK]) / k)
    root[np.diag_indices(k)] += sd[MODEL_TASK]
    P, log_tasks = _posterior(A[:, :k, :k], root)
    B = A - A[:, :, :k] @ P @ A[:, :k, :]
    total = B.sum(axis=0)
    members = np.eye(design.n_families)[design.families] * sd[FAMILY]
    prior_root = np.hstack([np.eye(k) * sd[MODEL], members])
    prior, log_models = _posterior(total[None, :k, :k], prior_root)
    q, r = design.X.shape[1], design.W.shape[1]
    F = np.zeros((k + r, q + r))
    F[:k, :q] = design.X
    F[k:, q:] = np.eye(r)
    left = total - total[:, :k] @ prior[0] @ total[:k, :]
    information = F.T @ left @ F
    fixed_cov = np.linalg.inv(information)
    reach = F.copy()
    reach[:k] -= prior[0] @ total[:k, :] @ F
    cov = reach @ fixed_cov @ reach.T
    cov[:k, :k] += prior[0]
    return Elimination(
        design=design,
        sd=sd,
        w=w,
        row_weight=row_weight,
        omega=omega,
        A=A,
        P=P,
        B=B,
        prior=prior[0],
        F=F,
        fixed_cov=fixed_cov,
        cov=cov,
        log_random=log_random + log_tasks + log_models,
        log_fixed=float(np.linalg.slogdet(information)[1]),
    )


def _task_information(
    design: CrossedDesign,
    w: NDArray[np.float64],
    row_weight: NDArray[np.float64],
    omega: NDArray[np.float64],
    variance: float,
) -> NDArray[np.float64]:
    """Return the information of each task, its prompts eliminated; see `Elimination.A`."""
    k, r = design.n_models, design.W.shape[1]
    A = np.empty((design.n_tasks, k + r, k + r))
    diagonal = np.arange(k)
    for task, rows in enumerate(design.task_slices()):
        weights, shrunk, covariates = w[rows], omega[rows, None], design.W[rows]
        A[task, :k, :k] = -(weights * (variance * shrunk)).T @ weights
        A[task, diagonal, diagonal] += weights.sum(axis=0)
        A[task, :k, k:] = weights.T @ (shrunk * covariates)
        A[task, k:, :k] = A[task, :k, k:].T
        A[task, k:, k:] = (row_weight[rows, None] * shrunk * covariates).T @ covariates
    return A


def _posterior(information: NDArray[np.float64], root: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return covariances given the data of effects with covariance ``root @ root.T``, and their log determinants.

    Args:
        information: ``(m, k, k)`` of the data.
        root: ``(k, l)``.
    """
    inner = np.eye(root.shape[1]) + root.T @ information @ root
    L = np.linalg.cholesky(inner)
    half = np.linalg.solve(L, np.broadcast_to(root.T, (len(L), *root.T.shape)))
    log_determinant = 2 * float(np.log(np.diagonal(L, axis1=1, axis2=2)).sum())
    return np.swapaxes(half, 1, 2) @ half, log_determinant


def solve(equations: Elimination, r: NDArray[np.float64]) -> Solution:
    """Solve the mixed-model equations.

    Args:
        equations: from `eliminate`.
        r: ``(n, k)`` weight times working response of each cell; 0 where the score is missing.
    """
    design, k = equations.design, equations.design.n_models
    b = _sum_tasks(equations, r)
    A, P = equations.A, equations.P
    within = np.einsum("tij,tj->ti", P, b[:, :k])
    c = (b - np.einsum("tij,tj->ti", A[:, :, :k], within)).sum(axis=0)
    total = equations.B.sum(axis=0)
    left = c - total[:, :k] @ (equations.prior @ c[:k])
    fixed = equations.fixed_cov @ (equations.F.T @ left)
    phi = equations.F @ fixed
    phi[:k] += equations.prior @ (c[:k] - total[:k, :] @ phi)
    h = np.einsum("tij,tj->ti", P, b[:, :k] - A[:, :k, :] @ phi)
    sizes = np.diff(design.starts)
    level = np.repeat(phi[:k] + h, sizes, axis=0)
    shift = design.W @ phi[k:]
    left_over = r.sum(axis=1) - (equations.w * (level + shift[:, None])).sum(axis=1)
    u = float(equations.sd[PROMPT] ** 2) * equations.omega * left_over
    return Solution(phi, fixed, h, u, level + (shift + u)[:, None])


def _sum_tasks(equations: Elimination, r: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(n_tasks, k + r)``, the right-hand side of each task, its prompts eliminated."""
    design, k, omega = equations.design, equations.design.n_models, equations.omega
    variance, row_sums = float(equations.sd[PROMPT] ** 2), r.sum(axis=1)
    b = np.empty((design.n_tasks, equations.A.shape[1]))
    b[:, :k] = design.sum_by_task(r - equations.w * (variance * omega * row_sums)[:, None])
    b[:, k:] = design.sum_by_task((omega * row_sums)[:, None] * design.W)
    return b


def solve_tasks(
    equations: Elimination, r: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the level of each model on each task from the task's scores alone, without shrinkage.

    Args:
        equations: from `eliminate`.
        r: ``(n, k)`` as for `solve`.
        coefficients: ``(r,)`` of the covariates of prompts.

    Returns:
        ``(n_tasks, k)`` levels, NaN without a score; ``(n_tasks, k, k)`` their covariances given the true levels.
    """
    k = equations.design.n_models
    A = equations.A[:, :k, :k].copy()
    b = _sum_tasks(equations, r)[:, :k] - equations.A[:, :k, k:] @ coefficients
    diagonal = np.arange(k)
    information = A[:, diagonal, diagonal]
    unknown = information <= NO_INFORMATION * information.max()
    A[unknown] = 0.0
    np.swapaxes(A, 1, 2)[unknown] = 0.0
    A[:, diagonal, diagonal] += unknown
    covariances = np.asarray(np.linalg.inv(A), dtype=np.float64)
    levels = np.einsum("tij,tj->ti", covariances, np.where(unknown, 0.0, b))
    levels[unknown] = np.nan
    return levels, covariances


def sum_by_component(design: CrossedDesign, r: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the sums of cells for each effect, in the order of `COMPONENTS`.

    Args:
        design: scores and effects.
        r: ``(n, k)``; 0 where the score is missing.
    """
    by_task = design.sum_by_task(r)
    by_model = by_task.sum(axis=0)
    by_family = np.bincount(design.families, weights=by_model)
    return [by_model, by_family, by_task.sum(axis=1), by_task.ravel(), r.sum(axis=1)]


def task_covariances(equations: Elimination, cov: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(n_tasks, k + r, k + r)``, the covariance of g of each task and of the prompts' coefficients.

    Args:
        equations: from `eliminate`.
        cov: ``(k + r, k + r)`` covariance of phi.
    """
    k = equations.design.n_models
    reach = np.tile(np.eye(len(cov)), (len(equations.P), 1, 1))
    reach[:, :k] -= equations.P @ equations.A[:, :k, :]
    S = reach @ cov @ np.swapaxes(reach, 1, 2)
    S[:, :k, :k] += equations.P
    return S


def traces(equations: Elimination, cov: NDArray[np.float64], S: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the trace of Z'PZ of each component, where P projects the data; the gradient needs it.

    Args:
        equations: from `eliminate`.
        cov: ``(k + r, k + r)`` covariance of phi; without the fixed effects for a likelihood that is not restricted.
        S: from `task_covariances` with the same ``cov``.
    """
    design, k = equations.design, equations.design.n_models
    B = equations.B
    total = B.sum(axis=0)
    of_models = (total - total @ cov @ total)[:k, :k]
    within = (B - B @ cov @ B)[:, :k, :k]
    members = np.eye(design.n_families)[design.families]
    weighted = np.hstack([equations.w, equations.row_weight[:, None] * design.W])
    spread = np.empty(len(weighted))
    for task, rows in enumerate(design.task_slices()):
        spread[rows] = ((weighted[rows] @ S[task]) * weighted[rows]).sum(axis=1)
    omega = equations.omega
    return np.array(
        [
            np.trace(of_models),
            np.trace(members.T @ of_models @ members),
            within.sum(),
            np.einsum("tii->", within),
            (equations.row_weight * omega - omega**2 * spread).sum(),
        ]
    )


def random_part(equations: Elimination) -> NDArray[np.float64]:
    """Return the covariance of phi if the fixed effects are known."""
    cov = np.zeros_like(equations.cov)
    k = equations.design.n_models
    cov[:k, :k] = equations.prior
    return cov
