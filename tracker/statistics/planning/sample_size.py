"""Prompts and trials that a comparison of two models needs, from the variance of stored paired differences.

Source: Miller 2024, "Adding Error Bars to Evals", sections 3.1 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracker.statistics.planning.power import detectable_difference, units_needed


@dataclass(frozen=True, kw_only=True, slots=True)
class PairVariance:
    """The error of the difference of two stored models.

    Attributes:
        models: their names.
        stderr: of the mean difference, positive.
        degrees: degrees of freedom.
        n: common prompts.
        n_units: independent prompts, or clusters.
        within: sum of the two models' variances of a trial; NaN if unknown.
        from_trials: part of the squared error that trials cause; NaN if unknown.
    """

    models: tuple[str, str]
    stderr: float
    degrees: float
    n: int
    n_units: int
    within: float
    from_trials: float

    def stderr_with(self, n_trials: int | None) -> float:
        """Return the error with so many trials of each prompt; None keeps those at hand; NaN if unknown."""
        if n_trials is None:
            return self.stderr
        squared, trials = self.stderr**2, self.within / self.n / n_trials
        if squared <= self.from_trials:  # trials cause all of the observed error
            return math.sqrt(squared * trials / self.from_trials)
        return math.sqrt(squared - self.from_trials + trials)


@dataclass(frozen=True, kw_only=True, slots=True)
class StudySize:
    """What a study needs to detect an effect, by the variance of one pair.

    Attributes:
        models: the pair.
        n_units: independent prompts, or clusters of the pair's mean size; infinite beyond `MAX_UNITS`.
        n_prompts: prompts in them.
        detectable: smallest true difference that the pair's own prompts detect.
    """

    models: tuple[str, str]
    n_units: float
    n_prompts: float
    detectable: float


def plan_study(
    pair: PairVariance, *, effect: float, power: float, alpha: float, n_trials: int | None = None
) -> StudySize:
    """Return the fewest prompts with which a two-sided t-test detects a true difference with a probability.

    Args:
        pair: stored models with such a variance.
        effect: true difference, positive, in the unit of the scores.
        power: probability, in (alpha, 1).
        alpha: level of the test.
        n_trials: of each prompt; None for those at hand.
    """
    stderr = pair.stderr_with(n_trials)
    options = {"alpha": alpha, "chance": power}
    n_units = units_needed(effect, stderr, pair.n_units, pair.degrees, **options)
    return StudySize(
        models=pair.models,
        n_units=n_units,
        n_prompts=math.ceil(n_units * pair.n / pair.n_units) if math.isfinite(n_units) else n_units,
        detectable=detectable_difference(stderr, pair.degrees, **options),
    )
