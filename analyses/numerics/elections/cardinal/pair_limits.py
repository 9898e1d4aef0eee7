"""From which least weight on can two models not change places?

A model ahead of another by differences d of its weighed scores stays ahead under weights w as long as Σ w d ≥ 0. The
least that weights in [epsilon, 1] can make of it is epsilon · P − N, with P the sum of the positive d and N that of the
negative ones without their sign. So exactly the pairs with N / P > epsilon can be reversed, each by different weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.weighted_sums import WeightedSums

LIMIT_TOLERANCE = 1e-9
"""Limits that differ by less, or by less than this share, are compared exactly; rounding moves them by far less."""

PAIR_BLOCK = 1 << 16
"""Pairs whose differences by each task are held at a time."""


@dataclass(frozen=True, kw_only=True)
class PairLimits:
    """For every two models that the mean orders, the least weight from which on their order stands.

    Attributes:
        ahead, behind: ``(n_pairs,)`` columns, the one with the larger mean first.
        limit: ``(n_pairs,)`` N / P rounded to a float; above 1 where even equal weights reverse the pair, which they do
            only where tasks are standardised.
        sums: what is weighed.
    """

    ahead: NDArray[np.int64]
    behind: NDArray[np.int64]
    limit: NDArray[np.float64]
    sums: WeightedSums

    @property
    def involves_leader(self) -> NDArray[np.bool_]:
        """``(n_pairs,)`` whether the model ahead is first by the mean, alone or with others."""
        return np.asarray(self.sums.before[self.ahead] == self.sums.before.min())

    def exact_limit(self, pair: int) -> Fraction:
        """N / P of one pair."""
        i, j = self.ahead[pair], self.behind[pair]
        differences = [unit * int(row[i] - row[j]) for row, unit in zip(self.sums.steps, self.sums.units, strict=True)]
        return -sum((d for d in differences if d < 0), Fraction(0)) / sum(
            (d for d in differences if d > 0), Fraction(0)
        )

    def count_reversible(self, epsilon: Fraction) -> int:
        """Pairs that some weights in [epsilon, 1] reverse."""
        threshold = float(epsilon)
        close = np.flatnonzero(np.abs(self.limit - threshold) <= LIMIT_TOLERANCE)
        return int((self.limit > threshold + LIMIT_TOLERANCE).sum()) + sum(
            self.exact_limit(int(pair)) > epsilon for pair in close
        )

    def reversing_directions(self, n_pairs: int) -> list[NDArray[np.float64]]:
        """Distinct ``(n_weights,)`` vectors of 0 and 1, those of the pairs with the largest limits first.

        Weights epsilon + (1 − epsilon) · u reverse the pair of u at every epsilon below its limit: tasks for the one
        ahead have the least weight, those against it the largest.
        """
        directions: dict[bytes, NDArray[np.float64]] = {}
        for pair in np.argsort(-self.limit, kind="stable")[:n_pairs]:
            if self.limit[pair] > 0:
                i, j = self.ahead[pair], self.behind[pair]
                u = np.array([float(row[i] < row[j]) for row in self.sums.steps])
                directions.setdefault(u.tobytes(), u)
        return list(directions.values())

    def max_limit(self, chosen: NDArray[np.bool_] | None = None) -> Fraction:
        """The largest N / P, of all pairs or of those chosen; 0 where there are none."""
        limit = self.limit if chosen is None else np.where(chosen, self.limit, -1.0)
        top = limit.max(initial=0.0)
        close = np.flatnonzero((limit >= top - LIMIT_TOLERANCE * max(1.0, top)) & (limit >= 0))
        return max((self.exact_limit(int(pair)) for pair in close), default=Fraction(0))


def pair_limits(sums: WeightedSums) -> PairLimits:
    """Limits of all pairs.

    Args:
        sums: of at least 2 models.
    """
    order = np.argsort(sums.before, kind="stable")
    first, second = np.triu_indices(len(order), 1)
    ahead, behind = order[first], order[second]
    ordered = sums.before[ahead] < sums.before[behind]
    ahead, behind = ahead[ordered], behind[ordered]
    units = sums.relative_units()[:, None]
    limit = np.empty(len(ahead))
    for start in range(0, len(ahead), PAIR_BLOCK):
        some = slice(start, start + PAIR_BLOCK)
        differences = sums.differences(ahead[some], behind[some]).astype(np.float64) * units
        limit[some] = -np.minimum(differences, 0).sum(axis=0) / np.maximum(differences, 0).sum(axis=0)
    return PairLimits(ahead=ahead, behind=behind, limit=limit, sums=sums)
