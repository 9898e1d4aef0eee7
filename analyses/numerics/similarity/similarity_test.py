"""The results of a test of similarities, for binary and continuous tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.resampling import PermutationTest


@dataclass(frozen=True, kw_only=True, slots=True)
class SimilarityTest:
    """One similarity of an observed table beside tables drawn under the null.

    Attributes:
        name: of the similarity.
        values: ``(m,)`` float64, ascending: the values the similarity can take, or lower edges of bins.
        width: of a bin; 0 where ``values`` are exact.
        observed: ``(m,)`` int64, pairs of the observed table at each value; float64, their weight, where rows have one.
        pooled: ``(m,)``, the same over all drawn tables.
        comparisons: by statistic: mean, p75, p95, variance, ks_d.
    """

    name: str
    values: NDArray[np.float64]
    width: float
    observed: NDArray[np.int64] | NDArray[np.float64]
    pooled: NDArray[np.int64] | NDArray[np.float64]
    comparisons: Mapping[str, PermutationTest]


@dataclass(frozen=True, kw_only=True, slots=True)
class SimilarityTests:
    """All similarities of one table.

    Attributes:
        tests: one for each similarity.
        n_pairs: pairs of rows that share a measured cell.
        n_disjoint: pairs that share none; they are in no statistic.
        mean_to_others: by similarity, ``(n,)`` float64, (weighted) mean similarity of each row to the rows it
            shares a cell with; NaN where there are none.
        row_sums: the variance of the number of ones in a row; only for complete binary tables.
    """

    tests: tuple[SimilarityTest, ...]
    n_pairs: int
    n_disjoint: int
    mean_to_others: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    row_sums: PermutationTest | None = None

    def without_pvalues(self, reason: str) -> SimilarityTests:
        """The same statistics and draws without what is concluded from them: no p-values, for a reason."""
        return replace(
            self,
            tests=tuple(
                replace(
                    test,
                    comparisons={name: replace(c, reason=reason) for name, c in test.comparisons.items()},
                )
                for test in self.tests
            ),
            row_sums=None if self.row_sums is None else replace(self.row_sums, reason=reason),
        )
