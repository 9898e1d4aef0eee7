"""McNemar's exact test of correct and wrong answers to the same prompts.

Source: McNemar 1947; the exact form is the binomial test of Fay 2010, "Two-sided exact tests and matching confidence
intervals for discrete data".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mcnemar_pvalues(only_first: Any, only_second: Any) -> NDArray[np.float64]:
    """Return exact two-sided p-values. Null hypothesis: of prompts with one correct answer, each model has half.

    Args:
        only_first, only_second: counts, of equal shapes.

    Returns:
        Of the same shape, in (0, 1], min(1, 2 P(Bin(m, 1/2) ≤ smaller count)) for m prompts together; 1 if m is 0.
        Below 10⁻³⁰⁸ it is 0.
    """
    from scipy.special import bdtr

    first, second = np.asarray(only_first, dtype=np.float64), np.asarray(only_second, dtype=np.float64)
    together, fewer = first + second, np.minimum(first, second)
    tail = bdtr(fewer, np.maximum(together, 1).astype(np.int64), 0.5)
    return np.asarray(np.where(2 * fewer == together, 1.0, np.minimum(1.0, 2 * tail)))
