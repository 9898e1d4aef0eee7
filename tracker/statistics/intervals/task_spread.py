"""How much clusters differ: intraclass correlation, design effect and effective number of clusters.

Source: Donner 1986, "A review of inference procedures for the intraclass correlation coefficient in the one-way random
effects model" (analysis-of-variance estimator); Kish 1965, "Survey sampling" (design effect).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.intervals.design_variance import design_variance
from tracker.statistics.ranking import overflow_exponent

MIN_CLUSTERS = 10
"""Below this effective number of clusters, a clustered error is itself imprecise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSpread:
    """How much the means of clusters differ, the median over columns.

    Attributes:
        n_clusters: number of clusters.
        n_effective: effective number of clusters, 1 / Σw² of their shares w.
        correlation: intraclass correlation: share of the variance that lies between clusters; 0 if it is negative.
        design_effect: squared clustered error (CR2) over the squared error of independent prompts.
    """

    n_clusters: int
    n_effective: float
    correlation: float
    design_effect: float


def measure_spread(Q: NDArray[np.float64], groups: Grouping) -> ClusterSpread | None:
    """Measure how much clusters differ; None without a column that has all scores and differing ones.

    Args:
        Q: ``(n, k)`` scores, NaN = missing; columns with missing scores are not used.
        groups: at least two clusters, without strata.
    """
    n, sizes = len(Q), groups.sizes.astype(np.float64)
    Q = Q[:, ~np.isnan(Q).any(axis=0)]
    Q = np.ldexp(Q, -overflow_exponent(Q))  # all results are ratios
    Q = Q[:, np.ptp(Q, axis=0) > 0] if Q.size else Q
    if not Q.shape[1] or groups.n_groups < 2 or groups.n_groups == n:
        return None
    order = np.argsort(groups.codes, kind="stable")
    sums = np.add.reduceat(Q[order], np.concatenate([[0], np.cumsum(groups.sizes)[:-1]]), axis=0)
    mean = Q.mean(axis=0)
    between = (sizes @ (sums / sizes[:, None] - mean) ** 2) / (len(sizes) - 1)
    within = (((Q - mean) ** 2).sum(axis=0) - (len(sizes) - 1) * between) / (n - len(sizes))
    size = (n - (sizes**2).sum() / n) / (len(sizes) - 1)
    w = np.full(n, 1 / n)
    plain = design_variance(Q, group_rows(np.full(n, "")), w)
    return ClusterSpread(
        n_clusters=groups.n_groups,
        n_effective=groups.n_effective,
        correlation=float(np.median(np.maximum(between - within, 0) / (between + (size - 1) * within))),
        design_effect=float(np.median(design_variance(Q, groups, w) / plain)),
    )
