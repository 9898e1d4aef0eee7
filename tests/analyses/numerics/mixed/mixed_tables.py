"""Tables drawn from mixed models, and dense versions of their likelihoods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from analyses.numerics.mixed.design import CrossedDesign, build_design


@dataclass(frozen=True)
class SimulatedTable:
    """Scores with the truth behind them."""

    Q: NDArray[np.float64]
    tasks: NDArray[np.int64]
    level: NDArray[np.float64]
    """``(n_tasks, k)`` of each model on each task."""
    model: NDArray[np.float64]


def draw_table(
    seed: int,
    shape: tuple[int, int, int] = (24, 5, 4),
    sd: tuple[float | NDArray[np.float64], ...] = (0.6, 0.4, 0.3, 0.8, 1.0),
    *,
    missing: float = 0.0,
    binary: bool = False,
    model: NDArray[np.float64] | None = None,
) -> SimulatedTable:
    """Draw scores of n prompts and k models in some tasks.

    Args:
        seed: of the draws.
        shape: prompts, models, tasks.
        sd: of models, tasks, models within tasks (of each model, or of all), prompts and the residual (logistic for
            ``binary``).
        missing: share of cells without a score.
        binary: whether scores are 0 and 1.
        model: ``(k,)`` effects of the models; None draws them.
    """
    rng = np.random.default_rng(seed)
    n, k, n_tasks = shape
    tasks = np.sort(np.arange(n) % n_tasks)
    if model is None:
        model = rng.normal(0, sd[0], k)
    level = model + rng.normal(0, sd[2], (n_tasks, k))
    shift = rng.normal(0, sd[1], n_tasks)[tasks] + rng.normal(0, sd[3], n)
    Q = level[tasks] + shift[:, None]
    Q = (Q + rng.logistic(0, 1, (n, k)) > 0).astype(float) if binary else Q + rng.normal(0, sd[4], (n, k))
    Q[rng.random((n, k)) < missing] = np.nan
    empty = np.isnan(Q).all(axis=1)
    Q[empty, 0] = float(binary)
    return SimulatedTable(Q, tasks, level, model)


def draw_design(seed: int, *, binary: bool = False) -> CrossedDesign:
    """A design with missing scores, unequal tasks, families and all kinds of covariates."""
    rng = np.random.default_rng(seed)
    table = draw_table(seed, (23, 6, 4), missing=0.2, binary=binary)
    return build_design(
        table.Q,
        table.tasks,
        families=np.array([0, 0, 1, 1, 2, 2]),
        model_covariates=rng.normal(size=(6, 1)),
        prompt_covariates=rng.normal(size=(23, 2)),
    )


def dense_columns(design: CrossedDesign) -> tuple[list[NDArray[np.float64]], NDArray[np.float64], NDArray[np.float64]]:
    """One matrix of indicators for each component, the fixed effects' columns, and the scores, by observed cell."""
    k, n = design.n_models, len(design.Y)
    p, j = np.nonzero(design.observed)
    t = np.repeat(np.arange(design.n_tasks), np.diff(design.starts))[p]
    Z = [
        np.eye(k)[j],
        np.eye(design.n_families)[design.families[j]],
        np.eye(design.n_tasks)[t],
        np.eye(design.n_tasks * k)[t * k + j],
        np.eye(n)[p],
    ]
    return Z, np.hstack([design.X[j], design.W[p]]), design.Y[p, j]


def dense_gaussian(design: CrossedDesign, sd: NDArray[np.float64], residual: float, *, restricted: bool) -> float:
    """The log-likelihood from the covariance of all scores."""
    Z, F, y = dense_columns(design)
    V = residual**2 * np.eye(len(y)) + sum(s**2 * z @ z.T for s, z in zip(sd, Z, strict=True))
    inverse = np.linalg.inv(V)
    information = F.T @ inverse @ F
    rest = y - F @ np.linalg.solve(information, F.T @ inverse @ y)
    degrees = len(y) - (F.shape[1] if restricted else 0)
    value = np.linalg.slogdet(V)[1] + rest @ inverse @ rest + degrees * np.log(2 * np.pi)
    return -0.5 * (value + (np.linalg.slogdet(information)[1] if restricted else 0.0))


def dense_laplace(design: CrossedDesign, sd: NDArray[np.float64]) -> float:
    """Laplace's approximation from the Hessian of all effects, fixed ones with a flat prior."""
    Z, F, y = dense_columns(design)
    columns = np.hstack([F, *(z for s, z in zip(sd, Z, strict=True) if s > 0)])
    variance = np.concatenate([np.full(z.shape[1], s**2) for s, z in zip(sd, Z, strict=True) if s > 0])
    penalty = np.concatenate([np.zeros(F.shape[1]), 1 / variance])
    b = np.zeros(columns.shape[1])
    for _ in range(50):
        mean = expit(columns @ b)
        H = columns.T @ (columns * (mean * (1 - mean))[:, None]) + np.diag(penalty)
        b = b + np.linalg.solve(H, columns.T @ (y - mean) - penalty * b)
    eta = columns @ b
    value = (y * eta - np.logaddexp(0, eta)).sum() - 0.5 * (penalty * b**2).sum()
    return float(
        value - 0.5 * np.linalg.slogdet(H)[1] - 0.5 * np.log(variance).sum() + 0.5 * F.shape[1] * np.log(2 * np.pi)
    )
