"""Clusters of dependent prompts as integer codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EVEN = 0.75
"""Below this share of G − 1, intervals of CR1 with G − 1 degrees of freedom have too low coverage."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouping:
    """Rows in clusters.

    Attributes:
        codes: ``(n,)`` int64 cluster of each row, in ``0 .. n_groups - 1``.
        sizes: ``(n_groups,)`` int64 rows of each cluster, all positive.
        n_alone: rows without a cluster; each is treated as a separate one.
    """

    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_alone: int

    @property
    def n_groups(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    @property
    def degrees(self) -> float:
        """Satterthwaite's degrees of freedom of the CR2 error of a mean of independent prompts.

        G − 1 for clusters of equal size, fewer the more sizes differ; 0 for one cluster. With shares w and u = w² / (1
        − w) it is 1 / (Σw² + (Σu)² − Σu²).

        Source: Bell and McCaffrey 2002, section 4; Pustejovsky and Tipton 2018, for the mean.
        """
        if self.n_groups < 2:
            return 0.0
        w = self.sizes / self.sizes.sum()
        u = w**2 / (1 - w)
        return float(1 / ((w**2).sum() + u.sum() ** 2 - (u**2).sum()))

    @property
    def is_even(self) -> bool:
        """Whether cluster sizes are similar enough for CR1 with G − 1 degrees of freedom."""
        return self.degrees >= EVEN * (self.n_groups - 1)

    @property
    def problem(self) -> str:
        """Why errors cannot be clustered; '' if they can."""
        if self.n_alone == len(self.codes):
            return "no prompt has a cluster"
        return "all prompts are in one cluster" if self.n_groups < 2 else ""

    def rows(self, keep: NDArray[np.bool_]) -> Grouping:
        """Return the same clusters with only the rows where ``keep`` is true.

        Args:
            keep: ``(n,)``.
        """
        alone = self._is_alone()[keep]
        return _numbered(self.codes[keep], alone)

    def _is_alone(self) -> NDArray[np.bool_]:
        return np.asarray(self.codes >= self.n_groups - self.n_alone)


def group_rows(names: NDArray[np.str_]) -> Grouping:
    """Assign rows with the same name to one cluster; a row without a name is a separate cluster.

    Args:
        names: ``(n,)``; '' is no name.
    """
    return _numbered(names, names == "")


def _numbered(marks: NDArray[np.generic], alone: NDArray[np.bool_]) -> Grouping:
    """Number the named clusters first, in the order of their marks, then the rows without a name."""
    names, codes = np.unique(marks[~alone], return_inverse=True)
    every = np.empty(len(marks), dtype=np.int64)
    every[~alone] = codes
    n_alone = int(alone.sum())
    every[alone] = len(names) + np.arange(n_alone)
    return Grouping(codes=every, sizes=np.bincount(every, minlength=len(names) + n_alone), n_alone=n_alone)
