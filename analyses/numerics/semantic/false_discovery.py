"""False discovery rates: which of many p-values would be called at which rate.

Source: Benjamini & Hochberg 1995, "Controlling the false discovery rate".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fdr_values(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smallest false discovery rate at which the procedure calls each hypothesis.

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
    """`fdr_values` of each row, where the rows are sorted already; they stay sorted.

    Args:
        pvalues: ``(n, m)``, each row ascending with NaN last, as `np.sort` leaves it.
    """
    m = (~np.isnan(pvalues)).sum(axis=1, keepdims=True)
    raised = pvalues * (m / np.arange(1, pvalues.shape[1] + 1))
    lowest = np.fmin.accumulate(raised[:, ::-1], axis=1)[:, ::-1]
    return np.minimum(lowest, 1.0)
