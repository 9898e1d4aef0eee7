"""A fitted mixed model: its variances, and the effects that they imply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from analyses.numerics.mixed.design import CrossedDesign
from analyses.numerics.mixed.elimination import Elimination, Solution
from analyses.numerics.mixed.optimization import invert_information

Response = Literal["gaussian", "logistic"]
STEP = 1e-2
"""Step of the logarithm of a standard deviation in differences."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The likelihood and the effects at some standard deviations.

    Attributes:
        value: log-likelihood.
        slope: ``(5,)`` twice its derivative by each variance.
        residual_variance: of greatest likelihood; 1 for ``logistic``.
        equations, solution: covariances in units of the residual variance, and effects.
    """

    value: float
    slope: NDArray[np.float64]
    residual_variance: float
    equations: Elimination
    solution: Solution


Evaluate = Callable[[NDArray[np.float64]], Evaluation]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How effects and errors move with the logarithms of the standard deviations.

    Attributes:
        log_cov: ``(5, 5)`` covariance of those logarithms; 0 for components without an effect.
        phi: ``(5, k + r)`` derivatives of `Solution.phi`.
        h: ``(5, n_tasks, k)`` derivatives of `Solution.h`.
        log_variance: ``(5, q + r)`` derivatives of the logarithms of the fixed effects' variances.
    """

    log_cov: NDArray[np.float64]
    phi: NDArray[np.float64]
    h: NDArray[np.float64]
    log_variance: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class MixedFit:
    """A mixed model at the standard deviations of greatest likelihood.

    Effects and their errors use `effect_sd`, which keeps every standard deviation off 0: at 0 effects would have no
    error. On large tables both agree.

    Attributes:
        design: scores and effects.
        response: ``gaussian``, or ``logistic`` for scores of 0 and 1.
        is_restricted: whether fixed effects are integrated out of the likelihood.
        sd: ``(5,)`` standard deviation of each of `COMPONENTS`: in the unit of the scores, or in logits.
        effect_sd: ``(5,)`` those behind the effects, in units of the residual's for ``gaussian``.
        residual_sd: of the residual; of the standard logistic distribution for ``logistic``.
        log_likelihood: at the optimum; an approximation for ``logistic``.
        log_cov: ``(5, 5)`` covariance of the logarithms of the variances, relative to the residual; NaN where 0.
        at_limit: ``(5,)`` whether a standard deviation grows without bound.
        has_converged: whether the optimum is one.
        sensitivity: of the effects to the standard deviations.
        equations: covariances, in units of ``error_scale``.
        solution: effects, in units of ``scale`` and without ``center``.
        center, scale, error_scale: units.
    """

    design: CrossedDesign
    response: Response
    is_restricted: bool
    sd: NDArray[np.float64]
    effect_sd: NDArray[np.float64]
    residual_sd: float
    log_likelihood: float
    log_cov: NDArray[np.float64]
    at_limit: NDArray[np.bool_]
    has_converged: bool
    sensitivity: Sensitivity
    equations: Elimination
    solution: Solution
    center: float
    scale: float
    error_scale: float

    @property
    def eta(self) -> NDArray[np.float64]:
        """``(n, k)`` predicted score, or logit, of each cell, in the order of the design."""
        return self.center + self.scale * self.solution.eta

    @property
    def predicted(self) -> NDArray[np.float64]:
        """``(n, k)`` predicted score of each cell."""
        return np.asarray(expit(self.eta)) if self.response == "logistic" else self.eta

    @property
    def weighted_residual(self) -> NDArray[np.float64]:
        """``(n, k)`` residual of each cell times its weight, in units of ``scale``."""
        design = self.design
        if self.response == "logistic":
            return design.observed * (design.Y - self.predicted)
        return design.observed * ((design.Y - self.center) / self.scale - self.solution.eta)

    @property
    def error_degrees(self) -> float:
        """Degrees of freedom of the residual variance behind errors of effects; infinite for ``logistic``."""
        if self.response == "logistic":
            return np.inf
        n, k = self.design.Y.shape
        return float(max(self.design.n_scores - n - k + 1, 1))

    @property
    def fixed(self) -> NDArray[np.float64]:
        """``(q + r,)`` fixed effects: the intercept, covariates of models, covariates of prompts."""
        values = self.scale * self.solution.fixed
        values[0] += self.center
        return values

    @property
    def fixed_error(self) -> NDArray[np.float64]:
        """``(q + r,)`` standard errors of the fixed effects."""
        return self.error_scale * np.sqrt(np.diagonal(self.equations.fixed_cov))

    @property
    def fixed_degrees(self) -> NDArray[np.float64]:
        """``(q + r,)`` degrees of freedom of those errors, by Satterthwaite."""
        moves = self.sensitivity.log_variance
        variance = np.einsum("ic,ij,jc->c", moves, self.sensitivity.log_cov, moves)
        if self.response == "gaussian":
            variance = variance + 2 / (self.design.n_scores - self.design.n_fixed)
        return np.asarray(2 / np.maximum(variance, 1e-12))

    @property
    def shares(self) -> NDArray[np.float64]:
        """``(6,)`` share of the variance of each of `COMPONENTS`, then of the residual."""
        variances = (np.append(self.sd, self.residual_sd) / self.scale) ** 2
        return np.asarray(variances / variances.sum())


def differentiate(
    evaluate: Evaluate, sd: NDArray[np.float64], components: NDArray[np.bool_], *, penalized: bool
) -> Sensitivity:
    """Return derivatives by the logarithms of the standard deviations, from differences.

    Args:
        evaluate: likelihood and effects.
        sd: ``(5,)`` where to differentiate.
        components: ``(5,)`` those to move, with positive ``sd``.
        penalized: whether ``sd`` maximizes the penalized likelihood of `maximize_off_zero`.
    """
    center = evaluate(sd)
    rows = np.flatnonzero(components)
    phi = np.zeros((len(sd), len(center.solution.phi)))
    h = np.zeros((len(sd), *center.solution.h.shape))
    log_variance = np.zeros((len(sd), len(center.solution.fixed)))
    information = np.zeros((len(sd), len(sd)))
    for row in rows:
        ends = []
        for sign in (1, -1):
            point = sd.copy()
            point[row] *= np.exp(sign * STEP)
            end = evaluate(point)
            spread = np.log(end.residual_variance * np.diagonal(end.equations.fixed_cov))
            ends.append((end.solution.phi, end.solution.h, spread, point**2 * end.slope))
        moves = [(up - down) / (2 * STEP) for up, down in zip(*ends, strict=True)]
        phi[row], h[row], log_variance[row], information[row] = *moves[:3], -moves[3]
    log_cov = np.zeros((len(sd), len(sd)))
    # The penalty is linear in the logarithms, so it does not change the curvature.
    log_cov[np.ix_(rows, rows)] = invert_information(information[np.ix_(rows, rows)])
    if penalized:
        log_cov = np.nan_to_num(log_cov)
    return Sensitivity(log_cov, phi, h, log_variance)
