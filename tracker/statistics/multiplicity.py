"""Many tests at once: p-values adjusted so that one error among all of them is rare.

Source: Holm 1979, "A simple sequentially rejective multiple test procedure". For false discovery rates see
`analyses.numerics.semantic.false_discovery`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def holm_values(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smallest family-wise error rate at which Holm's procedure rejects each hypothesis.

    Args:
        pvalues: ``(m,)`` in [0, 1]; NaN is no hypothesis and stays NaN.

    Returns:
        ``(m,)`` in [0, 1], never below the p-value.
    """
    order = np.argsort(pvalues, kind="stable")
    m = int((~np.isnan(pvalues)).sum())
    left = np.maximum(m - np.arange(len(pvalues)), 1)
    raised = np.fmax.accumulate(pvalues[order] * left) if len(pvalues) else pvalues
    raised[m:] = np.nan
    values = np.empty_like(raised)
    values[order] = np.minimum(raised, 1.0)
    return values
