"""Two models compared in each task, with p-values adjusted for there being many tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping
from tracker.statistics.mcnemar import mcnemar_pvalues
from tracker.statistics.multiple_testing import fdr_values, holm_values
from tracker.statistics.paired_differences import estimate_clustered_mean, estimate_mean
from tracker.statistics.standard_errors import Correction

CLUSTERED, MCNEMAR, STUDENT, FLIPPED = "clustered t", "exact McNemar", "paired t", "flipped signs"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskDifference:
    """The first model less the second in one task.

    Attributes:
        task: its name.
        n: prompts.
        n_a_better, n_b_better: prompts on which either is better.
        mean_a, mean_b: means of the scores as they are.
        difference: positive where the first is better.
        stderr, low, high: clustered within the task where it has two clusters or more; NaN below two prompts.
        pvalue: of ``test``; NaN where there is none.
        holm, benjamini_hochberg: the same adjusted for all tasks.
        test: by which; '' where there is none. Where the error is 0, t gives way to flipped signs.
    """

    task: str
    n: int
    n_a_better: int
    n_b_better: int
    mean_a: float
    mean_b: float
    difference: float
    stderr: float
    low: float
    high: float
    pvalue: float
    test: str
    holm: float = np.nan
    benjamini_hochberg: float = np.nan

    def scaled(self, exponent: int) -> TaskDifference:
        """Return the numbers in the unit of scores times 2**exponent; infinite beyond float64."""

        def scale(value: float) -> float:
            return float(np.ldexp(value, exponent))

        with np.errstate(over="ignore"):
            return replace(
                self,
                mean_a=scale(self.mean_a),
                mean_b=scale(self.mean_b),
                difference=scale(self.difference),
                stderr=scale(self.stderr),
                low=scale(self.low),
                high=scale(self.high),
            )


def task_differences(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    advantage: NDArray[np.float64],
    tasks: NDArray[np.str_],
    groups: Grouping | None,
    *,
    is_binary: bool,
    level: float,
    largest: float = np.inf,
) -> tuple[TaskDifference, ...]:
    """Compare two models task by task, in the order of the names.

    Args:
        a, b: ``(n,)`` finite scores.
        advantage: ``(n,)`` of the first, positive where it is better.
        tasks: ``(n,)`` names.
        groups: clusters finer than tasks; None where there are none.
        is_binary: whether scores are 0 and 1, so that McNemar's test applies.
        level: of the intervals.
        largest: possible difference, where intervals end; infinite if scores have no bounds.
    """
    differences = []
    scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    for task in np.unique(tasks).tolist():
        rows = np.asarray(tasks == task)
        d = advantage[rows]
        n_a, n_b = int((d > 0).sum()), int((d < 0).sum())
        within = groups.rows(rows) if groups is not None else None
        if within is not None and not within.problem:
            correction: Correction = "CR1" if within.is_even else "CR2"
            known = estimate_clustered_mean(d, within, scale=scale, level=level, correction=correction, largest=largest)
            test = CLUSTERED
            pvalue = known.pvalue
        else:
            known = estimate_mean(d, scale=scale, level=level, largest=largest)
            test = MCNEMAR if is_binary else STUDENT
            pvalue = float(mcnemar_pvalues(n_a, n_b)) if is_binary else known.pvalue
        if known.stderr == 0 and test != MCNEMAR:
            test = FLIPPED  # of prompts or clusters that all say the same
        differences.append(
            TaskDifference(
                task=task,
                n=len(d),
                n_a_better=n_a,
                n_b_better=n_b,
                mean_a=float(a[rows].mean()),
                mean_b=float(b[rows].mean()),
                difference=known.mean,
                stderr=known.stderr,
                low=known.low,
                high=known.high,
                pvalue=pvalue,
                test="" if np.isnan(pvalue) else test,
            )
        )
    pvalues = np.array([difference.pvalue for difference in differences])
    adjusted = zip(differences, holm_values(pvalues).tolist(), fdr_values(pvalues).tolist(), strict=True)
    return tuple(replace(difference, holm=holm, benjamini_hochberg=rate) for difference, holm, rate in adjusted)
