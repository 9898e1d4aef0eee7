"""Regression of the models' effects on a covariate that is constant within a model.

Such a covariate has as many values as there are models, so its error comes from the spread of the models around the
regression. The variances of the fit are not used for it: with few models they are too uncertain, and the penalty that
keeps them off 0 makes them too large. They only weigh the models. Families share an effect, so the regression compares
either models of the same family or the means of families. Both are exact for Gaussian scores without a gap and families
of one size.

Source: Knapp & Hartung 2003, "Improved tests for a random effects meta-regression with a single covariate", Statistics
in Medicine 22.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.mixed.elimination import FAMILY, MODEL, eliminate, solve
from analyses.numerics.mixed.fit import MixedFit
from tracker.statistics.student_t import t_quantile

NO_SPREAD = 1e-12
"""Least share of a covariate's spread that a comparison needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCoefficient:
    """The coefficient of a covariate of models.

    Attributes:
        estimate: change of the effect for one unit of the covariate.
        stderr: standard error.
        degrees: degrees of freedom of the error.
    """

    estimate: float
    stderr: float
    degrees: int


def regress_model_effects(fit: MixedFit) -> ModelCoefficient:
    """Regress the effects of the models on their covariate.

    Args:
        fit: the fitted model, with one covariate of models that `can_regress`.
    """
    effects, variances = estimate_model_effects(fit)
    design = fit.design
    families = design.families if "family" in design.active else np.arange(design.n_models)
    unit = regress_models(effects, design.X[:, 1], families, variances, float(fit.equations.sd[FAMILY] ** 2))
    return replace(unit, estimate=fit.scale * unit.estimate, stderr=fit.scale * unit.stderr)


def estimate_model_effects(fit: MixedFit) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the effects of the models as fixed effects, without shrinkage, and their variances.

    Effects are in units of ``scale``. A variance is that between models of a family plus that of the estimate, in
    squared units of ``error_scale``.

    Args:
        fit: the fitted model; for logistic scores the effects are those on its working response.
    """
    k, sd = fit.design.n_models, fit.equations.sd.copy()
    between = float(sd[MODEL] ** 2)
    sd[[MODEL, FAMILY]] = 0.0
    equations = eliminate(replace(fit.design, X=np.eye(k)), fit.equations.w, sd)
    effects = solve(equations, equations.w * fit.solution.eta + fit.weighted_residual).fixed[:k]
    centering = np.eye(k) - 1 / k
    spread = np.einsum("ij,jk,ik->i", centering, equations.fixed_cov[:k, :k], centering)
    return effects, between + np.maximum(spread, 0.0)


def can_regress(x: NDArray[np.float64], families: NDArray[np.int64]) -> bool:
    """Return whether a covariate differs within families or between three of them, with a degree of freedom left.

    Args:
        x: ``(k,)`` covariate.
        families: ``(k,)`` number of each model's family, from 0 without gaps.
    """
    counts = np.bincount(families)
    means = np.bincount(families, weights=x) / counts
    least = NO_SPREAD * np.ptp(x)
    varies_within = bool((np.abs(x - means[families]) > least).any())
    return (varies_within and len(x) - len(counts) > 1) or (bool(np.ptp(means) > least) and len(counts) > 2)


def regress_models(
    y: NDArray[np.float64],
    x: NDArray[np.float64],
    families: NDArray[np.int64],
    variances: NDArray[np.float64],
    family_variance: float,
) -> ModelCoefficient:
    """Regress within or between families, whichever has the smaller error if models and families vary equally.

    Args:
        y: ``(k,)`` effects.
        x: ``(k,)`` covariate that `can_regress`.
        families: ``(k,)`` number of each row's family, from 0 without gaps; different numbers for independent rows.
        variances: ``(k,)`` positive, within families; only their ratios and that to ``family_variance`` matter.
        family_variance: between families.
    """
    members = np.eye(int(families.max()) + 1)[families]
    k, n_families = members.shape
    precision = 1 / variances
    totals = members.T @ precision
    means_x, means_y = (members.T @ (precision * values) / totals for values in (x, y))
    means_precision = 1 / (family_variance + 1 / totals)
    middle = means_precision / means_precision.sum()
    within = (x - members @ means_x, y - members @ means_y, precision, k - n_families - 1)
    between = (means_x - middle @ means_x, means_y - middle @ means_y, means_precision, n_families - 2)
    least = NO_SPREAD * float(np.ptp(x))
    # The choice must not depend on the scores, so it takes equal variances.
    reach_within = _reach(within[0], precision, within[3], least)
    reach_between = _reach(between[0], 1 / (np.median(variances) + 1 / totals), between[3], least)
    return _fit_slope(*(within if reach_within < reach_between else between))


def _reach(x: NDArray[np.float64], weights: NDArray[np.float64], degrees: int, least: float) -> float:
    """Return half the width of a 95 % interval that is expected for the slope; infinite without one."""
    if degrees < 1 or (np.abs(x) <= least).all():
        return np.inf
    return float(t_quantile(0.95, degrees) / np.sqrt((weights * x**2).sum()))


def _fit_slope(
    x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64], degrees: int
) -> ModelCoefficient:
    """Return the slope through 0, with its error from the residuals."""
    information = float((weights * x**2).sum())
    slope = float((weights * x * y).sum()) / information
    residual = float((weights * (y - slope * x) ** 2).sum())
    return ModelCoefficient(estimate=slope, stderr=float(np.sqrt(residual / degrees / information)), degrees=degrees)
