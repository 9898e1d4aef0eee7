"""The obvious versions where prompts have weights: every pair in a loop, weighing the product of its prompts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from plain_reference import similarity

Table = NDArray[np.float64]


def weighted_pairs(table: Table, weights: Table, name: str) -> tuple[Table, Table]:
    """Similarity and weight of all pairs of rows that share a cell; `cosine_nonzero` leaves out rows of zeros."""
    if name == "cosine_nonzero":
        solved = np.nan_to_num(table).any(axis=1)
        table, weights = table[solved], weights[solved]
    present = ~np.isnan(table)
    pairs = [(i, j) for i, j in combinations(range(len(table)), 2) if (present[i] & present[j]).any()]
    return (
        np.array([similarity(table[i], table[j], name) for i, j in pairs]),
        np.array([weights[i] * weights[j] for i, j in pairs]),
    )


def weighted_percentile(values: Table, masses: Table, share: float) -> float:
    """The smallest value at or below which lies this share of the weight."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(masses[order]) >= (share - 1e-10) * masses.sum()
    return float(values[order][np.argmax(reached)])


def weighted_statistics(values: Table, masses: Table) -> dict[str, float]:
    """Mean, percentiles and variance over pairs."""
    mean = (values * masses).sum() / masses.sum()
    return {
        "mean": mean,
        "p75": weighted_percentile(values, masses, 0.75),
        "p95": weighted_percentile(values, masses, 0.95),
        "variance": (masses * (values - mean) ** 2).sum() / masses.sum(),
    }


def weighted_distances(samples: list[tuple[Table, Table]]) -> list[float]:
    """KS distance of each sample from all samples together; equal cosines come as different floats: rounded."""
    points = np.unique(np.round(np.concatenate([values for values, _ in samples]), 12))

    def passed(values: Table, masses: Table) -> Table:
        at = np.searchsorted(points, np.round(values, 12))
        return np.cumsum(np.bincount(at, weights=masses, minlength=points.size))

    sums = [passed(*sample) for sample in samples]
    pool = np.sum(sums, axis=0)
    return [float(np.abs(first / first[-1] - pool / pool[-1]).max()) for first in sums]
