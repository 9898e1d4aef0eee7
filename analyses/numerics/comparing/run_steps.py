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
from tracker.statistics.paired_differences import MeanDifference, estimate_clustered_mean, estimate_mean
from tracker.statistics.ranking import TIE_TOLERANCE, overflow_exponent
from tracker.statistics.standard_errors import Correction


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStep:
    """From one run to the next, on the prompts that both have a score for.

    Attributes:
        before, after: columns.
        n: shared prompts.
        n_only_before, n_only_after: prompts that only one of the two has a score for.
        change: mean of after less before, turned so that positive means better; NaN where nothing is shared. If
            missing scores are imputed, of all rows.
        least, most: the same on all prompts of the two, with missing scores set against and for the later run; equal to
            ``change`` if none is missing, or without bounds.
        stderr: of the change, clustered where there are two clusters or more, by CR2 where they are of very unequal
            sizes, else by CR1; NaN where there is none.
        low, high: of the change, united over all values of missing scores.
        pvalue: clustered: paired t. Else exact McNemar where scores are 0 and 1, else paired t. With missing scores in
            the direction that none of them can turn; 1 if there is none. NaN below two prompts.
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
    least: float
    most: float
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
    bounds: tuple[float, float] | None = None,
    replacement: float | None = None,
    imputed: NDArray[np.float64] | None = None,
    largest: float = np.inf,
) -> tuple[RunStep, ...]:
    """Every step of every series.

    Args:
        Q: ``(n, k)`` scores, NaN = not measured.
        series: columns of each model's runs, in their order.
        groups: clusters of the rows.
        higher_is_better: whether large scores are good.
        level: of the intervals.
        bounds: worst and best value of missing scores; None compares shared rows alone.
        replacement: of a score that one of two runs lacks; None for none.
        imputed: ``(n, k)`` scores with imputed ones for errors, see `linearize_imputed`; None if none is imputed.
        largest: possible change, where intervals end; infinite if scores have no bounds.
    """
    options = _StepOptions(groups=groups, higher_is_better=higher_is_better, level=level, largest=largest)
    steps = [
        _step(
            *_pair(Q, before, after, replacement),
            (before, after),
            options,
            bounds,
            None if imputed is None else imputed[:, [before, after]],
        )
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
    with np.errstate(over="ignore"):
        d = new - old if higher_is_better else old - new
    both = np.abs(np.concatenate([old, new]))
    scale = float(both.max(initial=0.0, where=~np.isnan(both)))
    return np.where(np.abs(d) <= TIE_TOLERANCE * scale, 0.0, d)


def _pair(
    Q: NDArray[np.float64], before: int, after: int, replacement: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores of two runs; those that one of them lacks are replaced."""
    old, new = Q[:, before], Q[:, after]
    if replacement is None:
        return old, new
    rows = ~(np.isnan(old) & np.isnan(new))
    return np.where(np.isnan(old) & rows, replacement, old), np.where(np.isnan(new) & rows, replacement, new)


@dataclass(frozen=True, kw_only=True, slots=True)
class _StepOptions:
    """How steps are estimated.

    Attributes:
        groups: clusters of the rows.
        higher_is_better: whether large scores are good.
        level: of the intervals.
        largest: possible change.
    """

    groups: Grouping
    higher_is_better: bool
    level: float
    largest: float

    def estimate(
        self, before: NDArray[np.float64], after: NDArray[np.float64], kept: NDArray[np.bool_], exponent: int
    ) -> MeanDifference:
        """Return the mean change on some rows, with the p-value of the test that a step uses.

        Args:
            before, after: ``(n,)`` scores over 2**exponent.
            kept: ``(n,)`` the rows, at least one.
            exponent: of the unit.
        """
        old, new, groups = before[kept], after[kept], self.groups.rows(kept)
        d, both = _turned(old, new, self.higher_is_better), np.concatenate([old, new])
        options = {
            "scale": float(np.abs(both).max()), "level": self.level,
            "largest": float(np.ldexp(self.largest, -exponent)),
        }  # fmt: skip
        if not groups.problem:
            correction: Correction = "CR1" if groups.is_even else "CR2"
            return estimate_clustered_mean(d, groups, **options, correction=correction)
        known = estimate_mean(d, **options)
        if ((both == 0) | (both == 1)).all():
            return replace(known, pvalue=float(mcnemar_pvalues(int((d > 0).sum()), int((d < 0).sum()))))
        return known


def _step(
    old: NDArray[np.float64],
    new: NDArray[np.float64],
    columns: tuple[int, int],
    options: _StepOptions,
    bounds: tuple[float, float] | None,
    imputed: NDArray[np.float64] | None,
) -> RunStep:
    """Return the step between two runs.

    Args:
        old, new: ``(n,)`` scores, NaN = missing.
        columns: of the two.
        options: how to estimate it.
        bounds: of missing scores; None compares shared rows alone.
        imputed: ``(n, 2)`` scores of the two on all rows, for errors; None if none is imputed.
    """
    groups, estimate = options.groups, options.estimate
    is_old, is_new = ~np.isnan(old), ~np.isnan(new)
    shared, rows = is_old & is_new, is_old | is_new
    turned = _turned(old, new, options.higher_is_better)[shared]
    filled = np.empty((0, 2)) if imputed is None else imputed
    extremes = np.array(bounds or (), dtype=np.float64)
    exponent = overflow_exponent(np.concatenate([old, new, filled.ravel(), extremes]))
    scaled_old, scaled_new = np.ldexp(old, -exponent), np.ldexp(new, -exponent)
    n = int(shared.sum())
    known = estimate(scaled_old, scaled_new, shared, exponent) if n else UNKNOWN
    if n and imputed is not None:
        before, after = np.ldexp(imputed.T, -exponent)
        known = estimate(before, after, np.ones(len(old), dtype=np.bool_), exponent)
    least = most = known
    if n and bounds is not None and not shared[rows].all():
        worst, best = (float(np.ldexp(bound, -exponent)) for bound in bounds)
        least, most = (
            estimate(np.where(is_old, scaled_old, for_old), np.where(is_new, scaled_new, for_new), rows, exponent)
            for for_old, for_new in ((best, worst), (worst, best))
        )
    turnable = 1.0 if np.isfinite(least.pvalue) else np.nan
    is_turnable = least is not most and least.mean <= 0 <= most.mean
    pvalue = turnable if is_turnable else float(np.fmax(least.pvalue, most.pvalue))
    known, least, most = (part.scaled(exponent) for part in (known, least, most))
    shared_groups = groups.rows(shared) if n else groups
    return RunStep(
        before=columns[0],
        after=columns[1],
        n=n,
        n_only_before=int((is_old & ~is_new).sum()),
        n_only_after=int((is_new & ~is_old).sum()),
        change=known.mean,
        least=least.mean,
        most=most.mean,
        stderr=known.stderr,
        low=float(np.fmin(least.low, most.low)),
        high=float(np.fmax(least.high, most.high)),
        pvalue=pvalue,
        holm=np.nan,
        n_better=int((turned > 0).sum()),
        n_worse=int((turned < 0).sum()),
        n_clusters=0 if not n or shared_groups.problem else shared_groups.n_groups,
    )


UNKNOWN = MeanDifference(mean=np.nan, stderr=np.nan, n_units=0, degrees=0.0, low=np.nan, high=np.nan, pvalue=np.nan)
