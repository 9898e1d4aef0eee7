"""Two one-sided tests: is the difference of two models smaller than a margin?

Equivalence holds at level α if the interval of level 1 − 2α lies within ± margin. With clusters, or scores other than 0
and 1, the interval is Student's. For independent scores of 0 and 1 it inverts Tango's score test, which holds its level
with few differing prompts, where Student's interval has width 0.

Source: Schuirmann 1987, "A comparison of the two one-sided tests procedure and the power approach"; Tango 1998,
"Equivalence test and confidence interval for the difference in proportions for the paired-sample design".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tracker.statistics.paired_differences import MeanDifference, agreeing_interval
from tracker.statistics.student_t import student_interval

SCORE, STUDENT, AGREEING = "Tango's score test", "Student's t", "share of units that can differ"
N_HALVINGS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Equivalence:
    """Outcome of the two tests.

    Attributes:
        margin: largest difference that does not matter, in the unit of the scores.
        low, high: interval of level 1 − 2α of the advantage of the first model; NaN if it does not exist.
        pvalue: the larger one of the two tests; 1 without an interval.
        alpha: level of the test.
        test: `SCORE`, `STUDENT` or `AGREEING`.
    """

    margin: float
    low: float
    high: float
    pvalue: float
    alpha: float
    test: str

    @property
    def is_equivalent(self) -> bool:
        """Whether both tests reject: the interval lies within ± margin."""
        return self.pvalue <= self.alpha


def t_equivalence(estimate: MeanDifference, *, margin: float, alpha: float = 0.05) -> Equivalence:
    """Test an estimated difference by Student's t; by the share of units that can differ if all of them agree.

    Without an interval, equivalence is not shown.

    Args:
        estimate: of the difference.
        margin: positive.
        alpha: in (0, 0.5).
    """
    from scipy.special import stdtr

    if estimate.stderr == 0:
        return _test_agreeing(estimate, margin, alpha)
    if np.isnan(estimate.stderr):
        return Equivalence(margin=margin, low=np.nan, high=np.nan, pvalue=1.0, alpha=alpha, test=STUDENT)
    low, high = student_interval(estimate.mean, estimate.stderr, estimate.degrees, 1 - 2 * alpha)
    pvalue = float(stdtr(estimate.degrees, (abs(estimate.mean) - margin) / estimate.stderr))
    return Equivalence(
        margin=margin,
        low=float(low),
        high=float(high),
        pvalue=pvalue,
        alpha=alpha,
        test=STUDENT,
    )


def _test_agreeing(estimate: MeanDifference, margin: float, alpha: float) -> Equivalence:
    """Test a difference that all units have; see `agreeing_interval`.

    The p-value is the α at which the end of the interval of level 1 − 2α is at the margin.
    """
    mean, largest = estimate.mean, estimate.largest
    low, high = agreeing_interval(mean, estimate.n_units, 1 - 2 * alpha, largest)
    if np.isnan(low):
        return Equivalence(margin=margin, low=low, high=high, pvalue=1.0, alpha=alpha, test=AGREEING)
    shares = (
        ((margin - mean) / (largest - mean) if mean < largest else np.inf),
        ((margin + mean) / (largest + mean) if -largest < mean else np.inf),
    )
    share = float(np.clip(min(shares), 0.0, 1.0))
    pvalue = 1.0 if abs(mean) >= margin else (1 - share) ** estimate.n_units / 2
    return Equivalence(margin=margin, low=low, high=high, pvalue=pvalue, alpha=alpha, test=AGREEING)


def score_equivalence(n_a: int, n_b: int, n: int, *, margin: float, alpha: float = 0.05) -> Equivalence:
    """Test the difference of two shares of correct answers on the same independent prompts.

    Args:
        n_a, n_b: prompts that only the first, or only the second, model solves.
        n: prompts, at least one.
        margin: positive; from 1 on, every difference is within it.
        alpha: in (0, 0.5).
    """
    from scipy.special import ndtr, ndtri

    critical = float(ndtri(1 - alpha))
    mean = (n_a - n_b) / n
    low = _bisected(lambda x: score_statistic(n_a, n_b, n, x) - critical, -1.0, mean)
    high = _bisected(lambda x: score_statistic(n_a, n_b, n, x) + critical, mean, 1.0)
    pvalue = 0.0
    if margin < 1:
        upper, lower = score_statistic(n_a, n_b, n, margin), score_statistic(n_a, n_b, n, -margin)
        pvalue = float(max(ndtr(upper), ndtr(-lower)))
    return Equivalence(margin=margin, low=low, high=high, pvalue=pvalue, alpha=alpha, test=SCORE)


def score_statistic(n_a: int, n_b: int, n: int, difference: float) -> float:
    """Return Tango's z of the hypothesis that the difference of the two shares is ``difference``.

    It is (n_a − n_b − nΔ) / √(n (2q + Δ(1 − Δ))), with q the share of prompts that only the second model solves, by
    maximum likelihood under the hypothesis.

    Args:
        n_a, n_b, n: as for `score_equivalence`.
        difference: Δ, in [−1, 1].
    """
    if difference < 0:  # exchange the models, so that no digits cancel
        return -score_statistic(n_b, n_a, n, -difference)
    linear = -n_a - n_b + (2 * n - n_a + n_b) * difference
    constant = -n_b * difference * (1 - difference)
    q = (math.sqrt(linear * linear - 8 * n * constant) - linear) / (4 * n)
    variance = n * (2 * q + difference * (1 - difference))
    excess = n_a - n_b - n * difference
    if variance <= 0:
        return 0.0 if excess == 0 else math.copysign(math.inf, excess)
    return excess / math.sqrt(variance)


def _bisected(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function is 0."""
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
