"""Standard errors of means over prompts, plain and clustered by task, and confidence intervals.

Source: White 1980 and MacKinnon and White 1985 (HC1); Cameron and Miller 2015, section II (CR1); Bell and McCaffrey
2002, "Bias reduction in standard errors for linear regression with multi-stage samples" (CR2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.ranking import scale_exponent
from tracker.statistics.student_t import t_quantile

LEVEL = 0.95
Correction = Literal["CR1", "CR2"]
"""Small-sample correction for few clusters."""


@dataclass(frozen=True, kw_only=True)
class WeightedMeans:
    """The weighted mean of each column over its scores, and the sums behind its errors.

    Attributes:
        mean: ``(k,)`` Σwx / Σw; NaN for a column without a score.
        n: ``(k,)`` rows with a score.
        total: ``(k,)`` Σw over them.
        squares: ``(k,)`` Σ(w·residual)², of residuals divided by ``2**exponent``.
        between: ``(k,)`` sum over tasks of the square of Σ(w·residual) in the task, divided likewise.
        n_clusters: ``(k,)`` tasks with a score; a row without a task name is a separate one.
        n_without_task: ``(k,)`` rows with a score whose task has no name.
        n_effective: ``(k,)`` (Σw)² / Σw² over rows with a score.
        exponent: of the scores; see `scale_exponent`.
    """

    mean: NDArray[np.float64]
    n: NDArray[np.int64]
    total: NDArray[np.float64]
    squares: NDArray[np.float64]
    between: NDArray[np.float64]
    n_clusters: NDArray[np.int64]
    n_without_task: NDArray[np.int64]
    n_effective: NDArray[np.float64]
    exponent: int

    def plain_error(self, column: int) -> float | None:
        """√(n/(n − 1) · Σ(w·residual)²) / Σw; None for fewer than two rows, or infinite scores."""
        n = int(self.n[column])
        if n < 2 or not math.isfinite(self.squares[column]):
            return None
        return self._unscaled(math.sqrt(self.squares[column] / (n - 1) / n) * float(n / self.total[column]))

    def clustered_error(self, column: int) -> float:
        """√(G/(G − 1) · Σ over tasks (Σ in the task w·residual)²) / Σw for G tasks; None for fewer than two."""
        n_clusters = int(self.n_clusters[column])
        factor = cluster_correction(None, n_clusters, None, "CR1")
        return self._unscaled(math.sqrt(factor * self.between[column]) / float(self.total[column]))

    def _unscaled(self, error: float) -> float:
        """Return an error in the unit of the scores."""
        return float(np.ldexp(error, self.exponent))


def weighted_means(Q: NDArray[np.float64], tasks: NDArray[np.str_], weights: NDArray[np.float64]) -> WeightedMeans:
    """Compute the weighted mean of each column.

    Args:
        Q: ``(n, k)`` scores, NaN = missing; at least one row.
        tasks: ``(n,)`` name of each row's task; '' for none, which makes the row a separate task.
        weights: ``(n,)`` positive; if all are exactly 1, the result equals the unweighted one, byte for byte.
    """
    _, codes = np.unique(tasks, return_inverse=True)
    alone = tasks == ""
    codes[alone] = len(tasks) + np.arange(alone.sum())
    order = np.argsort(codes, kind="stable")
    _, starts = np.unique(codes[order], return_index=True)
    exponent = scale_exponent(Q)
    Q, seen = np.ldexp(Q, -exponent), ~np.isnan(Q)
    n = seen.sum(axis=0)
    w = weights[:, None]
    measured = np.where(seen, w, 0.0)
    total, squared = measured.sum(axis=0), (measured**2).sum(axis=0)
    with np.errstate(invalid="ignore"):  # an infinite score has no residual
        mean = np.divide(np.nansum(w * Q, axis=0), total, out=np.full(len(n), np.nan), where=n > 0)
        residuals = np.where(seen, w * (Q - mean), 0.0)[order]
        squares = (residuals**2).sum(axis=0)
        between = (np.add.reduceat(residuals, starts, axis=0) ** 2).sum(axis=0)
    return WeightedMeans(
        mean=np.ldexp(mean, exponent),
        n=n,
        total=total,
        squares=squares,
        between=between,
        n_clusters=np.add.reduceat(seen[order], starts, axis=0, dtype=np.int64).astype(bool).sum(axis=0),
        n_without_task=(seen & alone[:, None]).sum(axis=0),
        n_effective=np.divide(total**2, squared, out=np.zeros(len(n)), where=n > 0),
        exponent=exponent,
    )


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


def confidence_interval(mean: float, error: float | None, degrees: int) -> tuple[float | None, float | None]:
    """Return the interval mean ± t · stderr that holds `LEVEL` of Student's t with ``degrees`` of freedom."""
    if error is None or not math.isfinite(error):
        return None, None
    reach = float(t_quantile(LEVEL, degrees)) * error
    return mean - reach, mean + reach


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
