"""The same linear mixed model fitted by statsmodels, where a table is small enough for its dense covariances."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from analyses.numerics.mixed.design import COMPONENTS, CrossedDesign
from analyses.numerics.mixed.fit import MixedFit

MAX_SCORES = 1_000
"""Most scores: each step inverts a covariance of all of them."""
LEAST_RATIO = 1e-5
"""Least standard deviation of an effect in units of the residual's: statsmodels divides by it."""
MAX_STEPS = 200


def explain_no_statsmodels(design: CrossedDesign) -> str:
    """Return why statsmodels cannot fit a model; '' if it can.

    Args:
        design: of a linear model.
    """
    return f"statsmodels fits tables of at most {MAX_SCORES:,} scores" if design.n_scores > MAX_SCORES else ""


def maximize_by_statsmodels(fit: MixedFit) -> float:
    """Return the log-likelihood that statsmodels reaches from the variances of a fit.

    It treats the table as one group with crossed variance components, and uses their derivatives.

    Args:
        fit: linear; its design is one that statsmodels can use.
    """
    from statsmodels.regression.mixed_linear_model import MixedLMParams

    design, is_active = fit.design, fit.design.is_active
    model = _build_model(design.with_scores((design.Y - fit.center) / fit.scale))
    ratios = np.maximum(fit.sd / fit.residual_sd, LEAST_RATIO)[is_active] ** 2
    start = MixedLMParams.from_components(np.zeros(design.n_fixed), np.zeros((0, 0)), vcomp=ratios)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of variances at 0, and of singular covariances there
        options = {"maxiter": MAX_STEPS, "skip_hessian": True}
        result = model.fit(reml=fit.is_restricted, method=["lbfgs"], start_params=start, **options)
    degrees = design.n_scores - (design.n_fixed if fit.is_restricted else 0)
    return float(result.llf - degrees * np.log(fit.scale))


def _build_model(design: CrossedDesign) -> Any:
    """Return the model in the form of statsmodels."""
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    p, j = np.nonzero(design.observed)
    tasks = np.repeat(np.arange(design.n_tasks), np.diff(design.starts))[p]
    levels = dict(zip(COMPONENTS, (j, design.families[j], tasks, tasks * design.n_models + j, p), strict=True))
    matrices = [(levels[name][:, None] == np.unique(levels[name])).astype(np.float64) for name in design.active]
    names = [[str(level) for level in range(matrix.shape[1])] for matrix in matrices]
    components = VCSpec(list(design.active), [[columns] for columns in names], [[matrix] for matrix in matrices])
    fixed = np.hstack([design.X[j], design.W[p]])
    return MixedLM(design.Y[p, j], fixed, np.ones(len(p)), exog_vc=components)
