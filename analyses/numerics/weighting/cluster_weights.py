"""Weights of prompts by how far they are from their cluster's representative.

All weights sum to the number of prompts, so that 1 is what each has where all count the same. A cluster's prompts
together have its size as their weight.

Source: Ailem et al. 2024, section 3.3; the paper does not define the weight at distance 0; it is chosen here.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.ranking import TIE_TOLERANCE

ZeroDistance = Literal["floor", "limit", "drop"]


def medoid_weights(labels: NDArray[np.int64], medoids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Equal weight for one representative of each cluster, none for the rest.

    Prompts outside all clusters (their performance vector has no direction) have one representative too: the first.

    Args:
        labels: ``(n,)`` cluster of each prompt; -1 = none.
        medoids: ``(n_clusters,)`` row of each cluster's representative.

    Returns:
        ``(n,)`` float64, summing to ``n``.
    """
    chosen = np.concatenate([medoids, np.flatnonzero(labels < 0)[:1]])
    weights = np.zeros(len(labels))
    weights[chosen] = len(labels) / len(chosen)
    return weights


def distance_weights(labels: NDArray[np.int64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight within a cluster proportional to the distance from its representative, which itself has none.

    A cluster in which all distances are 0, one of a single prompt, and the prompts outside all clusters weigh 1 each.

    Args:
        labels: ``(n,)`` cluster of each prompt; -1 = none.
        distances: ``(n,)`` from the representative; not read where there is no cluster.

    Returns:
        ``(n,)`` float64, summing to ``n``.
    """
    return _by_cluster(labels, _clean(labels, distances))


def inverse_distance_weights(
    labels: NDArray[np.int64], distances: NDArray[np.float64], zero_distance: ZeroDistance = "floor"
) -> NDArray[np.float64]:
    """Weight within a cluster inversely proportional to the distance from its representative.

    A cluster in which all distances are 0, one of a single prompt, and the prompts outside all clusters weigh 1 each.

    Args:
        labels: ``(n,)`` cluster of each prompt; -1 = none.
        distances: ``(n,)`` from the representative; not read where there is no cluster.
        zero_distance: what a distance of 0 counts as. "floor": as the smallest positive one in the cluster. "limit":
            prompts at distance 0 share the cluster's whole weight equally, the limit of 1 / (d + ε) as ε falls to 0.
            "drop": prompts at distance 0 have weight 0.

    Returns:
        ``(n,)`` float64, summing to ``n``.
    """
    d = _clean(labels, distances)
    if zero_distance == "limit":
        return _by_cluster(labels, np.where(d == 0, 1.0, 0.0))
    nearest = np.full(labels.max(initial=-1) + 2, np.inf)
    np.minimum.at(nearest, labels[d > 0] + 1, d[d > 0])
    floor = nearest[labels + 1]
    is_far = (d > 0) & np.isfinite(floor)
    raw = np.divide(floor, d, out=np.zeros(len(d)), where=is_far)
    if zero_distance == "floor":
        raw[np.isfinite(floor) & (d == 0)] = 1.0
    return _by_cluster(labels, raw)


def _clean(labels: NDArray[np.int64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    d = np.where(labels < 0, 0.0, distances)
    return np.where(d <= TIE_TOLERANCE, 0.0, d)


def _by_cluster(labels: NDArray[np.int64], raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """``raw`` rescaled to a mean of 1 within each cluster; 1 where the cluster's are all 0, and outside clusters."""
    place = labels + 1
    sums, sizes = np.bincount(place, weights=raw), np.bincount(place)
    sums[0] = 0.0
    return np.divide(raw * sizes[place], sums[place], out=np.ones(len(raw)), where=sums[place] > 0)
