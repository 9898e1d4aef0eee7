"""Every two models at once: differences of means over the prompts both were measured on, with their errors.

Nothing goes through pairs one by one: sums over prompts are products of matrices. Where two models are so alike that
such a product would lose digits, their differences are taken prompt by prompt after all.

Source: Miller 2024, "Adding Error Bars to Evals", sections 2.2 and 3.2 (paired, clustered); Cameron and Miller 2015,
section II (CR1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.comparing.grouping import Grouping
from analyses.numerics.comparing.mcnemar import mcnemar_pvalues
from analyses.numerics.comparing.student import NOTHING, t_pvalues

LOSES_DIGITS = 1e-3
"""A sum of squares below this share of what it is a difference of would have fewer than twelve digits left."""
HELD = 1 << 22
"""Differences that are held at a time."""

Square = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class AllPairs:
    """Model i less model j, over the prompts that both were measured on; every array is ``(k, k)``.

    Attributes:
        n: prompts that both were measured on.
        difference: mean of the differences, in the unit of the scores; NaN where no prompt is shared.
        stderr: s / √n, as if prompts were independent; NaN below two prompts; exactly 0 for identical models.
        n_clusters: clusters with a shared prompt.
        stderr_clustered: √(G/(G − 1) Σ over clusters (Σ of deviations)²) / n; NaN below two clusters, or where no
            clusters were given.
        only_first, only_second: prompts that only i, or only j, gets right; None where scores are not all 0 and 1.
        scale: largest absolute score; what is below `NOTHING` of it is rounding.
    """

    n: NDArray[np.int64]
    difference: Square
    stderr: Square
    n_clusters: NDArray[np.int64]
    stderr_clustered: Square
    only_first: NDArray[np.int64] | None
    only_second: NDArray[np.int64] | None
    scale: float

    @property
    def pvalues(self) -> Square:
        """Paired t, as if prompts were independent; see `t_pvalues`."""
        return t_pvalues(self.difference, self.stderr, self.n, self.scale)

    @property
    def pvalues_clustered(self) -> Square:
        """Paired t with G − 1 degrees of freedom around the clustered error; NaN where there is none."""
        return t_pvalues(self.difference, self.stderr_clustered, self.n_clusters, self.scale)

    @property
    def pvalues_mcnemar(self) -> Square | None:
        """Exact McNemar; None where scores are not all 0 and 1."""
        if self.only_first is None or self.only_second is None:
            return None
        return mcnemar_pvalues(self.only_first, self.only_second)


def all_pairs(Q: NDArray[np.float64], groups: Grouping | None = None) -> AllPairs:
    """Compare every two columns.

    Args:
        Q: ``(n, k)`` finite scores; NaN = not measured.
        groups: clusters of the rows; None where errors are not to be clustered.
    """
    seen = ~np.isnan(Q)
    scale = float(np.abs(Q).max(initial=0.0, where=seen))
    M, scores = seen.astype(np.float64), np.where(seen, Q, 0.0)
    values = scores
    is_binary = bool(((values == 0) | (values == 1)).all())
    if not is_binary:  # differences stay what they are, sums of squares become small
        counted = np.maximum(M.sum(axis=1, keepdims=True), 1)
        values = np.where(seen, values - values.sum(axis=1, keepdims=True) / counted, 0.0)
    n = M.T @ M
    right = values.T @ M
    total = right - right.T
    squares, products = (values**2).T @ M, values.T @ values
    whole = squares + squares.T
    apart = whole - 2 * products  # sum of squared differences
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / n
        spread = np.maximum((n * apart - total**2) / n, 0.0)  # whole numbers until divided, where scores are 0 and 1
    between, n_clusters = _between(values, M, mean, groups)
    close = np.zeros(n.shape, dtype=np.bool_) if is_binary else spread < LOSES_DIGITS * whole
    if groups is not None:
        close |= between < LOSES_DIGITS * apart
    i, j = np.nonzero(np.triu(close & (n > 0), 1))
    _one_by_one(scores, M, groups, (i, j), (mean, spread, between), exact=is_binary)
    with np.errstate(divide="ignore", invalid="ignore"):
        stderr = np.where(n >= 2, np.sqrt(spread / (n - 1) / n), np.nan)
        G = n_clusters
        clustered = np.where(G >= 2, np.sqrt(G / np.maximum(G - 1, 1) * between) / n, np.nan)
    for error in (stderr, clustered):
        error[error <= NOTHING * scale] = 0.0
        np.fill_diagonal(error, np.where(np.isnan(np.diag(error)), np.nan, 0.0))
    np.fill_diagonal(mean, np.where(np.diag(n) > 0, 0.0, np.nan))
    only = np.rint(right - products).astype(np.int64) if is_binary else None
    return AllPairs(
        n=n.astype(np.int64),
        difference=mean,
        stderr=stderr,
        n_clusters=n_clusters.astype(np.int64),
        stderr_clustered=clustered,
        only_first=only,
        only_second=None if only is None else only.T,
        scale=scale,
    )


def _between(values: Square, M: Square, mean: Square, groups: Grouping | None) -> tuple[Square, Square]:
    """Sum over clusters of the squared sums of deviations, and the number of clusters, for every two columns."""
    k = values.shape[1]
    if groups is None:
        return np.full((k, k), np.nan), np.zeros((k, k))
    order, starts = _in_clusters(groups)
    if M.all():
        centred = values - values.mean(axis=0)
        S = np.add.reduceat(centred[order], starts, axis=0)
        H = S.T @ S
        own = np.diag(H)
        return np.maximum(own[:, None] + own[None, :] - 2 * H, 0.0), np.full((k, k), float(groups.n_groups))
    between, number = np.zeros((k, k)), np.zeros((k, k))
    filled = np.where(np.isnan(mean), 0.0, mean)
    for rows in np.split(order, starts[1:]):
        sums = values[rows].T @ M[rows]
        shared = M[rows].T @ M[rows]
        between += (sums - sums.T - filled * shared) ** 2
        number += shared > 0
    return between, number


def _in_clusters(groups: Grouping) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in the order of their clusters, and where each cluster begins."""
    return np.argsort(groups.codes, kind="stable"), np.concatenate([[0], np.cumsum(groups.sizes)[:-1]])


def _one_by_one(
    scores: Square,
    M: Square,
    groups: Grouping | None,
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    results: tuple[Square, Square, Square],
    *,
    exact: bool,
) -> None:
    """Replace the results of some pairs by those of their differences, prompt by prompt; in place.

    Args:
        scores: ``(n, k)``, 0 where not measured.
        M: ``(n, k)``, 1 where measured.
        groups: clusters of the rows, if any.
        pairs: first and second columns.
        results: mean, sum of squared deviations, and its counterpart between clusters.
        exact: whether the first two are exact already.
    """
    mean, spread, between = results
    clusters = None if groups is None else _in_clusters(groups)
    step = max(1, HELD // max(len(scores), 1))
    for start in range(0, len(pairs[0]), step):
        i, j = pairs[0][start : start + step], pairs[1][start : start + step]
        both = M[:, i] * M[:, j]
        D = (scores[:, i] - scores[:, j]) * both
        means = D.sum(axis=0) / both.sum(axis=0)
        deviations = (D - means) * both
        if not exact:
            mean[i, j], mean[j, i] = means, -means
            spread[i, j] = spread[j, i] = (deviations**2).sum(axis=0)
        if clusters is not None:
            sums = np.add.reduceat(deviations[clusters[0]], clusters[1], axis=0)
            between[i, j] = between[j, i] = (sums**2).sum(axis=0)
