"""Squared standard errors of weighted means, for prompts in clusters and strata.

Source: Bell and McCaffrey 2002 (CR2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping

NEGLIGIBLE = 1e-14
"""A variance of scores in [0, 1] below this is rounding."""


def design_variance(Q: NDArray[np.float64], groups: Grouping, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared standard error of each column's weighted mean, ``(k,)``; NaN below two clusters.

    In each stratum it is CR2, Σ S² / (1 − a), where S is the sum of w times the deviation from the stratum's mean over
    a cluster, and a the cluster's share of the stratum. With strata, each is averaged with the variance that its
    clusters would have as a sample of all clusters, which counts as one degree of freedom: a stratum of equal scores
    has a variance too. It is the same CR2 without strata, in proportion to Σ W² over the weights W of the clusters.

    Args:
        Q: ``(n, k)`` scores.
        groups: clusters and strata of the rows.
        w: ``(n,)`` weights with a sum of 1.
    """
    if groups.n_groups < 2:
        return np.full(Q.shape[1], np.nan)
    if groups.is_independent:
        return np.asarray((w**2 / (1 - w)) @ (Q - w @ Q) ** 2)
    strata, n_strata = groups.strata_of_groups, groups.n_strata
    sums = _sum_by(groups.codes, groups.n_groups, w[:, None] * Q)
    totals = np.bincount(groups.codes, weights=w)
    means = _sum_by(strata, n_strata, sums) / np.bincount(strata, weights=totals)[:, None]
    deviations = sums - totals[:, None] * means[strata]
    share = groups.shares(w)
    factor = np.divide(1.0, 1 - share, out=np.zeros(len(share)), where=share < 1)
    variances = _sum_by(strata, n_strata, factor[:, None] * deviations**2)
    if n_strata == 1:
        return np.asarray(variances[0])
    degrees, squares = groups.stratum_degrees(w), np.bincount(strata, weights=totals**2)
    prior = (1 / (1 - totals)) @ (sums - totals[:, None] * sums.sum(axis=0)) ** 2
    of_strata = np.asarray((degrees / (degrees + 1)) @ variances)
    return np.asarray(of_strata + float((squares / (degrees + 1)).sum()) / float(squares.sum()) * prior)


def pooled_variance(Q: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the unbiased variance of the scores of all strata together, ``(k,)``; 0 for one score.

    Args:
        Q: ``(n, k)`` scores.
        w: ``(n,)`` weights with a sum of 1.
    """
    deviations = Q - w @ Q
    return np.asarray((w @ deviations**2) / max(1 - float((w**2).sum()), NEGLIGIBLE))


def _sum_by(codes: NDArray[np.int64], n: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of rows with equal codes, ``(n, k)``; every code occurs."""
    order = np.argsort(codes, kind="stable")
    if n == len(codes):
        return values[order]
    return np.asarray(np.add.reduceat(values[order], np.searchsorted(codes[order], np.arange(n)), axis=0))
