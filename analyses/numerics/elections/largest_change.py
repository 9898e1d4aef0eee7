"""What a search for the largest change of a ranking returns: a value with its witness, and what no witness exceeds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import RankingDistance, ranking_distance

Measure = Literal["tau", "mrc"]


@dataclass(frozen=True, kw_only=True)
class LargestChange:
    """The largest distance found, and a bound that none exceeds.

    Attributes:
        value: distance of the witness, evaluated in exact arithmetic.
        upper_bound: no irrelevant change does more; equal to ``value`` where that is proven to be the largest.
        witness: what does it. Cardinal: ``(n_tasks,)`` float64 weights in [epsilon, 1], NaN for a task that ties all
            models and so has none. Ordinal: ``(n_outside,)`` bool, which of the other models are added.
        ranks_after: ``(m,)`` ranks after it.
        distance: all distances of ``ranks_after`` from the ranking before.
    """

    value: float
    upper_bound: float
    witness: NDArray[Any]
    ranks_after: NDArray[np.float64]
    distance: RankingDistance

    @classmethod
    def between(
        cls,
        before: NDArray[np.float64],
        after: NDArray[np.float64],
        measure: Measure,
        *,
        witness: NDArray[Any],
        upper_bound: float,
    ) -> LargestChange:
        """The change from one ranking to another.

        Args:
            before, after: ``(m,)`` ranks.
            measure: which distance is maximised.
            witness: what does it.
            upper_bound: of the change.
        """
        distance = ranking_distance(before, after)
        value = distance.tau if measure == "tau" else distance.mrc
        return cls(value=value, upper_bound=upper_bound, witness=witness, ranks_after=after, distance=distance)

    @property
    def is_exact(self) -> bool:
        """Whether nothing larger exists."""
        return self.upper_bound <= self.value


@dataclass(frozen=True, kw_only=True)
class CardinalSensitivity:
    """How far weights of tasks can move the ranking by means (Zhang & Hardt 2024, equations 6 to 8).

    Attributes:
        tau: maximises strict reversals.
        mrc: maximises the largest change of rank, on its own.
        before: ``(n_models,)`` ranks by the raw mean (equation 1).
        epsilon: least weight; the largest is 1.
        scale: ``(n_tasks,)`` what a task's scores are divided by before they are weighed: standard deviations, or 1.
    """

    tau: LargestChange
    mrc: LargestChange
    before: NDArray[np.float64]
    epsilon: Fraction
    scale: NDArray[np.float64]

    @property
    def is_exact(self) -> bool:
        """Whether both are proven to be the largest."""
        return self.tau.is_exact and self.mrc.is_exact


@dataclass(frozen=True, kw_only=True)
class OrdinalSensitivity:
    """How far added models can move the ranking of the leading ones by win rate (equations 9 to 11).

    Attributes:
        tau: maximises strict reversals among the leading models.
        mrc: maximises the largest change of rank, on its own.
        leading: ``(k,)`` columns of the leading models, best first over the whole field.
        addable: ``(l,)`` columns of the rest; witnesses are in this order.
        before: ``(k,)`` ranks of the leading models among themselves alone.
    """

    tau: LargestChange
    mrc: LargestChange
    leading: NDArray[np.int64]
    addable: NDArray[np.int64]
    before: NDArray[np.float64]

    @property
    def is_exact(self) -> bool:
        """Whether both are proven to be the largest."""
        return self.tau.is_exact and self.mrc.is_exact
