"""Permutation tests: parallel draws, and p-values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.05
"""Significance level of p-values, and false discovery rate for counting discoveries."""
ATOM_SHARE = 0.01
"""A statistic is discrete if one value makes up more than this share of its null distribution."""
SPREAD_TOLERANCE = 1e-13
"""Numbers whose spread is below this share of the largest are one value. It is smaller than `TIE_TOLERANCE`, because
the null distribution of a statistic may be that narrow and still have many values.
"""
CHANCE_TIE = 2
"""With few draws, this many may be equal by chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PermutationTest:
    """A statistic of the observed table, with its null distribution.

    All p-values include the observed table among the draws, so none is 0. Each is at most ``alpha`` in at most
    ``alpha`` of the tables under the null hypothesis (the mid-p only approximately).

    Attributes:
        observed: the statistic of the observed table.
        null: ``(n_permutations,)`` float64, the statistic of each drawn table.
        n_greater: number of greater draws.
        n_equal: number of equal draws, decided without rounding on binary tables; draws with an undefined statistic are
            counted here.
        reason: why there are no p-values; empty if there are.
    """

    observed: float
    null: NDArray[np.float64]
    n_greater: int
    n_equal: int
    reason: str = ""

    @property
    def n_permutations(self) -> int:
        """Number of draws."""
        return self.null.size

    @property
    def smallest_pvalue(self) -> float:
        """Smallest possible p-value of a tail: the observed table is one of ``B + 1``."""
        return 1 / (self.n_permutations + 1)

    @property
    def pvalue(self) -> float:
        """Upper tail, ``(1 + #{null >= observed}) / (B + 1)``."""
        return (1 + self.n_greater + self.n_equal) / (self.n_permutations + 1)

    @property
    def pvalue_lower(self) -> float:
        """Lower tail, ``(1 + #{null <= observed}) / (B + 1)``."""
        return (1 + self.n_permutations - self.n_greater) / (self.n_permutations + 1)

    @property
    def pvalue_mid(self) -> float:
        """Upper tail, ties weighing half: ``(#{null > observed} + (1 + #{null = observed}) / 2) / (B + 1)``."""
        return (self.n_greater + (1 + self.n_equal) / 2) / (self.n_permutations + 1)

    @property
    def pvalue_two_sided(self) -> float:
        """Twice the smaller tail, at most 1."""
        return min(1.0, 2 * min(self.pvalue, self.pvalue_lower))

    @property
    def can_reject(self) -> bool:
        """Whether there are enough draws for a two-sided p-value of at most `ALPHA`."""
        return 2 * self.smallest_pvalue <= ALPHA

    @property
    def verdict(self) -> Literal[-1, 0, 1]:
        """Verdict of the two-sided test at `ALPHA`: 1 if the statistic is too large, -1 if too small, else 0."""
        if self.reason or self.pvalue_two_sided > ALPHA:
            return 0
        return 1 if self.pvalue <= self.pvalue_lower else -1

    @property
    def null_mean(self) -> float:
        """Mean over the draws; NaN if the statistic is undefined in all of them."""
        values = self.null[np.isfinite(self.null)]
        if values.size and (values == values[0]).all():
            return float(values[0])  # without the rounding of a sum
        return float(values.mean()) if values.size else float("nan")

    @property
    def null_sd(self) -> float:
        """Standard deviation over the draws, with ``B - 1``; 0 for a single draw."""
        values = self.null[np.isfinite(self.null)]
        return float(values.std(ddof=1)) if values.size > 1 and (values != values[0]).any() else 0.0

    @property
    def is_discrete(self) -> bool:
        """Whether one value makes up more than `ATOM_SHARE` of the draws, so that p-values move in steps."""
        values = self.null[np.isfinite(self.null)]
        if not values.size:
            return True
        spread, largest = float(np.ptp(values)), float(np.abs(values).max())
        values = values - values.min()
        values = np.round(values / spread, 9) if spread > SPREAD_TOLERANCE * largest else values * 0.0
        atom = int(np.unique(values, return_counts=True)[1].max())
        return atom > max(CHANCE_TIE, ATOM_SHARE * self.n_permutations) or atom == values.size > 1


def build_permutation_test(
    observed: float, null: NDArray[np.float64], signs: NDArray[np.int8], reason: str = "", *, on_an_atom: bool = False
) -> PermutationTest:
    """Return a `PermutationTest` from the sign of ``null - observed`` for each draw.

    Args:
        observed: the statistic of the observed table; NaN if undefined, which has its own reason.
        null: ``(n_permutations,)`` float64.
        signs: ``(n_permutations,)`` int8, -1, 0 or 1.
        reason: why the statistic cannot be tested, if known.
        on_an_atom: whether the statistic is discrete by nature, as percentiles are. Draws that all equal the observed
            one are then a result, not a sign that permutations cannot change it.
    """
    if not reason and not np.isfinite(observed):
        reason = "the observed table has no pair of prompts with a defined value"
    if not reason and not np.isfinite(null).any():
        reason = "no drawn table has a pair of prompts with a defined value"
    if not reason and not on_an_atom and not signs.any():
        reason = "no draw changed it"
    return PermutationTest(
        observed=float(observed),
        null=null,
        n_greater=int((signs > 0).sum()),
        n_equal=int((signs == 0).sum()),
        reason=reason,
    )
