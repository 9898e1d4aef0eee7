"""Variance of scores between prompts and between trials of a prompt, and what it means for standard errors.

With n prompts and K trials of each, the variance of a mean is (σ²_between + σ²_within / K) / n. Trials lower the second
part alone; prompts lower both.

Source: Miller 2024, "Adding Error Bars to Evals", section 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialVariance:
    """The two parts of the variance of a score, and the standard error of the mean.

    Attributes:
        n: prompts.
        within: σ²_within, mean over prompts of the variance of a trial; NaN if no prompt has two trials.
        between: σ²_between, variance of the true means of prompts, not below 0; NaN without ``within``, or below two
            prompts.
        per_trial: mean over prompts of one over the number of trials.
        stderr: of the mean, as observed; clustered, if the caller clusters.
        exponent: the numbers above are of scores over 2**exponent, so that their squares stay finite. Methods return
            numbers in the unit of the scores.
    """

    n: int
    within: float
    between: float
    per_trial: float
    stderr: float
    exponent: int = 0

    def in_units(self, value: float, power: int = 1) -> float:
        """Return one of the numbers in the unit of the scores, or in its ``power``; infinite beyond float64."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(value, power * self.exponent))

    @property
    def trial_share(self) -> float:
        """Share of the variance of one trial's score that is within prompts; NaN if unknown or nothing varies."""
        total = self.within + self.between
        return self.within / total if total > 0 else math.nan

    @property
    def floor(self) -> float:
        """Standard error with infinitely many trials of the same prompts; NaN if unknown."""
        return self.in_units(math.sqrt(self._floor_variance))

    @property
    def _floor_variance(self) -> float:
        return max(self.stderr**2 - self.within * self.per_trial / self.n, 0.0)

    def stderr_with(self, n_trials: float, n_prompts: float | None = None) -> float:
        """Return the standard error with another number of trials of each prompt; NaN if unknown.

        Clustering changes the part between prompts alone: trials of different prompts are independent.

        Args:
            n_trials: of each prompt, at least 1.
            n_prompts: number of prompts, in as many more clusters; None for those at hand.
        """
        variance = self._floor_variance + self.within / (self.n * n_trials)
        if self._floor_variance == 0:  # trials cause all of the observed error
            variance = self.stderr**2 / self.per_trial / n_trials
        return self.in_units(math.sqrt(variance * (1.0 if n_prompts is None else self.n / n_prompts)))

    def sufficient_trials(self, tolerance: float) -> float:
        """Return the fewest trials whose error is at most ``1 + tolerance`` times that of infinitely many.

        NaN if unknown; infinite if prompts do not differ, so that each further trial lowers the error.

        Args:
            tolerance: positive.
        """
        if not self.within >= 0 or math.isnan(self._floor_variance):
            return math.nan
        if self.within == 0:
            return 1.0
        if self._floor_variance == 0:
            return math.inf
        ratio = self.within / self.n / self._floor_variance
        return float(max(1, math.ceil(ratio / ((1 + tolerance) ** 2 - 1) - 1e-9)))


def split_variance(
    means: NDArray[np.float64], squares: NDArray[np.float64], count: NDArray[np.int64], stderr: float
) -> TrialVariance:
    """Split the variance of one model's scores.

    Both parts are unbiased before ``between`` is cut at 0: σ²_within is the mean of the variances of the prompts with
    two trials or more, σ²_between the variance of the prompts' means less σ²_within times the mean of 1/K.

    Args:
        means: ``(n,)`` mean over the trials of each prompt.
        squares: ``(n,)`` sum of squared deviations of the trials.
        count: ``(n,)`` trials, at least 1.
        stderr: of the mean of ``means``.
    """
    repeated = count >= 2
    within = float((squares[repeated] / (count[repeated] - 1)).mean()) if repeated.any() else math.nan
    per_trial = float((1 / count).mean())
    between = math.nan
    if len(means) > 1:
        between = max(float(means.var(ddof=1)) - within * per_trial, 0.0) if repeated.any() else math.nan
    return TrialVariance(n=len(means), within=within, between=between, per_trial=per_trial, stderr=stderr)


def pass_at_k(passed: NDArray[np.int64], count: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Return the unbiased estimate that at least one of k trials passes; NaN below k trials.

    1 − C(n − c, k) / C(n, k) with c of n trials passed.

    Args:
        passed, count: of equal shapes.
        k: at least 1.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1.
    """
    return 1 - pass_hat_k(count - passed, count, k)


def pass_hat_k(passed: NDArray[np.int64], count: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Return the unbiased estimate that all of k trials pass (pass^k), C(c, k) / C(n, k); NaN below k trials.

    Args:
        passed, count: of equal shapes.
        k: at least 1.

    Source: Yao et al. 2024, "tau-bench", section 4.
    """
    share = np.ones(np.shape(count))
    for drawn in range(k):
        share *= np.maximum(passed - drawn, 0) / np.maximum(count - drawn, 1)
    return np.where(count >= k, share, np.nan)
