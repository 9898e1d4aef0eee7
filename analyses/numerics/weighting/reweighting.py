"""What becomes of a ranking when prompts do not all count the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.ranking import TIE_TOLERANCE, kendall_distance, kendall_tau_b, mean_ranks
from tracker.statistics.standard_errors import scale_to_mean_one


@dataclass(frozen=True, kw_only=True, eq=False)
class Reweighting:
    """Models under one weighting of the prompts, beside equal weights.

    Attributes:
        weights: ``(n,)``, not negative, mean 1.
        means: ``(k,)`` weighted mean of each model.
        ranks: ``(k,)`` 1 is best, ties share the mean rank.
        changes: ``(k,)`` rank under equal weights minus this one: places gained.
        shifts: ``(k,)`` weighted mean minus plain mean; exactly 0 where they differ by rounding only.
        kendall_tau: tau-b between both rankings; NaN where one of them ties all models.
        kendall_distance: share of pairs of models ordered differently, a pair tied in one of them counting half.
    """

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    ranks: NDArray[np.float64]
    changes: NDArray[np.float64]
    shifts: NDArray[np.float64]
    kendall_tau: float
    kendall_distance: float

    @property
    def n_effective(self) -> float:
        """Kish's effective number of prompts, (Σw)² / Σw²."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum())

    @property
    def n_weighted(self) -> int:
        """Prompts whose weight is not 0."""
        return int((self.weights > 0).sum())

    @property
    def largest_rank_change(self) -> float:
        """Largest number of places that a model gains or loses."""
        return float(np.abs(self.changes).max())

    @property
    def largest_shift(self) -> float:
        """Largest difference between a model's weighted and plain mean."""
        return float(np.abs(self.shifts).max())

    @property
    def n_leaders(self) -> int:
        """Models that share the first place."""
        return int((self.ranks == self.ranks.min()).sum())

    @property
    def leader_changes(self) -> bool:
        """Whether no model that is first under equal weights is first, alone or with others, under these."""
        before = self.ranks + self.changes
        return not bool(((before == before.min()) & (self.ranks == self.ranks.min())).any())


def compare_reweighted(
    Q: NDArray[np.float64], weights: NDArray[np.float64], *, higher_is_better: bool = True
) -> Reweighting:
    """Models ranked by weighted means, compared with plain ones.

    Args:
        Q: ``(n, k)`` scores without gaps.
        weights: ``(n,)``, not negative, some positive, in any unit.
        higher_is_better: whether the largest mean is the best.
    """
    w = scale_to_mean_one(weights)
    plain, means = Q.sum(axis=0) / len(Q), (w[:, None] * Q).sum(axis=0) / w.sum()
    before = mean_ranks(plain, higher_is_better=higher_is_better)
    ranks = mean_ranks(means, higher_is_better=higher_is_better)
    return Reweighting(
        weights=w,
        means=means,
        ranks=ranks,
        changes=before - ranks,
        shifts=np.where(np.abs(means - plain) <= TIE_TOLERANCE * np.abs(plain).max(), 0.0, means - plain),
        kendall_tau=kendall_tau_b(before, ranks),
        kendall_distance=kendall_distance(before, ranks),
    )
