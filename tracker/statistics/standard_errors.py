"""Effective numbers of weighted prompts, and corrections of clustered errors for few clusters.

Source: White 1980 and MacKinnon and White 1985 (HC1); Cameron and Miller 2015, section II (CR1); Bell and McCaffrey
2002, "Bias reduction in standard errors for linear regression with multi-stage samples" (CR2).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Correction = Literal["CR1", "CR2"]
"""Small-sample correction for few clusters."""


def effective_sample_size(weights: NDArray[np.float64]) -> float:
    """Return Kish's effective number of prompts, (Σw)² / Σw²; the number of prompts for equal weights.

    Args:
        weights: ``(n,)``, not negative, some positive, in any unit.
    """
    w = scale_to_mean_one(weights)
    return float(w.sum() ** 2 / (w**2).sum())


def scale_to_mean_one(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rescale weights to a mean of 1; all exactly 1 if they are equal.

    Args:
        weights: ``(n,)``, not negative, some positive; scaled by a power of two first, so that no sum overflows.
    """
    if (weights == weights[0]).all():
        return np.ones(len(weights))
    scaled = np.ldexp(weights, -np.frexp(weights.max())[1])
    return np.asarray(scaled * (len(scaled) / scaled.sum()))


def cluster_correction(sizes: Any, n_clusters: Any, n: Any, correction: Correction) -> Any:
    """Return the factor of a cluster's squared sum that corrects for few clusters.

    CR1 is G / (G − 1); CR2 of a mean is 1 / (1 − w) with w the cluster's share of the rows.

    Args:
        sizes: rows of each cluster.
        n_clusters: G.
        n: rows.
        correction: CR1 or CR2.
    """
    return n_clusters / (n_clusters - 1) if correction == "CR1" else 1 / (1 - sizes / n)
