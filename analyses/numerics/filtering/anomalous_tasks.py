"""Which tasks differ so much in form from a benchmark's other tasks that a person should look at them.

A suggestion, never a decision: the paper dropped one task of MMLU because it looked different to its authors, without
a rule. This one compares three plain numbers of each task with those of the other tasks.

Source: Gupta et al. 2024, section 3.1 (the idea); Iglewicz & Hoaglin 1993, "How to detect and handle outliers" (the
robust z, its bound of 3.5, and what takes the place of a median deviation of 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Measure = Literal["length", "n_choices", "distance"]

MIN_TASKS = 5
"""Tasks below which none stands out from the rest."""
TO_SD = 1.4826
"""Standard deviation of a normal distribution, in median absolute deviations."""
MEAN_TO_SD = 1.2533
"""Standard deviation of a normal distribution, in mean absolute deviations."""
MIN_LENGTH = 1e-9
"""Deviations and lengths of vectors below this are rounding: above `TIE_TOLERANCE`, as they come from long sums."""
MIN_DIFFERENCE: dict[Measure, float] = {"length": float(np.log(1.5)), "n_choices": 0.5, "distance": 0.05}
"""Differences from the median below which a task is not anomalous, however similar the others are: half as long again,
half a choice, and a twentieth of the distance between two tasks that have nothing in common."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnomalousTask:
    """A task that stands out from the others in one respect.

    Attributes:
        task: its name.
        measure: "length" is the typical number of characters of its prompts (the geometric mean, of one more than
            each), "n_choices" their mean number of choices, "distance" the cosine distance between the mean vector of
            its prompts and that of all other prompts, in [0, 2].
        value: of this task.
        median: of all tasks.
        z: difference from the median in robust standard deviations, of the logarithm where it is a length; finite.
    """

    task: str
    measure: Measure
    value: float
    median: float
    z: float


def find_anomalous_tasks(
    tasks: NDArray[np.str_], lengths: Floats, n_choices: Floats, E: NDArray[Any] | None, *, at_least: float = 3.5
) -> tuple[AnomalousTask, ...]:
    """Tasks that stand out by length, number of choices, or distance from the rest; largest |z| first.

    The robust standard deviation is the median absolute deviation over the tasks, times `TO_SD`. Where more than half
    of the tasks are the same it is 0; the mean absolute deviation times `MEAN_TO_SD` takes its place, under which one
    task among twenty equal ones has a z of 16, and two among ten one of 4. Tasks can be too long or too short, but only
    too far from the rest, never too near; a task of few prompts is a little farther by chance.

    Args:
        tasks: ``(n,)`` names, one for each prompt.
        lengths: ``(n,)`` characters of each prompt; NaN is not known.
        n_choices: ``(n,)``; NaN is not known.
        E: ``(n, d)`` vectors of the prompts, taken at length 1; one of zeros, or with a number that is not finite, is
            not known. None: no distances.
        at_least: absolute z from which a task is named.

    Returns:
        Nothing for a measure with fewer than `MIN_TASKS` tasks of which it is known.

    Raises:
        ValueError: ``at_least`` is not above 0.
    """
    if not at_least > 0:
        raise ValueError(f"The least z of an anomalous task must be above 0, not {at_least}.")
    names, task = np.unique(tasks, return_inverse=True)
    measured: dict[Measure, Floats] = {
        "length": _means(np.log1p(lengths), task, len(names)),
        "n_choices": _means(np.asarray(n_choices, dtype=np.float64), task, len(names)),
    }
    if E is not None:
        measured["distance"] = _distances(E, task, len(names))
    anomalies = [
        AnomalousTask(
            task=str(names[place]),
            measure=measure,
            value=_restore_unit(measure, values[place]),
            median=_restore_unit(measure, np.nanmedian(values)),
            z=float(z[place]),
        )
        for measure, values in measured.items()
        for z in [_robust_z(values, MIN_DIFFERENCE[measure])]
        for place in np.flatnonzero((z if measure == "distance" else np.abs(z)) >= at_least)
    ]
    return tuple(sorted(anomalies, key=lambda anomaly: -abs(anomaly.z)))


def _means(values: Floats, task: NDArray[np.intp], n_tasks: int) -> Floats:
    """``(n_tasks,)`` means of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    counts = np.bincount(task[known], minlength=n_tasks)
    sums = np.bincount(task[known], weights=values[known], minlength=n_tasks)
    means: Floats = np.divide(sums, counts, out=np.full(n_tasks, np.nan), where=counts > 0)
    return means


def _distances(E: NDArray[Any], task: NDArray[np.intp], n_tasks: int) -> Floats:
    """``(n_tasks,)`` cosine distances between a task's mean vector and the rest's; NaN where one has no direction."""
    sums = np.zeros((n_tasks, E.shape[1]))
    for place in range(n_tasks):
        rows = np.asarray(E[task == place], dtype=np.float64)
        norms = np.linalg.norm(rows, axis=1)
        known = np.isfinite(norms) & (norms > 0)
        sums[place] = (rows[known] / norms[known, None]).sum(axis=0)
    rest = sums.sum(axis=0) - sums
    norms = np.linalg.norm(sums, axis=1) * np.linalg.norm(rest, axis=1)
    products = np.einsum("ij,ij->i", sums, rest)
    cosines: Floats = np.divide(products, norms, out=np.full(n_tasks, np.nan), where=norms > MIN_LENGTH)
    return 1 - np.clip(cosines, -1.0, 1.0)


def _robust_z(values: Floats, least: float) -> Floats:
    """``(n_tasks,)``; 0 where the difference is below the least, and everywhere if too few values are known."""
    z = np.zeros(values.size)
    known = ~np.isnan(values)
    if np.count_nonzero(known) < MIN_TASKS:
        return z
    difference = values[known] - np.median(values[known])
    deviation = TO_SD * np.median(np.abs(difference))
    if deviation < MIN_LENGTH:
        deviation = MEAN_TO_SD * np.abs(difference).mean()
    matters = np.abs(difference) >= least
    z[known] = np.divide(difference, deviation, out=np.zeros(difference.size), where=matters)
    return z


def _restore_unit(measure: Measure, value: float) -> float:
    """A value in the unit in which it is read."""
    return float(np.expm1(value) if measure == "length" else value)
