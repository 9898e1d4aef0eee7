"""Adjust p-values of many tests, for the family-wise error rate and for the false discovery rate.

Source: Holm 1979, "A simple sequentially rejective multiple test procedure"; Benjamini & Hochberg 1995, "Controlling
the false discovery rate". `statsmodels.stats.multitest` is not used: it neither passes over missing p-values nor
adjusts many rows at once. It also loads pandas and scipy.stats, which would slow the start of every leaderboard. Tests
compare the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def holm_values(pvalues: NDArray[np.float64], families: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return the smallest family-wise error rate at which Holm's procedure rejects each hypothesis.

    A family is a group of hypotheses with one p-value: that of one of them, adjusted for the family. It counts as one
    hypothesis for all others, also after its rejection, since the rest of the family is still open. With that, the
    family-wise error rate covers each single hypothesis: before the first false rejection all families with a true
    hypothesis still count, so each has at most its share of the level.

    Args:
        pvalues: ``(m,)`` in [0, 1]; NaN is no hypothesis and stays NaN.
        families: ``(m,)`` whether the p-value is that of a family; None if none is.

    Returns:
        ``(m,)`` in [0, 1], never below the p-value.
    """
    order = np.argsort(pvalues, kind="stable")
    m = int((~np.isnan(pvalues)).sum())
    n_rejected = np.arange(len(pvalues)) if families is None else np.cumsum(~families[order]) - ~families[order]
    n_remaining = np.maximum(m - n_rejected, 1)
    raised = np.fmax.accumulate(pvalues[order] * n_remaining) if len(pvalues) else pvalues
    raised[m:] = np.nan
    values = np.empty_like(raised)
    values[order] = np.minimum(raised, 1.0)
    return values


def fdr_values(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smallest false discovery rate at which the Benjamini-Hochberg procedure rejects each hypothesis.

    Args:
        pvalues: ``(m,)`` in [0, 1]; NaN is no hypothesis and stays NaN.

    Returns:
        ``(m,)`` in [0, 1], never below the p-value.
    """
    order = np.argsort(pvalues, kind="stable")
    values = np.empty_like(pvalues)
    values[order] = ascending_fdr_values(pvalues[order][None, :])[0]
    return values


def ascending_fdr_values(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `fdr_values` of each row, for rows that are already sorted; they stay sorted.

    Args:
        pvalues: ``(n, m)``, each row ascending with NaN last, as returned by `np.sort`.
    """
    m = (~np.isnan(pvalues)).sum(axis=1, keepdims=True)
    raised = pvalues * (m / np.arange(1, pvalues.shape[1] + 1))
    lowest = np.fmin.accumulate(raised[:, ::-1], axis=1)[:, ::-1]
    return np.minimum(lowest, 1.0)
