"""Linear mixed models: the exact likelihood, restricted or full, with the residual variance profiled out.

Source: Bates et al. 2015, "Fitting linear mixed-effects models using lme4", sections 3.4 to 3.6; Patterson & Thompson
1971, "Recovery of inter-block information when block sizes are unequal", for the restricted likelihood.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.mixed.design import CrossedDesign
from analyses.numerics.mixed.elimination import (
    eliminate,
    random_part,
    solve,
    sum_by_component,
    task_covariances,
    traces,
)
from analyses.numerics.mixed.fit import Evaluation, MixedFit, differentiate
from analyses.numerics.mixed.optimization import maximize, maximize_off_zero
from tracker.statistics.parallel.time_limits import LoopTimer

N_EVALUATIONS = 60
"""Evaluations of the likelihood that a fit takes, about, for estimates of its time."""
MAX_RATIO = 1e4
"""Largest standard deviation of an effect in units of the residual's; beyond it nothing is left for the residual."""

NO_RESIDUAL = 1e-24
"""Least sum of squares of the residual, relative to that of the scores."""


def gaussian_likelihood(design: CrossedDesign, ratios: NDArray[np.float64], *, restricted: bool) -> Evaluation:
    """Evaluate the log-likelihood with the best residual variance.

    Args:
        design: scores and effects.
        ratios: ``(5,)`` standard deviation of each component in units of the residual's.
        restricted: REML: the likelihood of contrasts without fixed effects, else the full one.
    """
    equations = eliminate(design, design.observed, ratios)
    solution = solve(equations, design.Y)
    residual = design.Y - design.observed * solution.eta
    degrees = design.n_scores - (design.n_fixed if restricted else 0)
    variance = max(float((design.Y * residual).sum()), NO_RESIDUAL * float((design.Y**2).sum())) / degrees
    log_determinant = equations.log_random + (equations.log_fixed if restricted else 0.0)
    value = -0.5 * (log_determinant + degrees * (1 + np.log(2 * np.pi * variance)))
    cov = equations.cov if restricted else random_part(equations)
    traced = traces(equations, cov, task_covariances(equations, cov))
    squares = np.array([float((part**2).sum()) for part in sum_by_component(design, residual)])
    return Evaluation(value, squares / variance - traced, variance, equations, solution)


def fit_gaussian(design: CrossedDesign, *, restricted: bool = True) -> MixedFit:
    """Fit a linear mixed model.

    Args:
        design: scores and effects; more scores than fixed effects, and scores that differ.
        restricted: whether to maximize the restricted likelihood.
    """
    center = float(design.Y.sum() / design.n_scores)
    deviations = (design.Y - center) * design.observed
    scale = float(np.abs(deviations).max())
    scale *= float(np.sqrt(((deviations / scale) ** 2).sum() / design.n_scores))
    unit, timer = design.with_scores(deviations / scale), LoopTimer(N_EVALUATIONS)

    def evaluate(ratios: NDArray[np.float64]) -> Evaluation:
        result = gaussian_likelihood(unit, ratios, restricted=restricted)
        timer.count()
        return result

    def objective(ratios: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        result = evaluate(ratios)
        return result.value, result.slope

    active = design.is_active
    optimum = maximize(objective, np.where(active, 0.5, 0.0), upper=MAX_RATIO)
    at_optimum = evaluate(optimum.sd)
    inside = (optimum.sd > 0) & ~optimum.at_limit
    log_cov = 4 * differentiate(evaluate, optimum.sd, inside, penalized=False).log_cov
    log_cov[~inside] = log_cov[:, ~inside] = np.nan
    effect_sd = maximize_off_zero(objective, optimum.sd, active, upper=MAX_RATIO)
    for_effects = evaluate(effect_sd)
    degrees = design.n_scores - (design.n_fixed if restricted else 0)
    residual_sd = scale * float(np.sqrt(at_optimum.residual_variance))
    return MixedFit(
        design=design,
        response="gaussian",
        is_restricted=restricted,
        sd=optimum.sd * residual_sd,
        effect_sd=effect_sd,
        residual_sd=residual_sd,
        log_likelihood=float(optimum.value - degrees * np.log(scale)),
        log_cov=log_cov,
        at_limit=optimum.at_limit,
        has_converged=optimum.has_converged,
        sensitivity=differentiate(evaluate, effect_sd, active, penalized=True),
        equations=for_effects.equations,
        solution=for_effects.solution,
        center=center,
        scale=scale,
        error_scale=scale * float(np.sqrt(for_effects.residual_variance)),
    )
