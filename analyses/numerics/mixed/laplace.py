"""Logistic mixed models by Laplace's approximation.

The integral over all effects, fixed ones with a flat prior, is replaced by that of the normal density with the mode and
the curvature of the integrand. The approximation is good where each effect meets many scores: its error for a prompt
shrinks with the number of models, and it is largest for few models and prompts that almost none or almost all solve.

Source: Breslow & Clayton 1993, "Approximate inference in generalized linear mixed models"; Kristensen et al. 2016,
"TMB: automatic differentiation and Laplace approximation", equation 8, for the derivative through the mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from analyses.numerics.mixed.design import CrossedDesign
from analyses.numerics.mixed.elimination import (
    Elimination,
    Solution,
    eliminate,
    solve,
    sum_by_component,
    task_covariances,
    traces,
)
from analyses.numerics.mixed.fit import Evaluation, MixedFit, differentiate
from analyses.numerics.mixed.optimization import maximize, maximize_off_zero
from tracker.statistics.parallel.time_limits import LoopTimer

MAX_SD = 20.0
"""Largest standard deviation in logits that is tried; beyond a few, effects separate the scores."""
N_STEPS = 200
"""Newton steps that a fit takes, about, for estimates of its time."""
MAX_NEWTON = 60
MODE_TOLERANCE = 1e-9
"""The mode is found if a step would raise the integrand's logarithm by no more than this, relative to its size."""
LOGISTIC_SD = float(np.pi / np.sqrt(3))
"""Standard deviation of the standard logistic distribution: the residual in logits."""


@dataclass(frozen=True, slots=True)
class Mode:
    """The maximum of the integrand at given standard deviations.

    Attributes:
        eta: ``(n, k)`` logits.
        scores: of each component, the effects divided by their variance.
        log_density: logarithm of the integrand.
        equations: the curvature.
        solution: the effects.
    """

    eta: NDArray[np.float64]
    scores: list[NDArray[np.float64]]
    log_density: float
    equations: Elimination
    solution: Solution


class LaplaceLikelihood:
    """The likelihood as a function of the standard deviations; it starts each search at the last mode."""

    def __init__(self, design: CrossedDesign) -> None:
        """Start at effects of 0.

        Args:
            design: scores of 0 and 1, not all equal.
        """
        self.design, self._timer = design, LoopTimer(N_STEPS)
        mean = float(design.Y.sum() / design.n_scores)
        self._eta = np.full(design.Y.shape, np.log(mean / (1 - mean)))
        self._scores = [np.zeros_like(part) for part in sum_by_component(design, design.Y)]

    def find_mode(self, sd: NDArray[np.float64]) -> Mode:
        """Find the mode by Newton's method with halved steps.

        Args:
            sd: ``(5,)`` standard deviation of each component.
        """
        design = self.design
        eta, scores = self._start(sd)
        value = self._log_density(sd, eta, scores)
        for _ in range(MAX_NEWTON):
            mean = expit(eta)
            w = design.observed * mean * (1 - mean)
            equations = eliminate(design, w, sd)
            r = w * eta + design.observed * (design.Y - mean)
            solution = solve(equations, r)
            goal = sum_by_component(design, r - w * solution.eta)
            eta_goal, length = solution.eta, 1.0
            while True:
                eta_next = eta + length * (eta_goal - eta)
                scores_next = [a + length * (b - a) for a, b in zip(scores, goal, strict=True)]
                value_next = self._log_density(sd, eta_next, scores_next)
                if value_next >= value or length < 1e-6:
                    break
                length /= 2
            gain, eta, scores = value_next - value, eta_next, scores_next
            value = value_next
            self._timer.count()
            if abs(gain) <= MODE_TOLERANCE * (1 + abs(value)) and length == 1.0:
                break
        self._eta, self._scores = eta, scores
        mean = expit(eta)
        w = design.observed * mean * (1 - mean)
        equations = eliminate(design, w, sd)
        solution = solve(equations, w * eta + design.observed * (design.Y - mean))
        return Mode(eta, scores, value, equations, solution)

    def _start(self, sd: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Return the last mode's logits with scores of effects that add up to them under other deviations."""
        eta = self._eta
        design = self.design
        mean = expit(eta)
        w = design.observed * mean * (1 - mean)
        r = w * eta + design.observed * (design.Y - mean)
        solution = solve(eliminate(design, w, sd), r)
        return solution.eta, sum_by_component(design, r - w * solution.eta)

    def _log_density(
        self, sd: NDArray[np.float64], eta: NDArray[np.float64], scores: list[NDArray[np.float64]]
    ) -> float:
        design = self.design
        fit = float((design.observed * (design.Y * eta - np.logaddexp(0, eta))).sum())
        return fit - 0.5 * sum(
            float(deviation**2 * (part**2).sum()) for deviation, part in zip(sd, scores, strict=True)
        )

    def __call__(self, sd: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the approximate log-likelihood, and twice its derivative by each variance."""
        result = self.evaluate(sd)
        return result.value, result.slope

    def evaluate(self, sd: NDArray[np.float64]) -> Evaluation:
        """Evaluate the approximate log-likelihood at its mode.

        Args:
            sd: ``(5,)`` standard deviation of each component.
        """
        mode, design = self.find_mode(sd), self.design
        equations = mode.equations
        value = mode.log_density - 0.5 * (
            equations.log_random + equations.log_fixed - design.n_fixed * float(np.log(2 * np.pi))
        )
        S = task_covariances(equations, equations.cov)
        mean = expit(mode.eta)
        scores = sum_by_component(design, design.observed * (design.Y - mean))
        # The curvature moves with the mode: weights change by w (1 - 2 mean) for each logit.
        shift = -0.5 * _cell_variances(equations, S) * equations.w * (1 - 2 * mean)
        adjoint = sum_by_component(design, shift - equations.w * solve(equations, shift).eta)
        through_mode = np.array([2 * float((a * b).sum()) for a, b in zip(adjoint, scores, strict=True)])
        squares = np.array([float((part**2).sum()) for part in scores])
        slope = squares - traces(equations, equations.cov, S) + through_mode
        return Evaluation(value, slope, 1.0, equations, mode.solution)


def _cell_variances(equations: Elimination, S: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(n, k)`` variances of the logits.

    Args:
        equations: at the mode.
        S: ``(n_tasks, k + r, k + r)`` from `task_covariances`.
    """
    design, k = equations.design, equations.design.n_models
    variance = equations.sd[-1] ** 2
    out = np.empty_like(equations.w)
    for task, rows in enumerate(design.task_slices()):
        covariates, omega = design.W[rows], equations.omega[rows, None]
        # A cell's logit moves with e_j and x_p directly, and through its prompt by the mean of the others.
        through = variance * omega * np.hstack([equations.w[rows], equations.row_weight[rows, None] * covariates])
        rest = -through
        rest[:, k:] += covariates
        spread = rest @ S[task]
        within = (spread * rest).sum(axis=1)
        out[rows] = np.diagonal(S[task])[:k] + 2 * spread[:, :k] + within[:, None] + variance * omega
    return out


def fit_logistic(design: CrossedDesign) -> MixedFit:
    """Fit a logistic mixed model; fixed effects are integrated out with a flat prior.

    Args:
        design: scores of 0 and 1, not all equal.
    """
    likelihood = LaplaceLikelihood(design)
    active = design.is_active
    optimum = maximize(likelihood, np.where(active, 0.7, 0.0), upper=MAX_SD)
    inside = (optimum.sd > 0) & ~optimum.at_limit
    log_cov = 4 * differentiate(likelihood.evaluate, optimum.sd, inside, penalized=False).log_cov
    log_cov[~inside] = log_cov[:, ~inside] = np.nan
    effect_sd = maximize_off_zero(likelihood, optimum.sd, active, upper=MAX_SD)
    sensitivity = differentiate(likelihood.evaluate, effect_sd, active, penalized=True)
    for_effects = likelihood.evaluate(effect_sd)
    return MixedFit(
        design=design,
        response="logistic",
        is_restricted=True,
        sd=optimum.sd,
        effect_sd=effect_sd,
        residual_sd=LOGISTIC_SD,
        log_likelihood=float(optimum.value),
        log_cov=log_cov,
        at_limit=optimum.at_limit,
        has_converged=optimum.has_converged,
        sensitivity=sensitivity,
        equations=for_effects.equations,
        solution=for_effects.solution,
        center=0.0,
        scale=1.0,
        error_scale=1.0,
    )
