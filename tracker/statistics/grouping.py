"""How the prompts of a benchmark are a sample: clusters of dependent prompts, and strata that hold the clusters.

Task effects are the estimand. ``random``: other tasks like these, so that tasks are clusters. ``fixed``: these tasks,
so that tasks are strata, with prompts, or clusters of prompts, within them. ``none``: prompts alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

EVEN = 0.75
"""Below this share of G − 1, intervals of CR1 with G − 1 degrees of freedom have too low coverage."""


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """Rows in clusters, and clusters in strata.

    Attributes:
        codes: ``(n,)`` int64 cluster of each row, in ``0 .. n_groups - 1``.
        sizes: ``(n_groups,)`` int64 rows of each cluster, all positive.
        n_alone: rows without a cluster; each is treated as a separate one.
        group_strata: ``(n_groups,)`` int64 stratum of each cluster, in ``0 .. n_strata - 1``; None without strata.
        n_divided: cluster names with rows in several strata, where they are different clusters.
    """

    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_alone: int
    group_strata: NDArray[np.int64] | None = None
    n_divided: int = 0

    @property
    def n_groups(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    @property
    def n_strata(self) -> int:
        """Number of strata; 1 without strata."""
        return 1 if self.group_strata is None else int(self.group_strata.max()) + 1

    @cached_property
    def strata(self) -> NDArray[np.int64]:
        """The stratum of each row, ``(n,)``."""
        return self.strata_of_groups[self.codes]

    @property
    def strata_of_groups(self) -> NDArray[np.int64]:
        """The stratum of each cluster, ``(n_groups,)``; all 0 without strata."""
        return np.zeros(self.n_groups, dtype=np.int64) if self.group_strata is None else self.group_strata

    @property
    def is_independent(self) -> bool:
        """Whether every row is a cluster, and there are no strata."""
        return self.n_groups == len(self.codes) and self.n_strata == 1

    def shares(self, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the share of each cluster in the weight of its stratum, ``(n_groups,)``.

        Args:
            weights: ``(n,)`` positive; None for equal weights.
        """
        totals = self.sizes if weights is None else np.bincount(self.codes, weights=weights)
        return np.asarray(totals / np.bincount(self.strata_of_groups, weights=totals)[self.strata_of_groups])

    def stratum_degrees(self, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return Satterthwaite's degrees of freedom of the CR2 error of each stratum's mean, ``(n_strata,)``.

        G − 1 for G clusters of equal size, fewer the more sizes differ; 0 for one cluster. With shares w and u = w² /
        (1 − w) it is 1 / (Σw² + (Σu)² − Σu²).

        Source: Bell and McCaffrey 2002, section 4; Pustejovsky and Tipton 2018, for the mean.

        Args:
            weights: ``(n,)`` positive; None for equal weights.
        """
        w, strata = self.shares(weights), self.strata_of_groups
        u = np.divide(w**2, 1 - w, out=np.zeros(len(w)), where=w < 1)
        squares, sums, parts = (np.bincount(strata, weights=x) for x in (w**2, u, u**2))
        return np.asarray(np.where(np.bincount(strata) > 1, 1 / (squares + sums**2 - parts), 0.0))

    @property
    def degrees(self) -> float:
        """Satterthwaite's degrees of freedom of the error of a mean of independent prompts; 0 for one cluster.

        Those of strata are combined by the variances that prompts of equal variance give them; see `design_variance`
        for the further degree of each.
        """
        return self.weighted_degrees(None)

    def weighted_degrees(self, weights: NDArray[np.float64] | None) -> float:
        """Return the degrees of freedom of a weighted mean.

        Args:
            weights: ``(n,)`` positive; None for equal weights.
        """
        degrees = self.stratum_degrees(weights)
        if self.n_strata == 1:
            return float(degrees[0])
        parts = np.bincount(self.strata, weights=None if weights is None else weights**2).astype(np.float64)
        return float(parts.sum() ** 2 / (parts**2 / (degrees + 1)).sum())

    @property
    def n_effective(self) -> float:
        """Effective number of clusters: of equal size, they would weigh as these do; 1 / Σw² over all strata."""
        sizes = self.sizes.astype(np.float64)
        return float(sizes.sum() ** 2 / (sizes**2).sum())

    @property
    def is_even(self) -> bool:
        """Whether cluster sizes are similar enough for CR1 with G − 1 degrees of freedom."""
        return self.degrees >= EVEN * (self.n_groups - 1)

    @property
    def problem(self) -> str:
        """Why errors cannot be clustered; '' if they can, or if there are strata."""
        if self.n_strata > 1:
            return ""
        if self.n_alone == len(self.codes):
            return "no prompt has a cluster"
        return "all prompts are in one cluster" if self.n_groups < 2 else ""

    def without_clusters(self) -> Grouping:
        """Return the same strata with every row a separate cluster."""
        return group_rows(np.full(len(self.codes), ""), None if self.group_strata is None else self.strata)

    def rows(self, keep: NDArray[np.bool_]) -> Grouping:
        """Return the same clusters and strata with only the rows where ``keep`` is true.

        Args:
            keep: ``(n,)``.
        """
        alone = self._is_alone()[keep]
        return _numbered(self.codes[keep], alone, None if self.group_strata is None else self.strata[keep])

    def _is_alone(self) -> NDArray[np.bool_]:
        return np.asarray(self.codes >= self.n_groups - self.n_alone)


def group_rows(names: NDArray[np.str_], strata: NDArray[np.generic] | None = None) -> Grouping:
    """Assign rows with the same name to one cluster; a row without a name is a separate cluster.

    Args:
        names: ``(n,)``; '' is no name.
        strata: ``(n,)`` names or codes of strata; clusters in different strata are different clusters. Strata of one
            cluster are merged. None for no strata.
    """
    return _numbered(names, names == "", strata)


def _numbered(
    marks: NDArray[np.generic], alone: NDArray[np.bool_], strata: NDArray[np.generic] | None = None
) -> Grouping:
    """Number the named clusters first, in the order of their marks, then the rows without a name."""
    _, codes = np.unique(marks[~alone], return_inverse=True)
    places = None if strata is None else np.unique(strata, return_inverse=True)[1]
    n_divided = 0
    if places is not None:
        n_strata = int(places.max(initial=0)) + 1
        pairs, codes = np.unique(codes * n_strata + places[~alone], return_inverse=True)
        n_divided = int((np.bincount(pairs // n_strata) > 1).sum())
    n_named = int(codes.max(initial=-1)) + 1
    every = np.empty(len(marks), dtype=np.int64)
    every[~alone] = codes
    n_alone = int(alone.sum())
    every[alone] = n_named + np.arange(n_alone)
    sizes = np.bincount(every, minlength=n_named + n_alone)
    group_strata = None
    if places is not None:
        group_strata = np.empty(len(sizes), dtype=np.int64)
        group_strata[every] = places
        group_strata = _merge_small(group_strata)
    return Grouping(codes=every, sizes=sizes, n_alone=n_alone, group_strata=group_strata, n_divided=n_divided)


def _merge_small(strata: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Merge all strata of one cluster; a single such stratum joins the one with the fewest clusters.

    Args:
        strata: ``(n_groups,)`` stratum of each cluster.

    Returns:
        Of the same shape; None if one stratum remains.
    """
    counts = np.bincount(strata)
    small = np.flatnonzero(counts == 1)
    if len(small) == 1 and len(counts) > 1:
        small = np.append(small, np.argmin(np.where(counts > 1, counts, counts.max() + 1)))
    if len(small) > 1:
        strata = np.where(np.isin(strata, small), small[0], strata)
    numbers, merged = np.unique(strata, return_inverse=True)
    return None if len(numbers) == 1 else merged
