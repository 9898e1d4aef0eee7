"""Two models compared for every value of their missing scores.

No completion of the scores has a smaller advantage of the first model, prompt by prompt, than the one with every
missing score set against it. A test of that completion that rejects "the first model is not better" keeps its level
whatever is missing. The p-value is the larger one of that completion and the opposite one, whose error may be larger,
and the interval unites both.

Source: Horowitz and Manski 2000, "Nonparametric analysis of randomized experiments with missing covariate and outcome
data".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.comparing.equivalence import Equivalence
from analyses.numerics.comparing.paired_comparison import PairedComparison, compare_models
from tracker.statistics.grouping import Grouping


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedCompletions:
    """The two extreme completions of the scores of two models, on the prompts that at least one has a score for.

    Attributes:
        worst: with every missing score set against the first model.
        best: with every missing score set for the first model.
        n_missing: scores.
    """

    worst: PairedComparison
    best: PairedComparison
    n_missing: int

    @property
    def n(self) -> int:
        """Prompts that at least one of the two has a score for."""
        return self.worst.n

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the difference, united over both extremes."""
        ends = [(part.best.low, part.best.high) for part in (self.worst, self.best)]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def pvalue(self) -> float:
        """The larger p-value of both extremes; 1 if missing scores can turn the difference."""
        return 1.0 if self.decisive is None else self.decisive.pvalue

    @property
    def decisive(self) -> PairedComparison | None:
        """The extreme with the larger p-value; None if missing scores can turn the difference."""
        if self.worst.best.mean > 0 or self.best.best.mean < 0:
            return max(self.worst, self.best, key=lambda part: part.pvalue)
        return None

    def scaled(self, exponent: int) -> ComparedCompletions:
        """Return the numbers in the unit of scores times 2**exponent."""
        return replace(self, worst=self.worst.scaled(exponent), best=self.best.scaled(exponent))


def compare_completions(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    groups: Grouping,
    bounds: tuple[float, float],
    *,
    higher_is_better: bool,
    level: float,
    n_resamples: int,
    seed: int,
) -> ComparedCompletions:
    """Compare two models in both extreme completions of their scores.

    Args:
        a, b: ``(n,)`` scores within the bounds; NaN = missing, in at most one of the two.
        groups: clusters and strata of the prompts.
        bounds: worst and best score.
        higher_is_better, level, n_resamples, seed: as for `compare_models`.
    """
    worst, best = (
        compare_models(
            np.where(np.isnan(a), for_a, a),
            np.where(np.isnan(b), for_b, b),
            groups,
            higher_is_better=higher_is_better,
            level=level,
            n_resamples=n_resamples,
            seed=seed,
            with_bootstrap=False,
            largest=abs(bounds[1] - bounds[0]),
        )
        for for_a, for_b in (bounds, bounds[::-1])
    )
    return ComparedCompletions(worst=worst, best=best, n_missing=int(np.isnan(a).sum() + np.isnan(b).sum()))


def unite_equivalence(worst: Equivalence, best: Equivalence) -> Equivalence:
    """Return the test of equivalence that holds for both extremes."""
    low, high = min(worst.low, best.low), max(worst.high, best.high)
    return replace(worst, low=low, high=high, pvalue=max(worst.pvalue, best.pvalue))
