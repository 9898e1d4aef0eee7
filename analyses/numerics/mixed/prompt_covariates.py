"""The error of a covariate of prompts, from the spread of the prompts around the regression.

The penalty that keeps variances off 0 makes the variance of prompts, and so the error of their covariate, too large for
logistic scores. The effects of the prompts show by how much.

Source: Knapp & Hartung 2003, "Improved tests for a random effects meta-regression with a single covariate", Statistics
in Medicine 22.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyses.numerics.mixed.elimination import PROMPT
from analyses.numerics.mixed.fit import MixedFit


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptSpread:
    """The spread of the prompts around the regression.

    Attributes:
        ratio: of the observed to the fitted standard deviation.
        degrees: degrees of freedom of the observed one.
    """

    ratio: float
    degrees: int


def measure_prompt_spread(fit: MixedFit) -> PromptSpread | None:
    """Compare the spread of the prompts' effects, without shrinkage, with the one that the fit expects.

    The effect of a prompt without shrinkage has the variance v = σ² + 1/w, with w the sum of the weights of its scores.
    Its shrunken effect is σ²/v of it. The squared ratio is the sum of squared effects over v, by the degrees of
    freedom.

    Args:
        fit: the fitted model.

    Returns:
        The spread; None if the fit has no effects of prompts, or no degree of freedom is left.
    """
    design, variance = fit.design, float(fit.equations.sd[PROMPT] ** 2)
    degrees = len(design.Y) - design.n_tasks - design.W.shape[1]
    if "prompt" not in design.active or degrees < 1 or variance == 0:
        return None
    total = variance + 1 / fit.equations.w.sum(axis=1)
    effects = fit.solution.u * total / variance
    return PromptSpread(ratio=float(np.sqrt((effects**2 / total).sum() / degrees)), degrees=degrees)
