"""The obvious versions: every pair in a loop, every statistic by the book."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Table = NDArray[np.float64]


def similarity(a: Table, b: Table, name: str) -> float:
    """Of two rows over the cells they share, which are at least one."""
    shared = ~np.isnan(a) & ~np.isnan(b)
    a, b = a[shared], b[shared]
    if name == "hamming":
        return float((a == b).mean())
    if name.startswith("cosine"):
        size = np.sqrt((a @ a) * (b @ b))
        return float(a @ b / size) if size > 0 else 0.0
    union = ((a == 1) | (b == 1)).sum()
    if union == 0:
        return 1.0 if name == "jaccard" else 0.0
    return float(((a == 1) & (b == 1)).sum() / union)


def similarities(table: Table, name: str) -> Table:
    """Of all pairs of rows that share a cell; `cosine_nonzero` leaves out rows of zeros."""
    if name == "cosine_nonzero":
        table = table[np.nan_to_num(table).any(axis=1)]
    present = ~np.isnan(table)
    pairs = combinations(range(len(table)), 2)
    return np.array([similarity(table[i], table[j], name) for i, j in pairs if (present[i] & present[j]).any()])


def statistics(values: Table) -> dict[str, float]:
    """Mean, percentiles and variance over pairs."""
    p75, p95 = np.percentile(values, [75, 95])
    return {"mean": values.mean(), "p75": p75, "p95": p95, "variance": values.var()}


def ks_distances(samples: list[Table]) -> list[float]:
    """Of each sample from all samples together; equal cosines come as different floats, so they are rounded."""
    samples = [np.round(sample, 12) for sample in samples]
    pool = np.concatenate(samples)
    return [stats.ks_2samp(sample, pool).statistic for sample in samples]
