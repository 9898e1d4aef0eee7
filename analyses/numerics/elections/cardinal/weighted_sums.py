"""Weights of tasks: what they may be, and the ranking under them, in exact arithmetic.

Tasks whose scores are positive multiples of one another, up to a constant, move models in the same direction: one
weight for all of them reaches every ranking that separate weights do. They are merged, exactly, on integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.standard_deviations import exact_standard_deviations
from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import ExactScores, decimal_fraction

MAX_INT64 = 2**62
"""Integers below it can be subtracted from each other in 64 bits."""

BITS = 192
"""Behind the point, of sums that order models unless they are too close to tell; those are summed in full."""


@dataclass(frozen=True, kw_only=True)
class WeightedSums:
    """Scores prepared for weights.

    Attributes:
        group: ``(n_tasks,)`` which weight a task has; −1 for a task that ties all models.
        steps: ``(n_weights, n_models)`` integers (object): a model's distance above the lowest, in the smallest unit.
        units: ``(n_weights,)`` exact size of a unit in the weighed sum at weight 1.
        scale: ``(n_tasks,)`` what the scores of a task are divided by.
        before: ``(n_models,)`` ranks by the raw mean of all tasks.
    """

    group: NDArray[np.int64]
    steps: NDArray[Any]
    units: tuple[Fraction, ...]
    scale: NDArray[np.float64]
    before: NDArray[np.float64]

    @property
    def n_weights(self) -> int:
        """How many weights make a difference."""
        return len(self.units)

    @property
    def n_models(self) -> int:
        """Number of columns."""
        return len(self.before)

    def relative_units(self) -> NDArray[np.float64]:
        """``(n_weights,)`` units over the largest sum there is: of any scores, numbers that floats can hold."""
        largest = sum((unit * max(row) for unit, row in zip(self.units, self.steps.tolist(), strict=True)), Fraction(0))
        return np.array([float(unit / largest) for unit in self.units])

    def to_floats(self) -> NDArray[np.float64]:
        """``(n_weights, n_models)`` what a model has in the weighed sum at weight 1, above the lowest, as `shares`."""
        return np.asarray(self.steps.astype(np.float64) * self.relative_units()[:, None])

    def ranks_after(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ranks under weights, decided on integers.

        Args:
            weights: ``(n_weights,)`` floats, taken as the decimal numbers they are printed as.
        """
        shares = [decimal_fraction(weight) * unit for weight, unit in zip(weights, self.units, strict=True)]
        columns = self.steps.T.tolist()
        rounded = [(share.numerator << BITS) // share.denominator for share in shares]
        totals = [sum(map(int.__mul__, rounded, column)) for column in columns]
        error = sum(map(max, self.steps.tolist()))
        order = sorted(range(self.n_models), key=totals.__getitem__)
        keys = [0] * self.n_models
        for near_tied in _near_ties(order, totals, error):
            exact = [Fraction(0)] * len(near_tied)
            if len(near_tied) > 1:
                exact = [
                    sum((share * steps for share, steps in zip(shares, columns[model], strict=True)), Fraction(0))
                    for model in near_tied
                ]
            level_of_total = {total: level for level, total in enumerate(sorted(set(exact)))}
            for model, total in zip(near_tied, exact, strict=True):
                keys[model] = totals[near_tied[0]] * self.n_models + level_of_total[total]
        return average_ranks(keys)

    def task_weights(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(n_tasks,)`` the weight of each task; NaN for one that ties all models."""
        return np.append(weights, np.nan)[self.group]

    def differences(self, ahead: NDArray[np.int64], behind: NDArray[np.int64]) -> NDArray[Any]:
        """``(n_weights, n_pairs)`` differences in steps, as int64 where they fit, else Python integers."""
        steps = self.steps
        if steps.size and steps.max() < MAX_INT64:
            steps = steps.astype(np.int64)
        return np.asarray(steps[:, ahead] - steps[:, behind])


def weighted_sums(scores: ExactScores, *, standardised: bool) -> WeightedSums:
    """Prepare scores.

    Args:
        scores: complete, at least one task.
        standardised: divide each task's scores by their standard deviation (`exact_standard_deviations`).
    """
    group = np.full(scores.n_tasks, -1)
    rows = scores.numerators.tolist()
    scale = exact_standard_deviations(rows, scores.denominator) if standardised else [Fraction(1)] * scores.n_tasks
    group_of_direction: dict[tuple[int, ...], int] = {}
    units: list[Fraction] = []
    for task, row in enumerate(rows):
        lowest = min(row)
        above = [value - lowest for value in row]
        unit = gcd(*above)
        if unit == 0:
            continue
        direction = tuple(value // unit for value in above)
        if direction not in group_of_direction:
            group_of_direction[direction] = len(units)
            units.append(Fraction(0))
        group[task] = group_of_direction[direction]
        units[group_of_direction[direction]] += Fraction(unit, scores.denominator) / scale[task]
    steps = np.empty((len(units), scores.n_models), dtype=object)
    for direction, weight_index in group_of_direction.items():
        steps[weight_index] = direction
    return WeightedSums(
        group=group,
        steps=steps,
        units=tuple(units),
        scale=np.array([float(value) for value in scale]),
        before=average_ranks(scores.numerators.sum(axis=0)),
    )


def _near_ties(order: list[int], totals: list[int], error: int) -> list[list[int]]:
    """Models in ascending order, those together that are not more than ``error`` from the next."""
    runs: list[list[int]] = []
    for index, model in enumerate(order):
        if index and totals[model] - totals[order[index - 1]] <= error:
            runs[-1].append(model)
        else:
            runs.append([model])
    return runs
