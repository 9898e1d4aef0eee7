"""How the scores of a model changed from one of its runs to the next.

Source: Miller 2024, "Adding Error Bars to Evals", section 3.2 (paired differences); Holm 1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping
from tracker.statistics.mcnemar import mcnemar_pvalues
from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.paired_differences import estimate_clustered_mean, estimate_mean
from tracker.statistics.ranking import TIE_TOLERANCE
from tracker.statistics.standard_errors import Correction


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStep:
    """From one run to the next, on the prompts that both have a score for.

    Attributes:
        before, after: columns.
        n: shared prompts.
        n_only_before, n_only_after: prompts that only one of the two has a score for.
        change: mean of after less before, turned so that positive means better; NaN where nothing is shared.
        stderr, low, high: of the change, clustered where there are two clusters or more, by CR2 where they are of very
            unequal sizes, else by CR1; NaN where there is none.
        pvalue: clustered: paired t. Else exact McNemar where scores are 0 and 1, else paired t. NaN below two prompts.
        holm: the same, adjusted for all steps.
        n_better, n_worse: prompts whose score rose, and fell, in merit.
        n_clusters: that errors are clustered by; 0 where they are not.
    """

    before: int
    after: int
    n: int
    n_only_before: int
    n_only_after: int
    change: float
    stderr: float
    low: float
    high: float
    pvalue: float
    holm: float
    n_better: int
    n_worse: int
    n_clusters: int

    @property
    def share_changed(self) -> float:
        """Shared prompts whose score changed at all; NaN where nothing is shared."""
        return (self.n_better + self.n_worse) / self.n if self.n else np.nan


def compare_runs(
    Q: NDArray[np.float64],
    series: Sequence[Sequence[int]],
    groups: Grouping,
    *,
    higher_is_better: bool = True,
    level: float = 0.95,
) -> tuple[RunStep, ...]:
    """Every step of every series.

    Args:
        Q: ``(n, k)`` scores, NaN = not measured.
        series: columns of each model's runs, in their order.
        groups: clusters of the rows.
        higher_is_better: whether large scores are good.
        level: of the intervals.
    """
    steps = [
        _step(Q, before, after, groups, higher_is_better, level)
        for columns in series
        for before, after in pairwise(columns)
    ]
    if not steps:
        return ()
    adjusted = holm_values(np.array([step.pvalue for step in steps]))
    return tuple(replace(step, holm=float(value)) for step, value in zip(steps, adjusted, strict=True))


def score_changes(Q: NDArray[np.float64], step: RunStep, *, higher_is_better: bool = True) -> NDArray[np.float64]:
    """After less before on each row, positive where it became better; NaN where one of the two was not measured."""
    return _turned(Q[:, step.before], Q[:, step.after], higher_is_better)


def _turned(old: NDArray[np.float64], new: NDArray[np.float64], higher_is_better: bool) -> NDArray[np.float64]:
    """New less old, positive where it is better; what is only rounding is 0."""
    d = new - old if higher_is_better else old - new
    both = np.abs(np.concatenate([old, new]))
    scale = float(both.max(initial=0.0, where=~np.isnan(both)))
    return np.where(np.abs(d) <= TIE_TOLERANCE * scale, 0.0, d)


def _step(
    Q: NDArray[np.float64], before: int, after: int, groups: Grouping, higher_is_better: bool, level: float
) -> RunStep:
    old, new = Q[:, before], Q[:, after]
    shared = ~(np.isnan(old) | np.isnan(new))
    d = _turned(old, new, higher_is_better)[shared]
    n, better, worse = len(d), int((d > 0).sum()), int((d < 0).sum())
    change = stderr = low = high = pvalue = np.nan
    clusters = 0
    if n:
        both = np.concatenate([old[shared], new[shared]])
        scale = float(np.abs(both).max())
        shared_groups = groups.rows(shared)
        binary = bool(((both == 0) | (both == 1)).all())
        if shared_groups.problem:
            estimate = estimate_mean(d, scale=scale, level=level)
        else:
            correction: Correction = "CR1" if shared_groups.is_even else "CR2"
            estimate = estimate_clustered_mean(d, shared_groups, scale=scale, level=level, correction=correction)
            clusters = shared_groups.n_groups
        change, stderr, low, high, pvalue = estimate.mean, estimate.stderr, estimate.low, estimate.high, estimate.pvalue
        if not clusters and binary:
            pvalue = float(mcnemar_pvalues(better, worse))
    return RunStep(
        before=before,
        after=after,
        n=n,
        n_only_before=int((~np.isnan(old) & np.isnan(new)).sum()),
        n_only_after=int((np.isnan(old) & ~np.isnan(new)).sum()),
        change=change,
        stderr=stderr,
        low=low,
        high=high,
        pvalue=pvalue,
        holm=np.nan,
        n_better=better,
        n_worse=worse,
        n_clusters=clusters,
    )
