"""How much nearer rows are to their own cluster than to the next one, without a distance between any two rows.

The mean cosine distance from a unit row ``x`` to a cluster of weight ``W`` whose unit rows sum to ``S`` is
``1 - x·S / W``. So one product with the clusters' sums gives what all pairs would.

Source: Rousseeuw 1987, "Silhouettes".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.directions import Directions
from tracker.statistics.jit import jit
from tracker.statistics.resampling import SPREAD_TOLERANCE

BLOCK = 256
"""Rows whose products with one vector are made together, so that they stay in the cache."""


@jit
def cluster_sums(units: Any, weights: Any, labels: Any, n_clusters: int) -> Any:
    """Weighted sum, ``(n_clusters, k)``, and weight, ``(n_clusters,)``, of the directions of each cluster."""
    k = units.shape[1]
    sums, totals = np.zeros((n_clusters, k)), np.zeros(n_clusters)
    for i in range(units.shape[0]):
        c, w = labels[i], weights[i]
        totals[c] += w
        for j in range(k):
            sums[c, j] += w * units[i, j]
    return sums, totals


@jit
def _distances(columns: Any, labels: Any, sums: Any, totals: Any, within: Any, nearest: Any) -> None:
    k, m = columns.shape
    products = np.empty(BLOCK)
    for start in range(0, m, BLOCK):
        size = min(BLOCK, m - start)
        for b in range(size):
            nearest[start + b] = np.inf
        for c in range(totals.size):
            for b in range(size):
                products[b] = 0.0
            for j in range(k):
                s = sums[c, j]
                for b in range(size):
                    products[b] += columns[j, start + b] * s
            total = totals[c]
            for b in range(size):
                i = start + b
                if labels[i] == c:
                    within[i] = max(0.0, total - products[b])
                else:
                    nearest[i] = min(nearest[i], max(0.0, 1.0 - products[b] / total))


def row_silhouettes(
    grouped: Directions, labels: NDArray[np.int64], n_clusters: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Silhouette of every row, ``(b - a) / max(a, b)``, with cosine distance.

    ``b`` is the weighted mean distance to the nearest other cluster. ``a`` is the mean distance to the rest of the
    own one, ``Σ w_j d_j / (W - min(1, w))``: a row of weight ``w`` stands for ``w`` copies, of which one is itself.
    So whole weights give what repeated rows would; a row that weighs less than 1 is left out with what it has.
    A row alone in its cluster, weighing 1 or less, has 0, as have rows whose ``a`` and ``b`` differ by rounding only.

    Args:
        grouped: directions of the rows.
        labels: ``(m,)`` cluster of each direction, none of them empty.
        n_clusters: at least 2.
        weights: ``(n,)`` positive; None weighs every row 1.

    Returns:
        ``(n,)`` float64 in [-1, 1]; NaN for rows without direction.
    """
    m = grouped.n_distinct
    sums, totals = cluster_sums(grouped.units, grouped.weights, labels, n_clusters)
    within, nearest = np.empty(m), np.empty(m)
    _distances(np.ascontiguousarray(grouped.units.T), labels, sums, totals, within, nearest)
    members = np.bincount(labels, minlength=n_clusters)
    within[members[labels] == 1] = 0.0
    samples = np.full(grouped.of_row.size, np.nan)
    rows = np.flatnonzero(grouped.of_row >= 0)
    of_row = grouped.of_row[rows]
    n_rows = np.bincount(labels[of_row], minlength=n_clusters)
    own_weight = np.ones(rows.size) if weights is None else np.minimum(1.0, np.asarray(weights)[rows])
    rest = totals[labels][of_row] - own_weight
    b = nearest[of_row]
    alone = (n_rows[labels[of_row]] == 1) & ((rest <= 0) if weights is None else (np.asarray(weights)[rows] <= 1))
    a = np.divide(within[of_row], rest, out=np.zeros(rows.size), where=~alone)
    larger = np.maximum(a, b)
    differs = ~alone & (np.abs(b - a) > SPREAD_TOLERANCE * larger)
    samples[rows] = np.divide(b - a, larger, out=np.zeros(rows.size), where=differs)
    return samples
